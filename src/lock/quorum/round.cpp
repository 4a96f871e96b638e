#include "lock/quorum/round.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::lock {

std::shared_ptr<Round> Round::start(Nodes nodes, const Ask& ask, Enough enough) {
  auto round = std::make_shared<Round>(std::move(nodes), std::move(enough));
  for (std::size_t i = 0; i < round->nodes_.size(); ++i)
    spawn(round->ask_one(i, ask(*round->nodes_[i])));
  return round;
}

Round::Round(Nodes nodes, Enough enough)
    : nodes_(std::move(nodes)), enough_(std::move(enough)), replies_(nodes_.size()) {}

Task<void> Round::ask_one(std::size_t which, Task<Value> asking) {
  const auto self = shared_from_this();
  Reply reply;
  try {
    reply.value = co_await asking;
  } catch (const Error& failure) {
    reply.failure = failure;
  }
  note(which, std::move(reply));
}

void Round::note(std::size_t which, Reply reply) {
  Late late;
  bool decided = false;
  {
    const std::lock_guard lock{mutex_};
    replies_[which] = reply;
    ++heard_;
    late = late_;
    decided = heard_ == nodes_.size() || enough_(replies_);
    if (heard_ == nodes_.size()) late_ = nullptr;  // and whatever it keeps alive
  }
  if (decided) decided_.complete();
  if (late) late(*nodes_[which], reply);
}

Task<Round::Replies> Round::decision(Clock& clock, SteadyTime until) {
  const auto self = shared_from_this();
  auto waiting = wait_until(decided_, clock, until);
  co_await waiting;
  const std::lock_guard lock{mutex_};
  co_return replies_;
}

Round::Replies Round::hand_on(Late late) {
  const std::lock_guard lock{mutex_};
  if (heard_ < nodes_.size()) late_ = std::move(late);
  return replies_;
}

Tally tally(const Round::Replies& replies, const std::function<bool(const Value&)>& is_yes) {
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

Error unreachable(const std::string& what, const Round::Nodes& nodes, const Round::Replies& replies,
                  Effect effect) {
  std::string silent;
  std::size_t many = 0;
  std::optional<Errc> cause;  // of all, if they agree
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (replies[i] && replies[i]->value) continue;
    const Errc errc = replies[i] ? replies[i]->failure->errc() : Errc::timeout;
    cause = many == 0 || cause == errc ? errc : Errc::connection;
    silent += fmt::format("{}{}: {}", many++ == 0 ? "" : "; ", nodes[i]->describe(),
                          replies[i] ? replies[i]->failure->message() : "no answer yet");
  }
  return Error{cause.value_or(Errc::connection),
               fmt::format("{}: {} of {} nodes gave no answer, and {} have to. {}", what, many,
                           nodes.size(), majority_of(nodes.size()), silent),
               effect};
}

}  // namespace sluice::lock
