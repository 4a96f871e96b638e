#include "lock/hold/watchdog.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <tuple>

#include "lock/hold/pending_releases.hpp"
#include "lock/hold/replication.hpp"
#include "lock/hold/steps.hpp"
#include "lock/per_store.hpp"
#include "sluice/log.hpp"
#include "sluice/metrics.hpp"

namespace sluice::lock {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

bool is_answer_for(std::size_t holds, const Value& answer) {
  const auto is_word = [](const Value& item) {
    return item.type() == Value::Type::integer || item.is_null();
  };
  return answer.is_aggregate() && answer.as_items().size() == holds &&
         std::ranges::all_of(answer.as_items(), is_word);
}

constexpr milliseconds renewed_for_waiters{1500};

/// When a hold is at risk that was confirmed at `since`.
SteadyTime risk_at(SteadyTime since, SteadyTime certain_until) {
  return certain_until - (certain_until - since) / 3;
}

}  // namespace

Watchdog::Watchdog(Store& store)
    : store_(store),
      clock_(store.clock()),
      origin_(clock_.steady()),
      pending_releases_(shared_of<PendingReleases>(store)) {}

Watchdog::~Watchdog() { disarm(timer_); }

void Watchdog::watch(const std::shared_ptr<Hold>& hold, SteadyTime since) {
  std::call_once(listening_, [this] {
    reconnection_ = store_.watch_connection([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->reconnected();
    });
  });
  Clock::TimerId stale = 0;
  {
    const std::lock_guard lock{mutex_};
    forget_parent();
    const auto certain_until = hold->certain_until.load(std::memory_order_relaxed);
    if (hold->terms.watched) {
      hold->renew_at = std::min(hold->renew_at, beat_after(since, hold->terms.interval()));
      hold->risk_at = risk_at(since, certain_until);
    } else {
      hold->renew_at = hold->risk_at = SteadyTime::max();
    }
    hold->look_at = std::min(hold->renew_at, certain_until);
    stale = wake_by(hold->look_at);  // it may throw: then nobody has the hold, and none renews it
    holds_.emplace_back();
    find_place(hold, holds_.size() - 1);
  }
  disarm(stale);
}

void Watchdog::note_waiter(Hold& hold) {
  Clock::TimerId stale = 0;
  {
    const std::lock_guard lock{mutex_};
    if (hold.state != HoldState::held || std::exchange(hold.awaited, true)) return;
    if (!hold.terms.watched || hold.forks != fork_count()) return;
    const SteadyTime now = clock_.steady();
    const SteadyTime confirmed = hold.certain_until.load() + hold.terms.margin - hold.terms.lease;
    hold.renew_at = std::min(hold.renew_at, std::max(now, confirmed + renewed_for_waiters));
    plan(hold, std::min(hold.look_at, hold.renew_at));
    stale = wake_by(hold.renew_at);
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
      if (hold->terms.watched) hold->risk_at = risk_at(sent, hold->certain_until.load());
      if (std::exchange(hold->warned, false)) count(metrics().lock_near_misses);
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
    hold.listeners = nullptr;
    forget(hold);
  }
  return departure;
}

void Watchdog::lose(const std::shared_ptr<Hold>& hold, LostCause cause) {
  Notice notice;
  {
    const std::lock_guard lock{mutex_};
    if (hold->state != HoldState::held || hold->forks != fork_count()) return;
    notice = end(*hold, cause);
  }
  tell(std::move(notice));
}

Hold::Listeners& Watchdog::listeners_of(Hold& hold) {
  if (!hold.listeners) hold.listeners = std::make_unique<Hold::Listeners>();
  return *hold.listeners;
}

std::stop_token Watchdog::lost(Hold& hold) {
  const std::lock_guard lock{mutex_};
  auto& stop = listeners_of(hold).stop;
  if (!stop) {
    stop.emplace();
    if (hold.state == HoldState::lost) stop->request_stop();
  }
  return stop->get_token();
}

void Watchdog::on_lost(Hold& hold, std::function<void(LostCause)> callback) {
  {
    const std::lock_guard lock{mutex_};
    if (hold.state == HoldState::held) listeners_of(hold).on_lost.push_back(std::move(callback));
    if (hold.state != HoldState::lost) return;
  }
  store_.call_back([callback = std::move(callback), cause = hold.cause] { callback(cause); });
}

