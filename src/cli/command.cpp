#include "cli/command.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "sluice/open.hpp"

namespace sluice::cli {

std::string store_url(const Globals& globals) {
  if (!globals.store.empty()) return globals.store;
  if (const char* const set = std::getenv("SLUICE_STORE"); set && *set) return set;
  return "redis://127.0.0.1:6379";
}

std::unique_ptr<Store> open_store(const Globals& globals) { return open(store_url(globals)); }

std::chrono::milliseconds parse_duration(const std::string& text) {
  struct Unit {
    std::string_view name;
    double milliseconds;
  };
  static constexpr Unit units[] = {{"", 1000},    {"s", 1000},      {"ms", 1},
                                   {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}};
  static constexpr double longest = 3650.0 * 86'400'000;
  double count = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const std::string_view suffix{rest, static_cast<std::size_t>(text.data() + text.size() - rest)};
  if (error == std::errc{} && count >= 0) {
    for (const auto& unit : units)
      if (unit.name == suffix && count * unit.milliseconds <= longest)
        return std::chrono::milliseconds{static_cast<std::int64_t>(count * unit.milliseconds)};
  }
  throw Error{
      Errc::bad_argument,
      fmt::format("'{}' is no duration: write 250ms, 5s, 2m, 1h or 1d (ten years at most)", text)};
}

}  // namespace sluice::cli
