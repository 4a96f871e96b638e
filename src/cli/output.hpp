/// What several commands print: a line that moves while something goes on, and checks.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "sluice/sale_audit.hpp"

namespace sluice::cli {

void print(const Json& json);
/// The last line of a command: the object with --json, else the text.
void print(bool as_json, const Json& json, const std::string& text);

/// A line that is drawn over itself on a terminal; elsewhere plain lines, at most one a second.
class Progress {
 public:
  /// Silent: nothing is drawn (--json).
  explicit Progress(bool silent, std::FILE* output = stdout);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(const std::string& line);
  /// Ends the line, so that what follows stands below it.
  void finish(const std::string& line);

 private:
  std::FILE* const output_;
  const bool silent_;
  const bool terminal_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point last_{};
};

bool all_ok(const std::vector<AuditCheck>& checks) noexcept;
Json json_of(const std::vector<AuditCheck>& checks);
/// A line each: ok or FAILED, name, figure, and where it differs what was expected.
void print_checks(const std::vector<AuditCheck>& checks);

}  // namespace sluice::cli