void Watchdog::on_risk(Hold& hold, std::function<void(Risk)> callback) {
  const std::lock_guard lock{mutex_};
  if (hold.state == HoldState::held) listeners_of(hold).on_risk.push_back(std::move(callback));
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
  Notice notice{.hold = holds_[hold.place], .listeners = std::move(hold.listeners)};
  forget(hold);
  return notice;
}

void Watchdog::forget(Hold& hold) {
  auto last = std::move(holds_.back());
  holds_.pop_back();
  if (last.get() != &hold) find_place(std::move(last), hold.place);
}

Watchdog::Warning Watchdog::warning_of(Hold& hold, Risk risk) {
  hold.warned = true;
  Warning warning{.hold = holds_[hold.place], .risk = risk, .callbacks = {}};
  if (hold.listeners) warning.callbacks = hold.listeners->on_risk;
  return warning;
}

/// In a child: the holds are its parent's, and so were the timers.
void Watchdog::forget_parent() {
  if (std::exchange(forks_, fork_count()) == fork_count()) return;
  holds_.clear();
  timer_ = 0;
  wake_at_ = SteadyTime::max();
}

/// The timer that became superfluous; 0: none. Disarm it without the mutex: its callback may wait
/// for the mutex.
Clock::TimerId Watchdog::wake_by(SteadyTime when) {
  if (when >= wake_at_) return 0;
  const auto timer = clock_.at(when, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->wake();
  });
  wake_at_ = when;
  return std::exchange(timer_, timer);
}

void Watchdog::disarm(Clock::TimerId stale) {
  if (stale != 0) clock_.cancel(stale);
}

void Watchdog::wake() {
  Due due;
  SteadyTime now;
  SlotKeys unknown;  // which server answers there
  Clock::TimerId stale = 0;
  {
    const std::lock_guard lock{mutex_};
    forget_parent();
    now = clock_.steady();
    if (now < wake_at_) return;  // an earlier timer, overtaken by the cancel of it
    wake_at_ = SteadyTime::max();
    timer_ = 0;
    while (!holds_.empty() && holds_.front()->look_at <= now) {
      Hold& hold = *holds_.front();
      const SteadyTime again = look_at(hold, now, due);
      if (again != SteadyTime{}) plan(hold, again);
    }
    if (!holds_.empty()) stale = wake_by(holds_.front()->look_at);
    if (reconnection_) {
      unknown = slots_of(due.renewals);
      std::erase_if(unknown, [&](const auto& slot) { return servers_.contains(slot.first); });
    }
  }
  disarm(stale);
  for (auto& notice : due.notices) tell(std::move(notice));
  for (const auto& warning : due.warnings) warn(warning);
  renew_all(due.renewals, now);
  if (!unknown.empty()) spawn(learn_who_answers(std::move(unknown)));
}

void Watchdog::plan(Hold& hold, SteadyTime when) {
  hold.look_at = when;
  find_place(std::move(holds_[hold.place]), hold.place);
}

/// Puts `hold` into the heap, where `place` is empty.
void Watchdog::find_place(std::shared_ptr<Hold> hold, std::size_t place) {
  const auto put = [this](std::shared_ptr<Hold>&& one, std::size_t at) {
    one->place = static_cast<std::uint32_t>(at);
    holds_[at] = std::move(one);
  };
  while (place > 0) {
    const std::size_t above = (place - 1) / 2;
    if (holds_[above]->look_at <= hold->look_at) break;
    put(std::move(holds_[above]), std::exchange(place, above));
  }
  for (std::size_t below = 2 * place + 1; below < holds_.size(); below = 2 * place + 1) {
    if (below + 1 < holds_.size() && holds_[below + 1]->look_at < holds_[below]->look_at) ++below;
    if (hold->look_at <= holds_[below]->look_at) break;
    put(std::move(holds_[below]), std::exchange(place, below));
  }
  put(std::move(hold), place);
}

