#include "proxy/health/health.hpp"

#include <algorithm>
#include <utility>

namespace sluice::proxy {

namespace {

struct FailureRow {
  Failure failure;
  bool counts;
  std::string_view text;
};
constexpr FailureRow failure_rows[] = {
#define FAILURE(failure, counts, text, help) {Failure::failure, counts, text},
#include "proxy/health/failures.def"
#undef FAILURE
};

const FailureRow& row_of(Failure failure) noexcept {
  return *std::ranges::find(failure_rows, failure, &FailureRow::failure);
}

}  // namespace

bool counts_against_server(Failure failure) noexcept { return row_of(failure).counts; }
std::string_view text_of(Failure failure) noexcept { return row_of(failure).text; }

HealthPolicy health_policy(const PoolSettings& pool) {
  const bool strict = pool.compat == Compat::strict;
  return {.gives_up = pool.auto_eject_hosts || pool.on_failure == OnFailure::fail,
          .failure_limit = pool.server_failure_limit,
          .retry = pool.server_retry_timeout,
          .checked = pool.health_check && !strict,
          .each_counts = strict};
}

void Health::reset_failures() noexcept {
  const std::lock_guard lock{mutex_};
  failures_.store(0, std::memory_order_relaxed);
}

bool Health::failed(SteadyTime since, SteadyTime now) {
  const std::lock_guard lock{mutex_};
  if (!policy_.gives_up || !well()) return false;
  if (!policy_.each_counts && since < last_failure_) return false;
  last_failure_ = now;
  const auto failures = failures_.load(std::memory_order_relaxed) + 1;
  failures_.store(failures, std::memory_order_relaxed);
  if (failures < policy_.failure_limit) return false;
  failures_.store(0, std::memory_order_relaxed);
  retry_at_ = now + policy_.retry;
  well_.store(false, std::memory_order_release);
  version_.fetch_add(1, std::memory_order_release);
  return true;
}

SteadyTime Health::retry_at() const {
  const std::lock_guard lock{mutex_};
  return retry_at_;
}

bool Health::claim_check(SteadyTime now) {
  const std::lock_guard lock{mutex_};
  if (well() || !policy_.checked || now < retry_at_) return false;
  retry_at_ = now + policy_.retry;  // if the answer never comes, the next check is due then
  return true;
}

bool Health::checked(bool good, SteadyTime now) {
  const std::lock_guard lock{mutex_};
  if (well()) return false;
  if (good)
    turn_well();
  else
    retry_at_ = now + policy_.retry;
  return good;
}

bool Health::come_back(SteadyTime now) {
  const std::lock_guard lock{mutex_};
  if (well() || policy_.checked || now < retry_at_) return false;
  turn_well();
  return true;
}

void Health::turn_well() {
  retry_at_ = SteadyTime::max();
  failures_.store(0, std::memory_order_relaxed);
  well_.store(true, std::memory_order_release);
  version_.fetch_add(1, std::memory_order_release);
}

bool Health::set_policy(HealthPolicy policy) {
  const std::lock_guard lock{mutex_};
  policy_ = policy;
  if (policy_.gives_up || well()) return false;
  turn_well();
  return true;
}

HealthPolicy Health::policy() const {
  const std::lock_guard lock{mutex_};
  return policy_;
}

bool ToldChanges::take(SteadyTime now) {
  if (left_ == at_once) since_ = now;
  const auto grown = (now - since_) / interval;
  left_ = static_cast<int>(std::min<std::int64_t>(left_ + grown, at_once));
  since_ += grown * interval;
  if (left_ == 0) return false;
  --left_;
  return true;
}

std::optional<std::size_t> ToldChanges::note(SteadyTime now) {
  const std::lock_guard lock{mutex_};
  if (take(now)) return std::exchange(untold_, 0);
  ++untold_;
  return std::nullopt;
}

std::optional<std::size_t> ToldChanges::overdue(SteadyTime now) {
  const std::lock_guard lock{mutex_};
  if (untold_ == 0 || !take(now)) return std::nullopt;
  return std::exchange(untold_, 0);
}

bool ToldChanges::is_due(SteadyTime now) {
  const std::lock_guard lock{mutex_};
  if (told_ && now - *told_ < std::chrono::seconds{1}) return false;
  told_ = now;
  return true;
}

}  // namespace sluice::proxy
