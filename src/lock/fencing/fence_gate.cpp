#include "lock/fencing/token.hpp"
#include "lock/hold/steps.hpp"
#include "sluice/fencing.hpp"
#include "sluice/metrics.hpp"

namespace sluice {

FenceGate::FenceGate(std::size_t most) : most_(most) {
  if (most == 0) throw Error{Errc::bad_argument, "a fence gate needs room for one resource"};
}

std::expected<void, StaleToken> FenceGate::admit(std::string_view resource, FencingToken token) {
  lock::check_token(token);
  const std::lock_guard lock{mutex_};
  const auto known = largest_.find(resource);
  if (known == largest_.end()) {
    if (largest_.size() >= most_)
      throw Error{Errc::out_of_space, "the fence gate knows " + std::to_string(most_) +
                                          " resources and has no room for " +
                                          lock::quoted(std::string{resource}) +
                                          ": forget those that nobody writes, or allow more"};
    largest_.emplace(resource, token);
    return {};
  }
  if (token < known->second) {
    count(metrics().fence_stale);
    return std::unexpected{StaleToken{known->second}};
  }
  known->second = token;
  return {};
}

bool FenceGate::forget(std::string_view resource) {
  const std::lock_guard lock{mutex_};
  const auto known = largest_.find(resource);
  if (known == largest_.end()) return false;
  largest_.erase(known);
  return true;
}

std::size_t FenceGate::size() const {
  const std::lock_guard lock{mutex_};
  return largest_.size();
}

}  // namespace sluice
