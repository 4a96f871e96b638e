#include <algorithm>

#include "lock/multi/holding.hpp"

namespace sluice {

MultiHeld::MultiHeld() noexcept = default;
MultiHeld::MultiHeld(std::unique_ptr<lock::MultiHolding> holding) noexcept
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
  return holding_ ? OwnerId{holding_->holds().front()->who.owner} : OwnerId{};
}

Task<ReleaseOutcome> MultiHeld::release() {
  using Kind = ReleaseOutcome::Kind;
  const auto holding = std::move(holding_);
  if (!holding || holding->is_inherited()) co_return ReleaseOutcome{.kind = Kind::not_held};
  auto releasing = holding->release();
  const bool all = co_await releasing;
  co_return ReleaseOutcome{.kind = all ? Kind::released : Kind::not_held};
}

std::stop_token MultiHeld::lost() const { return holding_ ? holding_->lost() : std::stop_token{}; }

void MultiHeld::on_lost(std::function<void(LostCause)> callback) {
  if (holding_) holding_->on_lost(std::move(callback));
}

void MultiHeld::on_risk(std::function<void(Risk)> callback) {
  if (holding_) holding_->on_risk(callback);
}

}  // namespace sluice
