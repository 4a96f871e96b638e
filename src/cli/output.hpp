/// What several commands print: a line that moves while something goes on, and checks.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "sluice/sale_audit.hpp"

namespace sluice::cli {

void print(const Json& json);
/// The last line of a command: the object with --json, else the text. If it cannot be written, it
/// is told on stderr.
void print(bool as_json, const Json& json, const std::string& text);

/// Values that nobody can have a second time: each is in the output before the next one is taken.
/// With --json they are the first member of one object.
class TakenList {
 public:
  /// Throws Error{out_of_space} when stdout is known to take nothing: take nothing either.
  TakenList(bool as_json, std::string_view name);

  /// Throws Error{out_of_space} (effect done), naming it, when it could not be written.
  void add(std::string_view taken);
  /// The rest of the object. REQUIRES: an object with members.
  void end(const Json& members);

 private:
  const bool as_json_;
  bool first_ = true;
};

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
  void draw(const std::string& line, const char* end);

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