/// What is due for one hold at `now`. When to look again; nothing: it is over.
SteadyTime Watchdog::look_at(Hold& hold, SteadyTime now, Due& due) {
  const auto certain_until = hold.certain_until.load();
  if (now >= certain_until) {
    due.notices.push_back(
        end(hold, hold.unanswered || hold.renewing ? LostCause::unreachable : LostCause::expired));
    return {};
  }
  if (now >= hold.risk_at) {
    hold.risk_at = SteadyTime::max();
    due.warnings.push_back(warning_of(hold, Risk::unanswered));
  }
  if (now >= hold.renew_at) {
    if (!std::exchange(hold.renewing, true)) {
      if (!hold.unanswered) hold.renewal_due = hold.renew_at;  // else it is late since then
      due.renewals.push_back(holds_[hold.place]);
    }
    hold.renew_at = beat_after(now, hold.terms.interval());
    if (hold.awaited) hold.renew_at = std::min(hold.renew_at, now + renewed_for_waiters);
  }
  return std::min({hold.renew_at, hold.risk_at, certain_until});
}

SlotKeys Watchdog::slots_of(const Holds& holds) const {
  SlotKeys keys;
  for (const auto& hold : holds) {
    const auto& key = hold->resource->key();
    if (keys.try_emplace(slot_on(store_, key), key).second && !store_.is_sharded()) break;
  }
  return keys;
}

void Watchdog::reconnected() {
  SlotKeys asked;
  {
    const std::lock_guard lock{mutex_};
    asked = slots_of(holds_);
    if (asked.empty()) return servers_.clear();
  }
  spawn(find_out_who_answers(std::move(asked)));
}

Task<void> Watchdog::learn_who_answers(SlotKeys asked) {
  const auto self = shared_from_this();
  auto asking = server_identities(store_, std::move(asked));
  const auto answers = co_await asking;
  const std::lock_guard lock{mutex_};
  for (const auto& [slot, identity] : answers)
    if (!identity.empty()) servers_.try_emplace(slot, identity);
}

/// The connection was lost and is back, or slots have moved. Another server than before may answer:
/// its holds are uncertain until it has said that it knows them.
Task<void> Watchdog::find_out_who_answers(SlotKeys asked) {
  const auto self = shared_from_this();
  auto asking = server_identities(store_, std::move(asked));
  const auto answers = co_await asking;
  std::vector<Warning> warnings;
  {
    const std::lock_guard lock{mutex_};
    std::set<std::uint16_t> changed;
    for (const auto& [slot, identity] : answers)
      if (identity.empty() || std::exchange(servers_[slot], identity) != identity)
        changed.insert(slot);
    if (!changed.empty())
      for (const auto& hold : holds_)
        if (changed.contains(slot_on(store_, hold->resource->key())))
          warnings.push_back(warning_of(*hold, Risk::uncertain));
  }
  for (const auto& warning : warnings) warn(warning);
  renew_soon();
}

void Watchdog::renew_soon() {
  Clock::TimerId stale = 0;
  {
    const std::lock_guard lock{mutex_};
    const auto now = clock_.steady();
    const Holds all = holds_;
    for (const auto& hold : all) {
      if (!hold->terms.watched) continue;
      hold->renew_at = now;
      plan(*hold, now);
    }
    if (!holds_.empty()) stale = wake_by(now);
  }
  disarm(stale);
}

/// Holds of very different leases are renewed apart, since the shortest lease bounds the wait for a
/// reply; and those of which replicas have to know, in a cluster slot by slot: its nodes have
/// replicas of their own, of which the answer for many slots knows the least alone.
void Watchdog::renew_all(const Holds& due, SteadyTime sent) {
  std::map<std::tuple<int, Durability, std::uint16_t>, Holds> alike;  // int: bits of the lease
  for (const auto& hold : due) {
    const int width = std::bit_width(static_cast<std::uint64_t>(hold->terms.lease.count()));
    const Durability durability = hold->resource->durability();
    const bool apart = durability.replicas > 0 && store_.is_sharded();
    const std::uint16_t slot = apart ? slot_on(store_, hold->resource->key()) : 0;
    alike[{width, durability, slot}].push_back(hold);
  }
  for (auto& [terms, holds] : alike)
    spawn(renew(std::move(holds), sent, std::get<Durability>(terms)));
}

