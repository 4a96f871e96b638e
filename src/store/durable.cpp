#include "store/durable.hpp"

#include <fmt/format.h>

#include <utility>

#include "store/reply_error.hpp"

namespace sluice {
namespace {

/// A script that was called, for messages.
struct Called {
  const Script& script;
  std::vector<std::string> keys;

  Error error_of(const Value& reply) const {
    const std::vector<std::string_view> views{keys.begin(), keys.end()};
    return error_of_script(reply.as_text(), script, Words{views});
  }
};

/// Of several that failed nothing was done if that is so of each.
void check(const std::vector<Called>& called, const std::vector<Value>& replies) {
  constexpr std::size_t most_told = 10;
  std::optional<Error> first;
  std::string told;
  std::size_t failed = 0;
  auto effect = Effect::none;
  for (std::size_t i = 0; i < called.size(); ++i) {
    if (!replies.at(i).is_error()) {
      effect = Effect::unknown;
      continue;
    }
    const Error error = called[i].error_of(replies[i]);
    if (called.size() == 1) throw error;
    if (error.effect() != Effect::none) effect = Effect::unknown;
    if (!first) first = error;
    if (++failed <= most_told) told += error.message() + "; ";
  }
  if (first)
    throw Error{first->errc(),
                fmt::format("{}{} of {} calls were done, and {} failed", told,
                            called.size() - failed, called.size(), failed),
                effect};
}

Task<DurableReplies> replies_of(Task<std::vector<Value>> asked, std::vector<Called> called,
                                bool waits) {
  std::vector<Value> replies = co_await asked;
  check(called, replies);
  DurableReplies answer;
  if (waits) answer.copies = copies_of(replies);
  replies.resize(called.size());
  answer.replies = std::move(replies);
  co_return answer;
}

Task<DurableReply> reply_of(Task<DurableReplies> asked) {
  DurableReplies answer = co_await asked;
  co_return DurableReply{std::move(answer.replies.front()), std::move(answer.copies)};
}

}  // namespace

std::string Copies::shortfall(const Durability& durability) const {
  if (!refusal.empty())
    return fmt::format("the server does not count replicas (WAIT: {})", refusal);
  return fmt::format("{} of {} replicas had it within {} ms", replicas, durability.replicas,
                     durability.within.count());
}

Durability checked(const Durability& durability) {
  const auto within = durability.within;
  if (durability.replicas > 0 && (within.count() < 1 || within > std::chrono::days{1}))
    throw Error{
        Errc::bad_argument,
        fmt::format("durability.within lies between 1 ms and 1 day, not at {} ms", within.count())};
  return durability;
}

Task<DurableReplies> run_durably(Store& store, std::span<const ScriptCall> calls,
                                 const Durability& durability, CallOptions options) {
  Batch batch;
  std::vector<Called> called;
  for (const auto& [script, keys, args] : calls) {
    batch.add(script, keys, args);
    called.push_back({script, {keys.begin(), keys.end()}});
  }
  const bool waits = durability.replicas > 0;
  if (waits) add_wait(batch, durability);
  return replies_of(store.run(std::move(batch), options), std::move(called), waits);
}

Task<DurableReply> run_durably(Store& store, const Script& script, Words keys, Words args,
                               const Durability& durability, CallOptions options) {
  return reply_of(run_durably(store, {{script, keys, args}}, durability, options));
}

void add_wait(Batch& batch, const Durability& durability) {
  batch.add(
      {"WAIT", std::to_string(durability.replicas), std::to_string(durability.within.count())});
}

Copies copies_of(const std::vector<Value>& replies) {
  if (replies.empty()) return {.refusal = "no reply"};
  const Value& last = replies.back();
  if (last.type() == Value::Type::integer) return {.replicas = last.as_integer()};
  return {.refusal = last.is_error() ? last.as_text() : to_string(last, 100)};
}

}  // namespace sluice
