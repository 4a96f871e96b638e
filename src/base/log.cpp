#include "sluice/log.hpp"

#include <unistd.h>

#include <memory>
#include <mutex>
#include <string>

namespace sluice {
namespace {

using SharedSink = std::shared_ptr<const LogSink>;

void write_to_stderr(LogLevel level, std::string_view message) {
  if (level < LogLevel::warning) return;
  std::string line{level == LogLevel::warning ? "sluice: warning: " : "sluice: error: "};
  line.append(message).append("\n");
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

std::mutex sink_mutex;

/// Never destroyed: threads may log after main().
SharedSink& current_sink() {
  static auto* const sink = new SharedSink{std::make_shared<const LogSink>(write_to_stderr)};
  return *sink;
}

}  // namespace

void set_log_sink(LogSink sink) {
  auto shared = sink ? std::make_shared<const LogSink>(std::move(sink)) : nullptr;
  const std::lock_guard lock{sink_mutex};
  current_sink().swap(shared);
}

void log(LogLevel level, std::string_view message) {
  SharedSink sink;
  {
    const std::lock_guard lock{sink_mutex};
    sink = current_sink();
  }
  if (!sink) return;
  try {
    (*sink)(level, message);
  } catch (...) {  // whoever logs must go on, and there is nobody left to tell
  }
}

}  // namespace sluice
