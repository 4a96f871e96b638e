#include "lock/hold/watchdog.hpp"

#include <algorithm>

#include "lock/mutex/wire.hpp"
#include "sluice/log.hpp"
#include "sluice/metrics.hpp"

namespace sluice::lock {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

bool is_answer_for(std::size_t holds, const Value& answer) {
  const auto is_integer = [](const Value& item) { return item.type() == Value::Type::integer; };
  return answer.is_aggregate() && answer.as_items().size() == holds &&
         std::ranges::all_of(answer.as_items(), is_integer);
}

}  // namespace

Watchdog::Watchdog(Store& store) : store_(store), clock_(store.clock()), origin_(clock_.steady()) {}

Watchdog::~Watchdog() { disarm(timer_); }

void Watchdog::watch(const std::shared_ptr<Hold>& hold) {
  Clock::TimerId stale = 0;
  {
    const std::lock_guard lock{mutex_};
    forget_parent();
    hold->place = holds_.size();
    holds_.push_back(hold);
    const auto certain_until = hold->certain_until.load(std::memory_order_relaxed);
    hold->renew_at = hold->terms.watched
                         ? beat_after(certain_until + hold->terms.margin - hold->terms.lease,
                                      hold->terms.interval())
                         : SteadyTime::max();
    stale = wake_by(std::min(hold->renew_at, certain_until));
  }
  disarm(stale);
}

std::uint32_t Watchdog::enter(Hold& hold) {
  const std::lock_guard lock{mutex_};
  const bool certain = hold.state == HoldState::held && clock_.steady() < hold.certain_until.load();
  return certain ? ++hold.entries : 0;
}

bool Watchdog::confirm(const std::shared_ptr<Hold>& hold, SteadyTime sent) {
  Notice notice;
  {
    const std::lock_guard lock{mutex_};
    if (hold->state != HoldState::held) return false;
    if (clock_.steady() < hold->certain_until.load()) {
      hold->certain_until = std::max(hold->certain_until.load(), hold->terms.certain_until(sent));
      hold->unanswered = false;
      return true;
    }
    notice = end(*hold, LostCause::expired);  // once uncertain, it stays so
  }
  tell(std::move(notice));
  return false;
}

Watchdog::Departure Watchdog::leave(Hold& hold) {
  const std::lock_guard lock{mutex_};
  const Departure departure{.entries = --hold.entries, .state = hold.state, .cause = hold.cause};
  if (departure.entries == 0 && hold.state == HoldState::held) {
    hold.state = HoldState::released;
    hold.callbacks.clear();
    forget(hold);
  }
  return departure;
}

void Watchdog::lose(const std::shared_ptr<Hold>& hold, LostCause cause) {
  Notice notice;
  {
    const std::lock_guard lock{mutex_};
    if (hold->state != HoldState::held) return;
    notice = end(*hold, cause);
  }
  tell(std::move(notice));
}

std::stop_token Watchdog::lost(Hold& hold) {
  const std::lock_guard lock{mutex_};
  if (!hold.stop) {
    hold.stop.emplace();
    if (hold.state == HoldState::lost) hold.stop->request_stop();
  }
  return hold.stop->get_token();
}

void Watchdog::on_lost(Hold& hold, std::function<void(LostCause)> callback) {
  {
    const std::lock_guard lock{mutex_};
    if (hold.state == HoldState::held) hold.callbacks.push_back(std::move(callback));
    if (hold.state != HoldState::lost) return;
  }
  callback(hold.cause);
}

std::uint32_t Watchdog::entries(const Hold& hold) const {
  const std::lock_guard lock{mutex_};
  return hold.state == HoldState::held ? hold.entries : 0;
}

SteadyTime Watchdog::beat_after(SteadyTime now, nanoseconds interval) const {
  return origin_ + ((now - origin_) / interval + 1) * interval;
}

Watchdog::Notice Watchdog::end(Hold& hold, LostCause cause) {
  hold.state = HoldState::lost;
  hold.cause = cause;
  Notice notice{
      .hold = holds_[hold.place], .stop = hold.stop, .callbacks = std::move(hold.callbacks)};
  forget(hold);
  return notice;
}

void Watchdog::forget(Hold& hold) {
  const std::size_t place = hold.place;
  std::swap(holds_[place], holds_.back());
  holds_[place]->place = place;
  holds_.pop_back();
}

/// In a child: the holds are its parent's, and so were the timers.
void Watchdog::forget_parent() {
  if (std::exchange(forks_, fork_count()) == fork_count()) return;
  holds_.clear();
  timer_ = 0;
  wake_at_ = SteadyTime::max();
}

/// The timer that became superfluous; 0: none. It must be disarmed without the mutex, for which its
/// callback may wait.
Clock::TimerId Watchdog::wake_by(SteadyTime when) {
  if (when >= wake_at_) return 0;
  wake_at_ = when;
  return std::exchange(timer_, clock_.at(when, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->wake();
  }));
}

