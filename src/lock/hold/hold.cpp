#include "lock/hold/hold.hpp"

#include <string>

#include "lock/hold/steps.hpp"
#include "lock/hold/watchdog.hpp"
#include "sluice/held.hpp"
#include "sluice/store.hpp"

namespace sluice {

lock::Terms lock::Terms::of(std::chrono::milliseconds lease,
                            std::optional<std::chrono::milliseconds> margin, bool watched) {
  using std::chrono::milliseconds;
  constexpr milliseconds shortest{10};
  constexpr milliseconds longest = std::chrono::hours{24};
  if (lease < shortest || lease > longest)
    throw Error{Errc::bad_argument, "a lease lies between 10 ms and 24 h, not at " +
                                        std::to_string(lease.count()) + " ms"};
  const auto kept = margin.value_or(lease / 100 + Terms::rounding);
  if (kept < milliseconds{0} || kept >= lease)
    throw Error{Errc::bad_argument, "a margin lies between 0 and its lease, not at " +
                                        std::to_string(kept.count()) + " ms"};
  return {.lease = lease, .margin = kept, .watched = watched};
}

std::string_view to_string(LostCause cause) noexcept {
  switch (cause) {
    case LostCause::expired: return "its lease ran out here";
    case LostCause::unreachable: return "renewals failed until its lease ran out here";
    case LostCause::taken: return "the server does not know the hold any more";
  }
  return "?";
}

std::string_view to_string(Risk risk) noexcept {
  switch (risk) {
    case Risk::unanswered: return "no renewal has succeeded for two thirds of its lease";
    case Risk::uncertain: return "another server answers than the one that granted it";
  }
  return "?";
}

std::string_view to_string(ReleaseOutcome::Kind kind) noexcept {
  switch (kind) {
    case ReleaseOutcome::Kind::released: return "released";
    case ReleaseOutcome::Kind::still_held: return "still held";
    case ReleaseOutcome::Kind::not_held: return "not held";
  }
  return "?";
}

Held& Held::operator=(Held&& other) noexcept {
  if (this != &other) {
    abandon();
    hold_ = std::move(other.hold_);
  }
  return *this;
}

Held::~Held() { abandon(); }

void Held::abandon() noexcept {
  const auto hold = std::move(hold_);
  if (hold && hold->forks == fork_count()) lock::leave_in_background(hold);
}

/// In a child of fork() the hold is its parent's, and so are the threads that may have the mutexes.
bool Held::is_ours() const noexcept { return hold_ && hold_->forks == fork_count(); }

bool Held::valid() const noexcept { return valid_for() > std::chrono::nanoseconds{0}; }

std::chrono::nanoseconds Held::valid_for() const noexcept {
  if (!is_ours() || hold_->state.load() != lock::HoldState::held) return {};
  const auto left = hold_->certain_until.load() - hold_->watchdog().clock().steady();
  return std::max<std::chrono::nanoseconds>(left, std::chrono::nanoseconds{0});
}

FencingToken Held::token() const noexcept { return hold_ ? hold_->token : FencingToken{}; }

OwnerId Held::owner() const { return hold_ ? OwnerId{std::string{hold_->who.owner()}} : OwnerId{}; }

std::uint32_t Held::entries() const { return is_ours() ? hold_->watchdog().entries(*hold_) : 0; }

Task<ReleaseOutcome> Held::release() {
  auto hold = std::move(hold_);
  if (!hold || hold->forks != fork_count())
    co_return ReleaseOutcome{.kind = ReleaseOutcome::Kind::not_held};
  co_return co_await lock::leave(std::move(hold));
}

std::stop_token Held::lost() const {
  return is_ours() ? hold_->watchdog().lost(*hold_) : std::stop_token{};
}

void Held::on_lost(std::function<void(LostCause)> callback) {
  if (is_ours()) hold_->watchdog().on_lost(*hold_, std::move(callback));
}

void Held::on_risk(std::function<void(Risk)> callback) {
  if (is_ours()) hold_->watchdog().on_risk(*hold_, std::move(callback));
}

}  // namespace sluice
