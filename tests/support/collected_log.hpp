/// What is logged from here on. It outlives the Store or proxy whose threads write.
#pragma once

#include <algorithm>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/log.hpp"

namespace sluice::test {

class CollectedLog {
 public:
  CollectedLog() {
    set_log_sink([this](LogLevel, std::string_view text) {
      const std::lock_guard lock{mutex_};
      lines_.emplace_back(text);
    });
  }
  ~CollectedLog() { set_log_sink({}); }
  CollectedLog(const CollectedLog&) = delete;
  CollectedLog& operator=(const CollectedLog&) = delete;

  std::size_t count(std::string_view part) const {
    const std::lock_guard lock{mutex_};
    return static_cast<std::size_t>(std::ranges::count_if(
        lines_, [part](const std::string& line) { return line.find(part) != line.npos; }));
  }
  /// It begins anew.
  void clear() {
    const std::lock_guard lock{mutex_};
    lines_.clear();
  }
  /// All of it, a line each.
  std::string text() const {
    const std::lock_guard lock{mutex_};
    std::string all;
    for (const auto& line : lines_) all += line + '\n';
    return all;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

}  // namespace sluice::test
