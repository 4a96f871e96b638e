#include "cache/renewal.hpp"

#include <fmt/format.h>

#include <utility>

#include "sluice/log.hpp"
#include "sluice/metrics.hpp"

namespace sluice::cache {

Renewal::Renewal(std::shared_ptr<Common> common, std::string value_key, std::string owner)
    : common_(std::move(common)),
      value_key_(std::move(value_key)),
      owner_(std::move(owner)),
      clock_(common_->clock()) {}

void Renewal::begin() {
  until_ = Clock::add(clock_.steady(), common_->options.longest_load);
  plan();
}

void Renewal::plan() {
  const SteadyTime when = clock_.steady() + common_->options.lease / 3;
  const std::lock_guard lock{mutex_};
  if (when >= until_) return;
  timer_ = clock_.at(when, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) spawn(self->renew());
  });
}

Task<void> Renewal::renew() {
  const auto self = shared_from_this();
  const UnderWay::Scope scope{common_->under_way};
  {
    const std::lock_guard lock{mutex_};
    timer_ = 0;  // it is this one
  }
  if (common_->closed) co_return;
  bool is_ours = true;
  try {
    auto renewing = common_->wire.renew(value_key_, owner_);
    is_ours = co_await renewing;
    if (is_ours) count(metrics().cache_lease_renewals);
  } catch (const Error& failure) {
    log(LogLevel::debug,
        fmt::format("the lease of '{}' was not renewed: {}", shown(value_key_), failure.message()));
  }
  if (is_ours) plan();
}

Renewal::~Renewal() {
  if (timer_ != 0) clock_.cancel(timer_);
}

}  // namespace sluice::cache
