#include "cache/breaker.hpp"

#include "store/reply_error.hpp"

namespace sluice::cache {

bool is_away(const Error& failure) noexcept {
  return failure.errc() == Errc::out_of_space || sluice::is_outage(failure);
}

}  // namespace sluice::cache
