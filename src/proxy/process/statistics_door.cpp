#include "proxy/process/statistics_door.hpp"

#include <fmt/format.h>

namespace sluice::proxy {
namespace {

class DocumentSession final : public Session {
 public:
  explicit DocumentSession(std::shared_ptr<CachedText> document) : document_(std::move(document)) {}

  Next greet(std::string& output) override {
    output += document_->text();
    return Next::close;
  }
  Next talk(std::string& input, std::string&) override {
    input.clear();
    return Next::close;
  }

 private:
  std::shared_ptr<CachedText> document_;
};

void answer(std::string& output, std::string_view status, std::string_view body, bool head_only) {
  output += fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
      "Content-Length: {}\r\nConnection: close\r\n\r\n",
      status, body.size());
  if (!head_only) output += body;
}

class MetricsSession final : public Session {
 public:
  explicit MetricsSession(std::shared_ptr<CachedText> metrics) : metrics_(std::move(metrics)) {}

  Next talk(std::string& input, std::string& output) override {
    const bool complete =
        input.find("\r\n\r\n") != std::string::npos || input.find("\n\n") != std::string::npos;
    if (!complete) return Next::listen;
    const std::string_view line = std::string_view{input}.substr(0, input.find_first_of("\r\n"));
    const auto method = line.substr(0, line.find(' '));
    const auto rest = line.substr(std::min(method.size() + 1, line.size()));
    const auto path = rest.substr(0, rest.find_first_of(" ?"));
    const bool head = method == "HEAD";
    if (method != "GET" && !head) {
      answer(output, "405 Method Not Allowed", "GET or HEAD, please\n", false);
    } else if (path != "/metrics") {
      answer(output, "404 Not Found", "the metrics are at /metrics\n", head);
    } else {
      answer(output, "200 OK", metrics_->text(), head);
    }
    input.clear();
    return Next::close;
  }

 private:
  std::shared_ptr<CachedText> metrics_;
};

}  // namespace

const std::string& CachedText::text() {
  const auto now = clock_.steady();
  if (!made_ || now - at_ >= interval_) {
    text_ = make_();
    at_ = now;
    made_ = true;
  }
  return text_;
}

std::unique_ptr<Session> document_session(std::shared_ptr<CachedText> document) {
  return std::make_unique<DocumentSession>(std::move(document));
}
std::unique_ptr<Session> metrics_session(std::shared_ptr<CachedText> metrics) {
  return std::make_unique<MetricsSession>(std::move(metrics));
}

}  // namespace sluice::proxy
