#include "sluice/multi_lock.hpp"

#include <memory>

#include "lock/hold/owner.hpp"
#include "lock/multi/group.hpp"
#include "lock/multi/lock_order.hpp"
#include "lock/multi/multi_held.hpp"
#include "lock/wait/waiting.hpp"
#include "sluice/metrics.hpp"
#include "store/durable.hpp"

namespace sluice {

using std::chrono::milliseconds;

namespace {

std::vector<MultiName> names_of(Store& store, const std::vector<std::string>& names) {
  std::vector<MultiName> all;
  all.reserve(names.size());
  for (const auto& name : names) all.push_back({store, name});
  return all;
}

Clock& clock_of(const std::vector<MultiName>& names) {
  if (names.empty()) throw Error{Errc::bad_argument, "a lock of many names was given none"};
  return names.front().store.clock();
}

}  // namespace

MultiLock::MultiLock(Store& store, const std::vector<std::string>& names, MultiLockOptions options)
    : MultiLock(names_of(store, names), std::move(options)) {}

/// What all acquires share. Threads: any.
class MultiLock::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(const std::vector<MultiName>& names, MultiLockOptions options);

  Task<std::optional<MultiHeld>> try_acquire(milliseconds wait, std::stop_token stop);

 private:
  /// The names that one script takes.
  struct Step {
    std::shared_ptr<lock::Group> group;
    std::vector<std::size_t> places;  // among the names as given
  };
  Task<std::unique_ptr<lock::MultiHold>> enter_each(std::optional<SteadyTime> until,
                                                    std::stop_token stop);

  const std::string label_;
  Clock& clock_;
  std::vector<Step> steps_;  // in the order of waiting
  const std::size_t names_;
};

MultiLock::Core::Core(const std::vector<MultiName>& names, MultiLockOptions options)
    : label_(lock::label_or_program(std::move(options.label))),
      clock_(clock_of(names)),
      names_(names.size()) {
  const lock::MutexTerms terms{
      .terms = lock::Terms::of(options.lease, options.margin, options.watchdog),
      .durability = checked(options.durability),
      .hand_off = {}};
  for (auto& group : lock::in_lock_order(names, options.slot_by_slot))
    steps_.push_back(
        {std::make_shared<lock::Group>(*group.store, group.names, terms), std::move(group.places)});
}

/// Takes one step after the other, and holds what the steps before have taken. Null: a step was
/// refused; what was taken is given back.
Task<std::unique_ptr<lock::MultiHold>> MultiLock::Core::enter_each(std::optional<SteadyTime> until,
                                                                   std::stop_token stop) {
  const auto self = shared_from_this();
  auto holding = std::make_unique<lock::MultiHold>(names_);
  const std::string owner = lock::new_owner_id();
  const std::string holder = lock::holder_text(false, label_);
  for (const auto& [group, places] : steps_) {
    lock::Identity who{owner, lock::new_request_id(), holder};
    lock::Holds holds = co_await group->enter(std::move(who), until, stop);
    if (holds.empty()) co_return nullptr;
    holding->add(group, std::move(holds), places);
  }
  co_return holding;
}

Task<std::optional<MultiHeld>> MultiLock::Core::try_acquire(milliseconds wait,
                                                            std::stop_token stop) {
  const auto self = shared_from_this();
  const SteadyTime began = clock_.steady();
  lock::StopOrDrop stopping{stop};
  stop = co_await stopping;
  std::optional<SteadyTime> until;
  if (wait > milliseconds{0} && !stop.stop_requested()) until = Clock::add(clock_.steady(), wait);
  for (;;) {
    auto holding = co_await enter_each(until, stop);
    if (!holding) break;
    if (holding->valid_for() > std::chrono::nanoseconds{0}) {
      metrics().lock_wait.observe(clock_.steady() - began);
      co_return MultiHeld{std::move(holding)};
    }
    // The first holds were lost during the wait for the last: begin again, if there is time.
    if (!until || clock_.steady() >= *until || stop.stop_requested()) break;
  }
  count(metrics().lock_refused);
  co_return std::nullopt;
}

MultiLock::MultiLock(std::vector<MultiName> names, MultiLockOptions options)
    : core_(std::make_shared<Core>(names, std::move(options))) {}

MultiLock::~MultiLock() = default;

Task<MultiHeld> MultiLock::acquire() {
  const auto core = core_;
  lock::StopOrDrop stopping{{}};
  std::stop_token stop = co_await stopping;
  auto held = co_await core->try_acquire(lock::for_ever, std::move(stop));
  co_return std::move(held).value();
}

Task<std::optional<MultiHeld>> MultiLock::try_acquire(milliseconds wait, std::stop_token stop) {
  return core_->try_acquire(wait, std::move(stop));
}

}  // namespace sluice
