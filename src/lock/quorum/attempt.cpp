#include "lock/quorum/attempt.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lock/hold/steps.hpp"
#include "lock/mutex/mutex.lua.hpp"
#include "lock/quorum/quorum.lua.hpp"
#include "sluice/log.hpp"
#include "sluice/metrics.hpp"
#include "sluice/mutex.hpp"
#include "sluice/store.hpp"

namespace sluice::lock {
namespace {

std::string_view text_of(const fmt::format_int& number) { return {number.data(), number.size()}; }

/// Granted: a token. A refusal is an array; see lock/mutex/acquire.
bool is_grant(const Value& reply) { return reply.type() == Value::Type::integer; }
bool is_one(const Value& reply) { return reply == Value::integer(1); }

FencingToken token_in(const Vote::Reply& reply) {
  return {static_cast<std::uint64_t>(reply.value->as_integer())};
}

bool has_granted(const std::optional<Vote::Reply>& reply) {
  return reply && reply->value && is_grant(*reply->value);
}

/// Whether a node may have a hold of that request now.
bool may_hold(const Vote::Reply& reply) {
  return reply.value ? is_grant(*reply.value) : may_have_left_something(*reply.failure);
}

}  // namespace

Attempt::Attempt(std::shared_ptr<Watchdog> watchdog, const Names& names, const QuorumTerms& terms,
                 Identity who)
    : Resource(watchdog, names.key),
      store_(static_cast<QuorumStore&>(watchdog->store())),
      names_(names),
      terms_(terms),
      who_(std::move(who)) {}

// --- what is asked of one node ---

Task<Value> Attempt::ask_acquire(Store& node) const {
  const fmt::format_int lease{terms_.terms.lease.count()};
  return node.run(scripts::lock_mutex_acquire,
                  {names_.key, names_.token, names_.queue, names_.looks},
                  {who_.owner(), text_of(lease), who_.request(), who_.holder(), ""},
                  {.timeout = terms_.node_timeout, .repeatable = true});
}

Task<Value> Attempt::ask_release(Store& node) const {
  const fmt::format_int bound{HandOff{}.across_processes};
  return node.run(scripts::lock_mutex_release,
                  {names_.key, names_.token, names_.queue, names_.looks},
                  {who_.request(), names_.channel, text_of(bound), ""},
                  {.timeout = terms_.node_timeout, .repeatable = true});
}

Task<Value> Attempt::ask_raise(Store& node, FencingToken token) const {
  const fmt::format_int number{token.value};
  return node.run(scripts::lock_quorum_raise, {names_.key, names_.token},
                  {who_.request(), text_of(number)},
                  {.timeout = terms_.node_timeout, .repeatable = true});
}

// --- to get it ---

Error Attempt::too_few(const Vote::Replies& replies) const {
  const bool may_be_held =
      std::ranges::any_of(replies, [](const auto& reply) { return !reply || may_hold(*reply); });
  const auto in_words = [](const Value& reply) { return is_grant(reply) ? "granted" : "refused"; };
  return unreachable("lock " + quoted(names_.key), nodes(), replies, in_words,
                     may_be_held ? Effect::unknown : Effect::none);
}

Task<std::shared_ptr<Hold>> Attempt::acquire() {
  const auto self = shared_from_this();
  Clock& clock = watchdog().clock();
  const std::size_t need = store_.majority();
  const SteadyTime sent = clock.steady();
  vote_ = Vote::by_majority(
      nodes(), [this](Store& node) { return ask_acquire(node); }, is_grant);
  const Vote::Replies replies = co_await vote_->decision(clock, sent + terms_.node_timeout);
  const Tally votes = tally(replies, is_grant);
  if (votes.yes < need) {
    co_await take_back();
    if (nodes().size() - votes.silent() < need) throw too_few(replies);
    co_return nullptr;
  }
  FencingToken token;
  for (const auto& reply : replies)
    if (has_granted(reply)) token = std::max(token, token_in(*reply));
  const auto know_it = static_cast<std::size_t>(std::ranges::count_if(
      replies, [&](const auto& reply) { return has_granted(reply) && token_in(*reply) == token; }));
  if (terms_.fenced && know_it < need) {
    if (const bool raised = co_await raise_counters(token); !raised) co_return nullptr;
  }
  const Grant grant{.token = token, .since = sent, .ttl = terms_.terms.lease};
  // A hold of a bare majority cannot lose a node: an early renewal asks the other nodes again.
  const bool is_whole = votes.no + votes.failed == 0;
  const SteadyTime renew_at = is_whole ? SteadyTime::max() : clock.steady() + terms_.node_timeout;
  auto hold = begin(self, Identity{who_}, grant, terms_.terms, renew_at);
  if (!hold) {
    count(metrics().lock_late);
    co_await take_back();
    throw granted_too_late(*this, terms_.terms);
  }
  co_return hold;
}

/// Two majorities share a node, but its counter may be behind the largest token of the first. So
/// the hold counts only when a majority of counters have it: the next majority then finds a node
/// that gives a larger one. (The write-back of Attiya, Bar-Noy and Dolev, 1995.)
Task<bool> Attempt::raise_counters(FencingToken token) {
  Clock& clock = watchdog().clock();
  const std::size_t need = store_.majority();
  const auto vote = Vote::by_majority(
      nodes(), [&](Store& node) { return ask_raise(node, token); }, is_one);
  const Vote::Replies replies =
      co_await vote->decision(clock, clock.steady() + terms_.node_timeout);
  const Tally votes = tally(replies, is_one);
  if (votes.yes >= need) co_return true;
  co_await take_back();
  if (nodes().size() - votes.silent() < need) throw too_few(replies);
  co_return false;
}

// --- the end ---

Task<Value> Attempt::release_and_report(Store& node) {
  const auto self = shared_from_this();
  try {
    co_return co_await ask_release(node);
  } catch (const Error& failure) {
    count(metrics().lock_release_failures);
    if (store_.may_tell_of(names_.key))
      log(LogLevel::warning, "lock " + quoted(names_.key) +
                                 " of a minority ends with its lease at " + node.describe() + ": " +
                                 failure.message());
  }
  co_return Value{};
}

Task<void> Attempt::release_in_background(Store& node) { co_await release_and_report(node); }

/// A node may grant after the decision: that grant is taken back too. The replies before it.
Vote::Replies Attempt::release_late_grants() {
  return vote_->hand_on([self = shared_from_this()](Store& node, const Vote::Reply& reply) {
    if (may_hold(reply)) spawn(self->release_in_background(node));
  });
}

/// Waits until the nodes that granted have released, up to `node_timeout`, since the process may
/// end after this call. What other nodes may have granted is released in the background.
Task<void> Attempt::take_back() {
  const auto self = shared_from_this();
  const Vote::Replies replies = release_late_grants();
  Vote::Nodes granted;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (has_granted(replies[i])) {
      granted.push_back(nodes()[i]);
    } else if (replies[i] && may_hold(*replies[i])) {
      spawn(release_in_background(*nodes()[i]));
    }
  }
  if (granted.empty()) co_return;
  Clock& clock = watchdog().clock();
  const auto vote = Vote::start(
      granted, [this](Store& node) { return release_and_report(node); },
      [](const Vote::Replies&) { return false; });  // all of them
  co_await vote->decision(clock, clock.steady() + terms_.node_timeout);
}

