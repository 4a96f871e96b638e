#include "lock/quorum/quorum_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace sluice::lock {
namespace {

Task<Value> run_on(Store& node, Batch batch, CallOptions options) {
  co_return Value::array(co_await node.run(std::move(batch), options));
}

/// The replies of the nodes to one script of the batch.
Value merged(const Vote::Replies& replies, std::size_t script, std::size_t need) {
  std::vector<const std::vector<Value>*> answers;
  for (const auto& reply : replies)
    if (reply && reply->value && reply->value->as_items().at(script).is_aggregate())
      answers.push_back(&reply->value->as_items()[script].as_items());
  std::vector<Value> result;
  const std::size_t places = answers.empty() ? 0 : answers.front()->size();
  for (std::size_t place = 0; place < places; ++place) {
    const auto say = [&](std::int64_t what) {
      return static_cast<std::size_t>(std::ranges::count_if(answers, [&](const auto* answer) {
        return place < answer->size() && (*answer)[place] == Value::integer(what);
      }));
    };
    if (say(1) >= need) {
      result.push_back(Value::integer(1));
    } else {
      const bool cannot = replies.size() - say(0) < need;
      result.push_back(cannot ? Value::integer(0) : Value{});
    }
  }
  return places == 0 ? Value{} : Value::array(std::move(result));
}

bool is_undecided(const Value& answer) {
  return answer.is_null() ||
         std::ranges::any_of(answer.as_items(), [](const Value& one) { return one.is_null(); });
}

[[noreturn]] void refuse() {
  throw Error{Errc::bad_argument, "a quorum of Stores runs nothing but renewals"};
}

}  // namespace

Task<std::vector<Value>> QuorumStore::run(Batch batch, CallOptions options) {
  const std::size_t scripts = batch.size();
  const std::size_t need = majority();
  const auto merge = [scripts, need](const Vote::Replies& replies) {
    std::vector<Value> answers;
    for (std::size_t i = 0; i < scripts; ++i) answers.push_back(merged(replies, i, need));
    return answers;
  };
  const SteadyTime until = clock().steady() + options.timeout;
  options.repeatable = false;  // a late copy would restore a hold that was released meanwhile
  const auto vote = Vote::start(
      nodes_, [&](Store& node) { return run_on(node, batch, options); },
      [merge](const Vote::Replies& replies) {
        return std::ranges::none_of(merge(replies), is_undecided);
      });
  const Vote::Replies replies = co_await vote->decision(clock(), until);
  if (std::ranges::none_of(replies, [](const auto& reply) { return reply && reply->value; }))
    throw unreachable(
        "renewals", nodes_, replies, [](const Value&) { return "answered"; }, Effect::unknown);
  co_return merge(replies);
}

Task<Value> QuorumStore::run(Words, CallOptions) { refuse(); }
Task<Value> QuorumStore::run(const Script&, Words, Words, CallOptions) { refuse(); }
Task<Listener> QuorumStore::listen(std::string, MessageHandler) { refuse(); }

bool QuorumStore::may_tell_of(const std::string& lock) {
  const auto now = clock().steady();
  const std::lock_guard guard{mutex_};
  std::erase_if(told_,
                [now](const auto& entry) { return now - entry.second >= std::chrono::minutes{1}; });
  return told_.try_emplace(lock, now).second;
}

std::string QuorumStore::describe() const {
  return fmt::format("{} nodes, the first {}", nodes_.size(), nodes_.front()->describe());
}

std::shared_ptr<Watchdog> watchdog_of(const Vote::Nodes& nodes) {
  static std::mutex mutex;
  static auto* const all = new std::map<Vote::Nodes, std::weak_ptr<Watchdog>>;  // as shared_of()

  const std::lock_guard lock{mutex};
  if (const auto known = all->find(nodes); known != all->end())
    if (auto shared = known->second.lock()) return shared;
  std::erase_if(*all, [](const auto& entry) { return entry.second.expired(); });
  const auto store = std::make_shared<QuorumStore>(nodes);
  std::shared_ptr<Watchdog> watchdog{new Watchdog{*store}, [store](Watchdog* own) { delete own; }};
  (*all)[nodes] = watchdog;
  return watchdog;
}

}  // namespace sluice::lock
