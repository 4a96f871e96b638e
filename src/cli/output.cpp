#include "cli/output.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "sluice/clock.hpp"

namespace sluice::cli {

void print(const Json& json) { fmt::print("{}\n", json.text()); }

void print(bool as_json, const Json& json, const std::string& text) {
  fmt::print("{}\n", as_json ? json.text() : text);
}

Progress::Progress(bool silent, std::FILE* output)
    : output_(output), silent_(silent), terminal_(::isatty(::fileno(output)) == 1) {}

Progress::~Progress() {
  if (drawn_ && terminal_) std::fputc('\n', output_);
}

void Progress::show(const std::string& line) {
  const auto now = system_clock().steady();
  const auto pause = terminal_ ? std::chrono::milliseconds{50} : std::chrono::milliseconds{1000};
  if (silent_ || now - last_ < pause) return;
  last_ = now;
  drawn_ = true;
  fmt::print(output_, "{}{}{}", terminal_ ? "\r\033[K" : "", line, terminal_ ? "" : "\n");
  std::fflush(output_);
}

void Progress::finish(const std::string& line) {
  if (silent_) return;
  fmt::print(output_, "{}{}\n", terminal_ ? "\r\033[K" : "", line);
  std::fflush(output_);
  drawn_ = false;
}

bool all_ok(const std::vector<AuditCheck>& checks) noexcept {
  return std::ranges::all_of(checks, &AuditCheck::ok);
}

Json json_of(const std::vector<AuditCheck>& checks) {
  Json rows = Json::array();
  for (const auto& check : checks)
    rows.add(Json::object({{"name", check.name},
                           {"ok", check.ok},
                           {"figure", check.figure},
                           {"expected", check.expected},
                           {"detail", check.detail}}));
  return rows;
}

void print_checks(const std::vector<AuditCheck>& checks) {
  for (const auto& check : checks) {
    const std::string expected = check.figure == check.expected
                                     ? std::string{}
                                     : fmt::format(" (expected {})", check.expected);
    fmt::print("  {:<7} {:<44} {:>8}{}{}{}\n", check.ok ? "ok" : "FAILED", check.name, check.figure,
               expected, check.detail.empty() ? "" : "  ", check.detail);
  }
}

}  // namespace sluice::cli
