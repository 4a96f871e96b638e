#include "cli/checks.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::cli {

bool all_ok(const std::vector<Check>& checks) noexcept {
  return std::all_of(checks.begin(), checks.end(), [](const Check& check) { return check.ok; });
}

nlohmann::json json_of(const std::vector<Check>& checks) {
  auto rows = nlohmann::json::array();
  for (const auto& check : checks)
    rows.push_back({{"name", check.name},
                    {"ok", check.ok},
                    {"figure", check.figure},
                    {"expected", check.expected},
                    {"detail", check.detail}});
  return rows;
}

void print_checks(const std::vector<Check>& checks) {
  for (const auto& check : checks) {
    const std::string expected = check.figure == check.expected
                                     ? std::string{}
                                     : fmt::format(" (expected {})", check.expected);
    fmt::print("  {:<7} {:<44} {:>8}{}{}{}\n", check.ok ? "ok" : "FAILED", check.name, check.figure,
               expected, check.detail.empty() ? "" : "  ", check.detail);
  }
}

}  // namespace sluice::cli