void Watchdog::disarm(Clock::TimerId stale) {
  if (stale != 0) clock_.cancel(stale);
}

void Watchdog::wake() {
  Holds due;
  std::vector<Notice> notices;
  SteadyTime now;
  Clock::TimerId stale = 0;
  {
    const std::lock_guard lock{mutex_};
    forget_parent();
    now = clock_.steady();
    if (now < wake_at_) return;  // an earlier timer, overtaken by the cancel of it
    wake_at_ = SteadyTime::max();
    timer_ = 0;
    SteadyTime next = SteadyTime::max();
    for (std::size_t i = 0; i < holds_.size();) {
      Hold& hold = *holds_[i];
      const auto certain_until = hold.certain_until.load();
      if (now >= certain_until) {
        notices.push_back(end(
            hold, hold.unanswered || hold.renewing ? LostCause::unreachable : LostCause::expired));
        continue;  // another has taken its place
      }
      if (now >= hold.renew_at) {
        hold.renew_at = beat_after(now, hold.terms.interval());
        if (!std::exchange(hold.renewing, true)) due.push_back(holds_[i]);
      }
      next = std::min({next, hold.renew_at, certain_until});
      ++i;
    }
    if (next != SteadyTime::max()) stale = wake_by(next);
  }
  disarm(stale);
  for (auto& notice : notices) tell(std::move(notice));
  if (!due.empty()) spawn(renew(std::move(due), now));
}

Task<void> Watchdog::renew(Holds due, SteadyTime sent) {
  const auto self = shared_from_this();  // the last hold may end meanwhile
  const auto shortest =
      std::ranges::min(due, {}, [](const auto& hold) { return hold->terms.lease; });
  const CallOptions options{
      .timeout =
          std::max(std::chrono::ceil<milliseconds>(shortest->terms.interval()), milliseconds{10}),
      .repeatable = true};
  std::vector<Value> answers;
  try {
    auto asked = store_.run(renewal_of(due), options);
    answers = co_await asked;
  } catch (const std::exception& failure) {
    log(LogLevel::warning, "renewing " + std::to_string(due.size()) + " locks: " + failure.what());
  }
  for (std::size_t first = 0, script = 0; first < due.size(); first += holds_a_script, ++script) {
    const auto begin = due.begin() + static_cast<std::ptrdiff_t>(first);
    const auto size = std::min(holds_a_script, due.size() - first);
    const Holds part{begin, begin + static_cast<std::ptrdiff_t>(size)};
    take_answer(part, script < answers.size() ? answers[script] : Value{}, sent);
  }
}

void Watchdog::take_answer(const Holds& part, const Value& answer, SteadyTime sent) {
  if (!is_answer_for(part.size(), answer)) {
    if (!answer.is_null())
      log(LogLevel::warning, "renewing locks: the server said " + to_string(answer));
    postpone(part);
    return;
  }
  for (std::size_t i = 0; i < part.size(); ++i) {
    {
      const std::lock_guard lock{mutex_};
      part[i]->renewing = false;
    }
    if (answer.as_items()[i].as_integer() == 1) {
      if (confirm(part[i], sent)) count(metrics().lock_renewals);
    } else {
      lose(part[i], LostCause::taken);
    }
  }
}

/// The less time is left, the sooner the next try: after a quarter of it.
void Watchdog::postpone(const Holds& holds) {
  count(metrics().lock_renewal_failures, holds.size());
  Clock::TimerId stale = 0;
  {
    const std::lock_guard lock{mutex_};
    const auto now = clock_.steady();
    SteadyTime next = SteadyTime::max();
    for (const auto& hold : holds) {
      hold->renewing = false;
      hold->unanswered = true;
      if (hold->state != HoldState::held) continue;
      const nanoseconds pause =
          std::max<nanoseconds>((hold->certain_until.load() - now) / 4, hold->terms.lease / 100);
      hold->renew_at = std::min(hold->renew_at, now + pause);
      next = std::min(next, hold->renew_at);
    }
    if (next != SteadyTime::max()) stale = wake_by(next);
  }
  disarm(stale);
}

void Watchdog::tell(Notice notice) {
  count(metrics().lock_lost);
  log(LogLevel::warning, "lock " + quoted(notice.hold->names->key) +
                             " was lost: " + std::string{to_string(notice.hold->cause)});
  if (notice.stop) notice.stop->request_stop();
  for (auto& callback : notice.callbacks) {
    try {
      callback(notice.hold->cause);
    } catch (const std::exception& failure) {
      log(LogLevel::error, std::string{"a callback of a lost lock threw: "} + failure.what());
    }
  }
}

}  // namespace sluice::lock
