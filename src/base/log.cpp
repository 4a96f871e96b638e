#include "sluice/log.hpp"

#include <memory>
#include <mutex>

namespace sluice {
namespace {

std::mutex sink_mutex;

std::shared_ptr<const LogSink>& sink_slot() {
  static auto* const slot =
      new std::shared_ptr<const LogSink>;  // never destroyed: threads may log after main()
  return *slot;
}

}  // namespace

void set_log_sink(LogSink sink) {
  const std::lock_guard lock{sink_mutex};
  sink_slot() = sink ? std::make_shared<const LogSink>(std::move(sink)) : nullptr;
}

void log(LogLevel level, std::string_view message) {
  std::shared_ptr<const LogSink> sink;
  {
    const std::lock_guard lock{sink_mutex};
    sink = sink_slot();
  }
  if (sink) (*sink)(level, message);
}

}  // namespace sluice
