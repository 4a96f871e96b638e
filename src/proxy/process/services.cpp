#include "proxy/process/services.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/process.hpp"
#include "proxy/config/read.hpp"
#include "proxy/watch/documents.hpp"

namespace sluice::proxy::process {
namespace {

class DocumentConversation final : public Conversation {
 public:
  explicit DocumentConversation(std::shared_ptr<CachedText> document)
      : document_(std::move(document)) {}

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

class MetricsConversation final : public Conversation {
 public:
  explicit MetricsConversation(std::shared_ptr<CachedText> metrics)
      : metrics_(std::move(metrics)) {}

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

constexpr std::chrono::milliseconds oldest{1000};

Service statistics_service(ListeningSocket listening, std::chrono::milliseconds interval,
                           const ServiceSources& sources) {
  const watch::DocumentHead head{.source = host_name(), .version = std::string{nutcracker_version}};
  auto& registry = sources.registry;
  const auto document = std::make_shared<CachedText>(
      [&registry, head] { return watch::twemproxy_document(registry.snapshot(), head); },
      std::min(interval, oldest), sources.clock);
  return {.listening = std::move(listening),
          .open_conversation = [document] { return document_conversation(document); }};
}

Service metrics_service(ListeningSocket listening, const ServiceSources& sources) {
  auto& registry = sources.registry;
  const auto text = std::make_shared<CachedText>(
      [&registry, version = sources.version] {
        return watch::metrics_text(registry.snapshot(), version);
      },
      oldest, sources.clock);
  return {.listening = std::move(listening),
          .open_conversation = [text] { return metrics_conversation(text); }};
}

}  // namespace

const std::string& CachedText::text() {
  const auto now = clock_.steady();
  if (!made_ || now - *made_ >= interval_) {
    text_ = make_();
    made_ = now;
  }
  return text_;
}

std::unique_ptr<Conversation> document_conversation(std::shared_ptr<CachedText> document) {
  return std::make_unique<DocumentConversation>(std::move(document));
}
std::unique_ptr<Conversation> metrics_conversation(std::shared_ptr<CachedText> metrics) {
  return std::make_unique<MetricsConversation>(std::move(metrics));
}

std::vector<Service> open_services(const Options& options, const ProcessSettings& settings,
                                   const ServiceSources& sources, const OpenSocket& open) {
  std::vector<Service> services;
  const net::Endpoint statistics{.host = options.stats_addr, .port = options.stats_port};
  services.push_back(
      statistics_service(open("statistics", statistics), options.stats_interval, sources));
  if (!settings.metrics.empty())
    services.push_back(
        metrics_service(open("metrics", config::parse_address(settings.metrics)), sources));
  if (!settings.admin.empty())
    services.push_back(admin_service(settings.admin, sources.registry, sources.actions, open));
  return services;
}

}  // namespace sluice::proxy::process