Task<void> Watchdog::renew(Holds due, SteadyTime sent, Durability durability) {
  const auto self = shared_from_this();  // the last hold may end meanwhile
  // One script for up to a hundred holds of one kind, and of one slot where keys are sharded.
  const auto script_of = [](const auto& hold) { return &hold->resource->renewal(); };
  const auto slot_of = [this](const auto& hold) { return slot_on(store_, hold->resource->key()); };
  if (store_.is_sharded()) std::ranges::stable_sort(due, {}, slot_of);
  std::vector<Holds> parts;
  milliseconds shortest = milliseconds::max();
  for (const auto& hold : due) {
    shortest = std::min(shortest, hold->terms.lease);
    auto part = parts.rbegin();
    const auto is_of_slot = [&] {
      return part != parts.rend() && slot_of(part->front()) == slot_of(hold);
    };
    while (is_of_slot() && script_of(part->front()) != script_of(hold)) ++part;
    if (is_of_slot() && part->size() < Resource::holds_a_renewal)
      part->push_back(hold);
    else
      parts.push_back({hold});
  }
  Batch batch;
  for (const auto& part : parts) {
    Renewal words;
    for (const auto& hold : part)
      hold->resource->add_to(words, *hold, std::max(entries(*hold), 1U));
    const std::vector<std::string_view> keys{words.keys.begin(), words.keys.end()};
    const std::vector<std::string_view> args{words.args.begin(), words.args.end()};
    batch.add(*script_of(part.front()), keys, args);
  }
  if (durability.replicas > 0) add_wait(batch, durability);
  const CallOptions options{.timeout = std::max(shortest / 3, milliseconds{10}),
                            .repeatable = true};
  std::vector<Value> answers;
  try {
    answers = co_await store_.run(std::move(batch), options);
  } catch (const std::exception& failure) {
    log(LogLevel::warning, "renewing " + std::to_string(due.size()) + " locks: " + failure.what());
  }
  const bool synced = durability.replicas == 0 || copies_of(answers).are_enough(durability);
  answers.resize(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) take_answer(parts[i], answers[i], sent, synced);
}

/// `synced`: enough replicas have it. Else it is as if the server had not prolonged anything.
void Watchdog::take_answer(const Holds& part, const Value& answer, SteadyTime sent, bool synced) {
  if (!is_answer_for(part.size(), answer)) {
    if (!answer.is_null())
      log(LogLevel::warning, "renewing locks: the server said " + to_string(answer));
    postpone(part);
    return;
  }
  Holds unanswered;  // nil: unknown, as when half of a quorum is silent
  for (std::size_t i = 0; i < part.size(); ++i) {
    const Value& word = answer.as_items()[i];
    if (word.is_null() || (word.as_integer() == 1 && !synced)) {
      unanswered.push_back(part[i]);
      continue;
    }
    SteadyTime planned;
    {
      const std::lock_guard lock{mutex_};
      part[i]->renewing = false;
      planned = part[i]->renewal_due;
    }
    if (word.as_integer() == 1) {
      if (!confirm(part[i], sent)) continue;
      count(metrics().lock_renewals);
      metrics().lock_renewal_lag.observe(clock_.steady() - planned);
    } else {
      lose(part[i], LostCause::taken);
    }
  }
  if (!unanswered.empty()) postpone(unanswered);
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
      plan(*hold, std::min(hold->look_at, hold->renew_at));
      next = std::min(next, hold->renew_at);
    }
    if (next != SteadyTime::max()) stale = wake_by(next);
  }
  disarm(stale);
}

void Watchdog::tell(Notice notice) {
  count(metrics().lock_lost);
  Hold& hold = *notice.hold;
  const LostCause cause = hold.cause;
  log(LogLevel::warning,
      "lock " + quoted(hold.resource->key()) + " was lost: " + std::string{to_string(cause)});
  if (notice.listeners) {
    if (auto& stop = notice.listeners->stop)
      store_.call_back([stop = *std::move(stop)]() mutable { stop.request_stop(); });
    for (auto& callback : notice.listeners->on_lost)
      store_.call_back([callback = std::move(callback), cause] { callback(cause); });
  }
  hold.resource->ended(hold);
}

void Watchdog::warn(const Warning& warning) {
  const Risk risk = warning.risk;
  log(LogLevel::warning, "lock " + quoted(warning.hold->resource->key()) +
                             " is at risk: " + std::string{to_string(risk)});
  for (const auto& callback : warning.callbacks)
    store_.call_back([callback, risk] { callback(risk); });
}

}  // namespace sluice::lock
