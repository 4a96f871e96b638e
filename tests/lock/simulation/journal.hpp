/// What happened in a simulation, and the first thing that must not.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "sluice/clock.hpp"

namespace sluice::simulation {

class Journal {
 public:
  /// `keeps`: whether lines are kept; a seed that failed runs again for them.
  Journal(const Clock& clock, bool keeps) : clock_(clock), keeps_(keeps), began_(clock.steady()) {}

  template <class... Args>
  void note(fmt::format_string<Args...> text, Args&&... args) {
    if (keeps_ && !violation_ && !closed_) write(fmt::format(text, std::forward<Args>(args)...));
  }
  /// The first one counts, and ends the journal.
  void violate(std::string what) {
    if (violation_ || closed_) return;
    if (keeps_) write("VIOLATION " + what);
    violation_ = std::move(what);
  }

  /// What comes now does not count.
  void close() noexcept { closed_ = true; }

  const std::optional<std::string>& violation() const noexcept { return violation_; }
  const std::vector<std::string>& lines() const noexcept { return lines_; }

 private:
  void write(const std::string& text) {
    const auto passed =
        std::chrono::floor<std::chrono::microseconds>(clock_.steady() - began_).count();
    lines_.push_back(fmt::format("{:>4}.{:06} {}", passed / 1'000'000, passed % 1'000'000, text));
  }

  const Clock& clock_;
  const bool keeps_;
  const SteadyTime began_;
  bool closed_ = false;
  std::optional<std::string> violation_;
  std::vector<std::string> lines_;
};

}  // namespace sluice::simulation
