#include "lock/semaphore/limits.hpp"

#include <fmt/format.h>

#include "sluice/error.hpp"

namespace sluice::lock {

void check_number(std::string_view what, std::int64_t number, std::int64_t least,
                  std::int64_t most) {
  if (number < least || number > most)
    throw Error{Errc::bad_argument,
                fmt::format("{} lie between {} and {}, not at {}", what, least, most, number)};
}

}  // namespace sluice::lock
