/// A line that moves on a terminal; plain lines, at most one a second, where the output is none.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>

namespace sluice::cli {

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

}  // namespace sluice::cli
