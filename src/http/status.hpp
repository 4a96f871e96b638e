/// The status codes of answers; the table is status.def.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace sluice::http {

struct Status {
  int code;
  std::string_view reason;
};

inline constexpr auto statuses = std::to_array<Status>({
#define STATUS(code, reason) {code, reason},
#include "http/status.def"
#undef STATUS
});

/// The row of a code; that of 500 for one that is not in the table.
constexpr std::size_t status_row(int code) noexcept {
  std::size_t internal_error = 0;
  for (std::size_t row = 0; row < statuses.size(); ++row) {
    if (statuses[row].code == code) return row;
    if (statuses[row].code == 500) internal_error = row;
  }
  return internal_error;
}

}  // namespace sluice::http
