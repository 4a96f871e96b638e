/// What is said on the port of twemproxy's statistics and on that of the metrics.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "proxy/process/side_server.hpp"
#include "sluice/clock.hpp"

namespace sluice::proxy {

/// Makes the text when asked, but not more often than every `interval`: however many ask, the cost
/// is bounded.
/// Threads: one.
class CachedText {
 public:
  CachedText(std::function<std::string()> make, std::chrono::nanoseconds interval, Clock& clock)
      : make_(std::move(make)), interval_(interval), clock_(clock) {}
  const std::string& text();

 private:
  std::function<std::string()> make_;
  std::chrono::nanoseconds interval_;
  Clock& clock_;
  bool made_ = false;
  SteadyTime at_{};
  std::string text_;
};

/// Connect, read one document, the end: as twemproxy does. Nothing is asked.
std::unique_ptr<Session> document_session(std::shared_ptr<CachedText> document);

/// HTTP/1.0 and 1.1, one request a connection: GET or HEAD of /metrics.
std::unique_ptr<Session> metrics_session(std::shared_ptr<CachedText> metrics);

}  // namespace sluice::proxy
