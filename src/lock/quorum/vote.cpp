#include "lock/quorum/vote.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::lock {

std::shared_ptr<Vote> Vote::start(Nodes nodes, const Ask& ask, Enough enough) {
  auto vote = std::make_shared<Vote>(std::move(nodes), std::move(enough));
  for (std::size_t i = 0; i < vote->nodes_.size(); ++i)
    spawn(vote->ask_one(i, ask(*vote->nodes_[i])));
  return vote;
}

Vote::Vote(Nodes nodes, Enough enough)
    : nodes_(std::move(nodes)), enough_(std::move(enough)), replies_(nodes_.size()) {}

Task<void> Vote::ask_one(std::size_t which, Task<Value> asking) {
  const auto self = shared_from_this();
  Reply reply;
  try {
    reply.value = co_await asking;
  } catch (const Error& failure) {
    reply.failure = failure;
  }
  note(which, std::move(reply));
}

void Vote::note(std::size_t which, Reply reply) {
  Late late;
  bool decided = false;
  {
    const std::lock_guard lock{mutex_};
    replies_[which] = reply;
    ++heard_;
    late = late_;
    decided = heard_ == nodes_.size() || enough_(replies_);
    if (heard_ == nodes_.size()) late_ = nullptr;  // and what it keeps alive
  }
  if (decided) decided_.complete();
  if (late) late(*nodes_[which], reply);
}

Task<Vote::Replies> Vote::decision(Clock& clock, SteadyTime until) {
  const auto self = shared_from_this();
  co_await wait_until(decided_, clock, until);
  const std::lock_guard lock{mutex_};
  co_return replies_;
}

Vote::Replies Vote::hand_on(Late late) {
  const std::lock_guard lock{mutex_};
  if (heard_ < nodes_.size()) late_ = std::move(late);
  return replies_;
}

Tally tally(const Vote::Replies& replies, const std::function<bool(const Value&)>& is_yes) {
  Tally tally;
  for (const auto& reply : replies) {
    if (!reply) {
      ++tally.pending;
    } else if (!reply->value) {
      ++tally.failed;
    } else {
      ++(is_yes(*reply->value) ? tally.yes : tally.no);
    }
  }
  return tally;
}

bool is_decided(const Tally& tally, std::size_t need) noexcept {
  const std::size_t spare = tally.yes + tally.no + tally.failed + tally.pending - need;
  return tally.yes >= need || tally.no > spare || tally.failed > spare;
}

namespace {

/// The error code of all nodes that failed, if they agree.
Errc common_cause(const Vote::Replies& replies) {
  std::optional<Errc> cause;
  for (const auto& reply : replies) {
    if (!reply || !reply->failure) continue;
    if (cause && cause != reply->failure->errc()) return Errc::connection;
    cause = reply->failure->errc();
  }
  return cause.value_or(Errc::timeout);  // no node failed: they did not answer in time
}

}  // namespace

Error unreachable(const std::string& what, const Vote::Nodes& nodes, const Vote::Replies& replies,
                  const InWords& in_words, Effect effect) {
  std::string each;
  std::size_t failed = 0;
  std::size_t pending = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    each += fmt::format("{}{}: ", i == 0 ? "" : "; ", nodes[i]->describe());
    if (!replies[i]) {
      ++pending;
      each += "has not answered yet";
    } else if (const auto& failure = replies[i]->failure) {
      ++failed;
      each += failure->message();
    } else {
      each += in_words(*replies[i]->value);
    }
  }
  return Error{
      common_cause(replies),
      fmt::format("{}: of {} nodes {} failed and {} did not answer yet, and {} have to answer. {}",
                  what, nodes.size(), failed, pending, majority_of(nodes.size()), each),
      effect};
}

}  // namespace sluice::lock
