#include "lock/multi/holding.hpp"

#include <algorithm>

#include "lock/hold/watchdog.hpp"

namespace sluice::lock {

using std::chrono::nanoseconds;

void MultiHolding::add(std::shared_ptr<Group> group, Holds holds,
                       const std::vector<std::size_t>& places) {
  for (std::size_t i = 0; i < holds.size(); ++i) names_[places[i]] = holds[i];
  parts_.push_back({std::move(group), std::move(holds)});
}

bool MultiHolding::is_inherited() const noexcept {
  return !parts_.empty() && parts_.front().holds.front()->forks != fork_count();
}

MultiHolding::~MultiHolding() {
  if (is_inherited()) return;
  for (auto& part : parts_) part.group->leave_in_background(std::move(part.holds));
}

nanoseconds MultiHolding::valid_for() const noexcept {
  if (parts_.empty() || is_inherited()) return {};
  nanoseconds least = nanoseconds::max();
  for (const auto& part : parts_) {
    const SteadyTime now = part.holds.front()->watchdog->clock().steady();
    for (const auto& hold : part.holds) {
      if (hold->state.load() != HoldState::held) return {};
      least = std::min<nanoseconds>(least, hold->certain_until.load() - now);
    }
  }
  return std::max(least, nanoseconds{0});
}

/// All parts are tried; the first failure is thrown then.
Task<bool> MultiHolding::release() {
  std::vector<Task<bool>> leaving;
  for (auto& part : parts_) leaving.push_back(part.group->leave(std::move(part.holds)));
  const std::vector<Part> parts = std::exchange(parts_, {});  // whose groups are at work
  auto all = when_all(std::move(leaving));
  const std::vector<bool> released = co_await all;
  co_return std::ranges::all_of(released, std::identity{});
}

void MultiHolding::on_lost(std::function<void(LostCause)> callback) {
  struct Once {
    std::function<void(LostCause)> callback;
    std::atomic_flag told;
  };
  const auto once = std::make_shared<Once>(std::move(callback));
  for (const auto& hold : names_)
    hold->watchdog->on_lost(*hold, [once](LostCause cause) {
      if (!once->told.test_and_set()) once->callback(cause);
    });
}

std::stop_token MultiHolding::lost() {
  std::stop_source stop;
  {
    const std::lock_guard lock{mutex_};
    if (stop_) return stop_->get_token();
    stop_ = stop;
  }
  on_lost([stop](LostCause) mutable { stop.request_stop(); });
  return stop.get_token();
}

void MultiHolding::on_risk(const std::function<void(Risk)>& callback) {
  for (const auto& hold : names_) hold->watchdog->on_risk(*hold, callback);
}

}  // namespace sluice::lock
