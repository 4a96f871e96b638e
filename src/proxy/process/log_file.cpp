#include "proxy/process/log_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/details/log_msg.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "base/descriptor.hpp"
#include "sluice/error.hpp"
#include "sluice/log.hpp"

namespace sluice::proxy::process {
namespace {

constexpr std::array<std::string_view, LogFile::most_level + 1> names{
    "emergency", "alert", "critical", "error",   "warning", "notice",
    "info",      "debug", "verbose",  "verbose", "verbose", "verbose"};

/// What comes from outside, a name or a path, cannot forge a line.
std::string one_line(std::string_view text) {
  std::string line{text.substr(0, LogFile::most_text)};
  std::ranges::replace_if(
      line, [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  return line;
}

LogSeverity severity_of(LogLevel level) {
  switch (level) {
    case LogLevel::error: return LogSeverity::error;
    case LogLevel::warning: return LogSeverity::warning;
    case LogLevel::info: return LogSeverity::info;
    case LogLevel::debug: break;
  }
  return LogSeverity::debug;
}

}  // namespace

/// Each line is one write() to the end of the file, so that lines of several processes do not mix
/// (an upgrade has two) and none is lost in a buffer.
class LogFile::File final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit File(std::string path) : path_(std::move(path)), descriptor_(open()) {
    if (!descriptor_.is_open()) throw Error{Errc::bad_argument, failure("opening")};
  }

  /// False: the old one is still in use.
  bool reopen() {
    const std::lock_guard lock{mutex_};
    Descriptor fresh = open();
    if (!fresh.is_open()) return false;
    descriptor_ = std::move(fresh);
    return true;
  }
  std::string failure(std::string_view doing) const {
    return fmt::format("{} log file '{}' failed: {}", doing, path_, std::strerror(errno));
  }

 private:
  Descriptor open() const noexcept {
    return Descriptor{::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644)};
  }
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    // A full disk loses lines.
    static_cast<void>(!::write(descriptor_.number(), line.data(), line.size()));
  }
  void flush_() override {}

  std::string path_;
  Descriptor descriptor_;
};

LogFile::LogFile(std::string file, int level) : level_(std::clamp(level, 0, most_level)) {
  if (file.empty()) {
    sink_ = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  } else {
    sink_ = file_ = std::make_shared<File>(std::move(file));
  }
  sink_->set_pattern("[%Y-%m-%d %H:%M:%S.%e] %v");
}

LogFile::~LogFile() {
  if (has_library_log_) set_log_sink({});
}

void LogFile::write(LogSeverity severity, std::string_view text) {
  const auto number = static_cast<int>(severity);
  if (number > level()) return;
  const auto line = fmt::format("{} {}", names[static_cast<std::size_t>(number)], one_line(text));
  sink_->log({"proxy", spdlog::level::info, line});
}

void LogFile::set_level(int level) noexcept {
  level_.store(std::clamp(level, 0, most_level), std::memory_order_relaxed);
}

void LogFile::reopen() {
  if (file_ && !file_->reopen())
    std::fputs((file_->failure("reopening") + ", ignored\n").c_str(), stderr);
}

void LogFile::take_library_log() {
  has_library_log_ = true;
  set_log_sink([this](LogLevel level, std::string_view text) { write(severity_of(level), text); });
}

}  // namespace sluice::proxy::process
