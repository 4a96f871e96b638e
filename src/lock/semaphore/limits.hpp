/// Limits of the numbers that callers give.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::lock {

/// Throws Error (bad_argument) unless `least` <= `number` <= `most`.
void check_number(std::string_view what, std::int64_t number, std::int64_t least,
                  std::int64_t most);

}  // namespace sluice::lock