/// 1: a majority of the nodes has ended the hold.
Task<Value> Attempt::ask_end(const Identity&, CallOptions) {
  const auto self = shared_from_this();
  Clock& clock = watchdog().clock();
  const std::size_t need = store_.majority();
  release_late_grants();
  const auto vote = Vote::by_majority(
      nodes(), [this](Store& node) { return ask_release(node); }, is_one);
  const Vote::Replies replies =
      co_await vote->decision(clock, clock.steady() + terms_.node_timeout);
  const Tally votes = tally(replies, is_one);
  if (nodes().size() - votes.no < need) co_return Value::integer(0);
  if (votes.yes + votes.no >= need) co_return Value::integer(1);
  const auto in_words = [](const Value& reply) {
    return is_one(reply) ? "released" : "had no such hold";
  };
  throw unreachable("releasing lock " + quoted(names_.key), nodes(), replies, in_words,
                    Effect::unknown);
}

Task<Value> Attempt::ask_recount(const Hold&, std::uint32_t) {
  return Task<Value>::ready(Value::integer(0));
}

const Script& Attempt::renewal() const noexcept { return scripts::lock_quorum_renew; }

void Attempt::add_to(Renewal& renewal, const Hold& hold, std::uint32_t) const {
  renewal.keys.insert(renewal.keys.end(), {names_.key, names_.token});
  renewal.args.insert(
      renewal.args.end(),
      {std::string{who_.request()}, std::to_string(terms_.terms.lease.count()),
       std::string{who_.owner()}, std::string{who_.holder()}, std::to_string(hold.token.value)});
}

}  // namespace sluice::lock
