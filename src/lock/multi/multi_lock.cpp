#include "sluice/multi_lock.hpp"

#include "lock/hold/owner.hpp"
#include "lock/multi/group.hpp"
#include "lock/multi/holding.hpp"
#include "lock/multi/order.hpp"
#include "lock/wait/waiting.hpp"
#include "sluice/metrics.hpp"

namespace sluice {

using std::chrono::milliseconds;

/// The names that one script takes.
struct MultiLock::Step {
  std::shared_ptr<lock::Group> group;
  std::vector<std::size_t> places;  // among the names as given
};

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

MultiLock::MultiLock(std::vector<MultiName> names, MultiLockOptions options)
    : label_(options.label.empty() ? lock::program_name() : std::move(options.label)),
      clock_(clock_of(names)),
      names_(names.size()) {
  const lock::MutexTerms terms{
      .terms = lock::Terms::of(options.lease, options.margin, options.watchdog),
      .durability = options.durability,
      .hand_off = {}};
  for (auto& part : lock::in_order(names, options.slot_by_slot))
    steps_.push_back(
        {std::make_shared<lock::Group>(*part.store, part.names, terms), std::move(part.places)});
}

MultiLock::~MultiLock() = default;

Task<MultiHeld> MultiLock::acquire() {
  auto entering = enter(lock::for_ever, {});
  auto held = co_await entering;
  co_return std::move(held).value();
}

Task<std::optional<MultiHeld>> MultiLock::try_acquire(milliseconds wait, std::stop_token stop) {
  return enter(wait, std::move(stop));
}

/// One step after the other, each holding what the steps before have taken. Null: one was refused;
/// what was taken is given back.
Task<std::unique_ptr<lock::MultiHolding>> MultiLock::enter_each(std::optional<SteadyTime> until,
                                                                std::stop_token stop) {
  auto holding = std::make_unique<lock::MultiHolding>(names_);
  const std::string owner = lock::new_owner_id();
  const std::string holder = lock::holder_text(false, label_);
  for (const auto& [group, places] : steps_) {
    lock::Identity who{.owner = owner, .request = lock::new_request_id(), .holder = holder};
    auto entering = group->enter(std::move(who), until, stop);
    lock::Holds holds = co_await entering;
    if (holds.empty()) co_return nullptr;
    holding->add(group, std::move(holds), places);
  }
  co_return holding;
}

Task<std::optional<MultiHeld>> MultiLock::enter(milliseconds wait, std::stop_token stop) {
  const SteadyTime began = clock_.steady();
  std::optional<SteadyTime> until;
  if (wait > milliseconds{0} && !stop.stop_requested()) until = Clock::add(clock_.steady(), wait);
  for (;;) {
    auto entering = enter_each(until, stop);
    auto holding = co_await entering;
    if (!holding) break;
    if (holding->valid_for() > std::chrono::nanoseconds{0}) {
      metrics().lock_wait.observe(clock_.steady() - began);
      co_return MultiHeld{std::move(holding)};
    }
    // The first were lost while the last were waited for: from the beginning, as far as there is
    // time.
    if (!until || clock_.steady() >= *until || stop.stop_requested()) break;
  }
  count(metrics().lock_refused);
  co_return std::nullopt;
}

}  // namespace sluice
