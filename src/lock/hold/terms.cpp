#include <string>

#include "lock/hold/hold.hpp"

namespace sluice::lock {

using std::chrono::milliseconds;

Terms Terms::of(milliseconds lease, std::optional<milliseconds> margin, bool watched) {
  constexpr milliseconds shortest{10};
  constexpr milliseconds longest = std::chrono::hours{24};
  if (lease < shortest || lease > longest)
    throw Error{Errc::bad_argument, "a lease lies between 10 ms and 24 h, not at " +
                                        std::to_string(lease.count()) + " ms"};
  const auto kept = margin.value_or(lease / 100 + milliseconds{2});
  if (kept < milliseconds{0} || kept >= lease)
    throw Error{Errc::bad_argument, "a margin lies between 0 and its lease, not at " +
                                        std::to_string(kept.count()) + " ms"};
  return {.lease = lease, .margin = kept, .watched = watched};
}

}  // namespace sluice::lock
