#include "lock/multi/multi_held.hpp"

#include <algorithm>

#include "lock/hold/watchdog.hpp"
#include "sluice/when_all.hpp"

namespace sluice {
namespace lock {

using std::chrono::nanoseconds;

void MultiHold::add(std::shared_ptr<Group> group, Holds holds,
                    const std::vector<std::size_t>& places) {
  for (std::size_t i = 0; i < holds.size(); ++i) names_[places[i]] = holds[i];
  taken_.push_back({std::move(group), std::move(holds)});
}

bool MultiHold::is_inherited() const noexcept {
  return !taken_.empty() && taken_.front().holds.front()->forks != fork_count();
}

MultiHold::~MultiHold() {
  if (is_inherited()) return;
  for (auto& taken : taken_) taken.group->leave_in_background(std::move(taken.holds));
}

nanoseconds MultiHold::valid_for() const noexcept {
  if (taken_.empty() || is_inherited()) return {};
  nanoseconds least = nanoseconds::max();
  for (const auto& taken : taken_) {
    const SteadyTime now = taken.holds.front()->watchdog().clock().steady();
    for (const auto& hold : taken.holds) {
      if (hold->state.load() != HoldState::held) return {};
      least = std::min<nanoseconds>(least, hold->certain_until.load() - now);
    }
  }
  return std::max(least, nanoseconds{0});
}

/// All groups are released; then the first failure is thrown.
Task<bool> MultiHold::release() {
  std::vector<Task<bool>> leaving;
  for (auto& taken : taken_) leaving.push_back(taken.group->leave(std::move(taken.holds)));
  const std::vector<Taken> taken = std::exchange(taken_, {});  // keeps the groups at work alive
  const std::vector<bool> released = co_await when_all(std::move(leaving));
  co_return std::ranges::all_of(released, std::identity{});
}

void MultiHold::on_lost(std::function<void(LostCause)> callback) {
  struct Once {
    std::function<void(LostCause)> callback;
    std::atomic_flag told;
  };
  const auto once = std::make_shared<Once>(std::move(callback));
  for (const auto& hold : names_)
    hold->watchdog().on_lost(*hold, [once](LostCause cause) {
      if (!once->told.test_and_set()) once->callback(cause);
    });
}

std::stop_token MultiHold::lost() {
  std::stop_source stop;
  {
    const std::lock_guard lock{mutex_};
    if (stop_) return stop_->get_token();
    stop_ = stop;
  }
  on_lost([stop](LostCause) mutable { stop.request_stop(); });
  return stop.get_token();
}

void MultiHold::on_risk(const std::function<void(Risk)>& callback) {
  for (const auto& hold : names_) hold->watchdog().on_risk(*hold, callback);
}

}  // namespace lock

MultiHeld::MultiHeld() noexcept = default;
MultiHeld::MultiHeld(std::unique_ptr<lock::MultiHold> holding) noexcept
    : holding_(std::move(holding)) {}
MultiHeld::MultiHeld(MultiHeld&&) noexcept = default;
MultiHeld& MultiHeld::operator=(MultiHeld&&) noexcept = default;
MultiHeld::~MultiHeld() = default;

bool MultiHeld::valid() const noexcept { return valid_for() > std::chrono::nanoseconds{0}; }

std::chrono::nanoseconds MultiHeld::valid_for() const noexcept {
  return holding_ ? holding_->valid_for() : std::chrono::nanoseconds{0};
}

std::vector<MultiHeld::Token> MultiHeld::tokens() const {
  std::vector<Token> tokens;
  if (!holding_) return tokens;
  for (const auto& hold : holding_->holds()) tokens.push_back({hold->resource->key(), hold->token});
  return tokens;
}

FencingToken MultiHeld::token(std::string_view name) const noexcept {
  if (!holding_) return {};
  const auto& holds = holding_->holds();
  const auto found =
      std::ranges::find_if(holds, [&](const auto& hold) { return hold->resource->key() == name; });
  return found == holds.end() ? FencingToken{} : (*found)->token;
}

OwnerId MultiHeld::owner() const {
  return holding_ ? OwnerId{std::string{holding_->holds().front()->who.owner()}} : OwnerId{};
}

Task<ReleaseOutcome> MultiHeld::release() {
  using Kind = ReleaseOutcome::Kind;
  const auto holding = std::move(holding_);
  if (!holding || holding->is_inherited()) co_return ReleaseOutcome{.kind = Kind::not_held};
  const bool all = co_await holding->release();
  co_return ReleaseOutcome{.kind = all ? Kind::released : Kind::not_held};
}

bool MultiHeld::is_ours() const noexcept { return holding_ && !holding_->is_inherited(); }

std::stop_token MultiHeld::lost() const { return is_ours() ? holding_->lost() : std::stop_token{}; }

void MultiHeld::on_lost(std::function<void(LostCause)> callback) {
  if (is_ours()) holding_->on_lost(std::move(callback));
}

void MultiHeld::on_risk(std::function<void(Risk)> callback) {
  if (is_ours()) holding_->on_risk(callback);
}

}  // namespace sluice
