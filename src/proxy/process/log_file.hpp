/// The log of the proxy, with nutcracker's levels and the look of its lines:
///
///     [2026-11-21 13:17:29.699] notice sluice-0.1.0 started on pid 29516
///
/// (Where nutcracker names a line of its source, the level stands.) No line holds a password, a
/// value or a line end.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace spdlog::sinks {
class sink;
}

namespace sluice::proxy::process {

/// nutcracker's: a line is written when its level is not above that of the log.
enum class LogSeverity : std::uint8_t {
  emergency,
  alert,
  critical,
  error,
  warning,
  notice,
  info,
  debug,
  verbose,
  more,
  most,
  all
};

/// Threads: any.
class LogFile {
 public:
  static constexpr int most_level = 11;
  static constexpr std::size_t most_text = 4096;  ///< a longer line is cut

  /// `file` empty: stderr. Throws Error{bad_argument} "opening log file '...' failed: ...".
  LogFile(std::string file, int level);
  ~LogFile();

  void write(LogSeverity severity, std::string_view text);

  int level() const noexcept { return level_.load(std::memory_order_relaxed); }
  void set_level(int level) noexcept;  ///< held within 0 .. 11
  /// After the file was moved away (HUP). If it cannot be opened that is said on stderr, and the
  /// old one is gone on with.
  void reopen();
  /// Hands what the library has to say (sluice::log) to this log, until it is destroyed.
  void take_library_log();

 private:
  class File;
  std::shared_ptr<File> file_;  // null: stderr
  std::shared_ptr<spdlog::sinks::sink> sink_;
  std::atomic<int> level_;
  bool has_library_log_ = false;
};

}  // namespace sluice::proxy::process
