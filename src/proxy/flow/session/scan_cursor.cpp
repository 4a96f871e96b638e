#include "proxy/flow/session/scan_cursor.hpp"

#include <charconv>
#include <limits>

namespace sluice::proxy {
namespace {

constexpr std::uint64_t most_cursor =
    std::numeric_limits<std::uint64_t>::max() >> ScanCursor::place_bits;

std::optional<std::uint64_t> number(std::string_view text) noexcept {
  std::uint64_t value = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (wrong != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<ScanCursor> read_scan_cursor(std::string_view text, std::size_t servers) noexcept {
  const auto value = number(text);
  if (!value) return std::nullopt;
  const ScanCursor cursor{.place = *value & (ScanCursor::most_servers - 1),
                          .cursor = *value >> ScanCursor::place_bits};
  if (cursor.place >= servers) return std::nullopt;
  return cursor;
}

std::optional<std::string> next_scan_cursor(std::size_t place, std::string_view cursor,
                                            std::size_t servers) {
  const auto value = number(cursor);
  if (!value || *value > most_cursor) return std::nullopt;
  if (*value == 0 && ++place == servers) return "0";
  return std::to_string(*value << ScanCursor::place_bits | place);
}

}  // namespace sluice::proxy
