#include "lock/wait/queued_wait.hpp"

#include <algorithm>

namespace sluice::lock {

using std::chrono::milliseconds;

namespace {

/// The caller's stop has come.
bool is_stop(const std::optional<InboxMessage>& call, const std::function<bool()>& wanted) {
  return call && call->kind == InboxMessage::Kind::recheck && !wanted();
}

}  // namespace

/// From a question of a wait to the answer.
class QueuedWait::Asking {
 public:
  explicit Asking(Inbox::Subscription& box) noexcept : box_(box) {}
  ~Asking() { box_.asked(); }
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;

 private:
  Inbox::Subscription& box_;
};

void QueuedWait::heard(const AcquireReply& answer, SteadyTime sent) {
  heard_ = Heard{answer, sent};
  if (answer.came > 0) came_ = answer.came;
  if (answer.time > milliseconds{0}) box_.inbox().note_time({.sent = sent, .time = answer.time});
}

/// The server granted at a time of its clock; the latest reply to any wait of this process ties
/// that clock to ours, which may have been the slower one since, by as much as the margin is of a
/// lease. What is heard was granted before: that bounds the error of a clock that was set.
Grant QueuedWait::grant_of(const InboxMessage& call) const {
  const SteadyTime now = box_.inbox().store().clock().steady();
  const auto [sent, time] = box_.inbox().time_of_server();
  const auto passed = call.at - time;
  const bool is_tied = heard_ && time > milliseconds{0};
  const SteadyTime since = is_tied ? sent + passed - terms_.drift_over(passed) : now - call.ttl;
  return {.token = call.token, .since = std::min(since, now), .ttl = call.ttl, .queued = true};
}

/// Nothing: it has to be asked again. Where the server stood still before its last reply, the two
/// clocks are tied loosely, and the hold would be lost before its first renewal is answered.
std::optional<Grant> QueuedWait::take_grant(const InboxMessage& call, SteadyTime now) const {
  // The answer is later than this grant and knows nothing of it: the server has lost it. Or its
  // clock was set back.
  if (asks_again_ || call.at < heard_->answer.time) return std::nullopt;
  const Grant grant = grant_of(call);
  const bool is_doubtful = now >= grant.confirm_at();
  const bool is_late = now >= grant.since + grant.ttl - terms_.margin;  // as its caller will see
  if (is_doubtful && !is_late) return std::nullopt;
  return grant;
}

SteadyTime QueuedWait::next_look(SteadyTime now) const {
  const auto left = heard_->answer.left;
  const bool leads = box_.stand_in(heard_->answer.queue, heard_->sent);
  if (leads && heard_->answer.unheard) box_.let_others_look();
  const bool rests = !leads || left < milliseconds{0};
  const auto rest = rests ? longest_rest : std::min(left, longest_rest);
  return now + rest + milliseconds{1};  // the server counts in whole milliseconds
}

Task<bool> QueuedWait::listen_to_foreigners(SteadyTime until) {
  std::string channel = heard_->answer.foreign_channel;
  Inbox& inbox = box_.inbox();
  // This wait may be over before it is heard.
  const auto look = [inbox = inbox.weak_from_this(), request = box_.request()](const Message&) {
    if (const auto alive = inbox.lock()) alive->look_at(request);
  };
  auto listening =
      in_time(listen_beside_strangers(inbox.store(), channel, look), inbox.store(), until);
  std::optional<ListenerBesideStrangers> listener = co_await listening;
  if (!listener) co_return false;
  foreigners_ = *std::move(listener);
  foreign_channel_ = std::move(channel);
  co_return true;
}

/// Asks until there is an answer. False: `until` is over, or the hold is not wanted any more.
Task<bool> QueuedWait::ask(Patience& patience, SteadyTime until,
                           const std::function<bool()>& wanted) {
  Clock& clock = box_.inbox().store().clock();
  while (!heard_) {
    while (!box_.may_ask(refused_)) {
      const std::optional<InboxMessage> call = co_await box_.next(until);
      if (clock.steady() >= until || is_stop(call, wanted)) co_return false;
    }
    const SteadyTime sent = clock.steady();
    try {
      const Asking asking{box_};
      AcquireReply answer = co_await ask_(came_);
      heard(answer, sent);
    } catch (const Error& failure) {
      if (!patience.lasts(failure)) throw;
    }
    if (heard_) break;
    // The place in the queue may be there: the next question is a copy of this.
    const std::optional<InboxMessage> call = co_await box_.next(patience.next());
    if (is_stop(call, wanted)) co_return false;
  }
  patience.renew();
  co_return true;
}

Task<std::optional<Grant>> QueuedWait::stand(SteadyTime until, std::function<bool()> wanted) {
  Clock& clock = box_.inbox().store().clock();
  Patience patience{clock, until};
  for (;;) {
    if (!heard_) {
      auto asking = ask(patience, until, wanted);
      if (const bool answered = co_await asking; !answered) co_return std::nullopt;
    }
    if (const auto& granted = heard_->answer.granted) {
      handed_over_ = false;
      if (refused_ && box_.inbox().store().is_sharded()) box_.let_others_look();
      const Grant grant{
          .token = *granted, .since = heard_->sent, .ttl = terms_.lease, .queued = true};
      heard_.reset();  // what comes after this grant is another question
      co_return grant;
    }
    refused_ = true;
    const std::string& foreign = heard_->answer.foreign_channel;
    if (!foreign.empty() && foreign != foreign_channel_) {
      try {
        auto listening = listen_to_foreigners(until);
        if (const bool heard = co_await listening; !heard) co_return std::nullopt;
      } catch (const Error& failure) {
        if (!patience.lasts(failure)) throw;
      }
      heard_.reset();  // what was published before is seen by another look
      continue;
    }
    SteadyTime look = next_look(clock.steady());
    for (;;) {
      const std::optional<InboxMessage> call = co_await box_.next(std::min(look, until));
      const SteadyTime now = clock.steady();
      if (call && call->kind == InboxMessage::Kind::grant) {
        const std::optional<Grant> grant = take_grant(*call, now);
        if (!grant) break;
        handed_over_ = true;
        heard_.reset();
        co_return grant;
      }
      if (now >= until || is_stop(call, wanted)) co_return std::nullopt;
      if (call && call->kind == InboxMessage::Kind::look) look = std::min(look, now + call->in);
      if (now < look) continue;
      if (box_.may_ask(true)) break;
      look = SteadyTime::max();  // it is told
    }
    heard_.reset();
  }
}

}  // namespace sluice::lock
