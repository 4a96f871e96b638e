#include "cache/breaker.hpp"

#include <algorithm>
#include <string_view>

namespace sluice::cache {

bool is_outage(const Error& failure) noexcept {
  switch (failure.errc()) {
    case Errc::connection:
    case Errc::timeout:
    case Errc::read_only:
    case Errc::out_of_space: return true;
    case Errc::server: break;
    default: return false;
  }
  static constexpr std::string_view states[] = {"LOADING ", "BUSY ", "MASTERDOWN ", "CLUSTERDOWN "};
  return std::ranges::any_of(states, [&](std::string_view state) {
    return failure.message().find(state) != std::string::npos;
  });
}

}  // namespace sluice::cache
