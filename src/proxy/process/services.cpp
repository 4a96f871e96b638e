#include "proxy/process/services.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/process.hpp"
#include "proxy/process/statistics_door.hpp"
#include "proxy/watch/documents.hpp"
#include "proxy/watch/metrics.hpp"

namespace sluice::proxy {
namespace {

constexpr std::chrono::milliseconds oldest{1000};

Door statistics_door(Listening listening, std::chrono::milliseconds interval,
                     const ServiceSources& sources) {
  const DocumentHead head{.source = host_name(), .version = std::string{nutcracker_version}};
  auto& registry = sources.registry;
  const auto document = std::make_shared<CachedText>(
      [&registry, head] { return twemproxy_document(registry.snapshot(), head); },
      std::min(interval, oldest), sources.clock);
  return {.listening = std::move(listening),
          .open_session = [document] { return document_session(document); }};
}

Door metrics_door(Listening listening, const ServiceSources& sources) {
  auto& registry = sources.registry;
  const auto text = std::make_shared<CachedText>(
      [&registry, version = sources.version] { return metrics_text(registry.snapshot(), version); },
      oldest, sources.clock);
  return {.listening = std::move(listening),
          .open_session = [text] { return metrics_session(text); }};
}

}  // namespace

std::vector<Door> open_services(const Options& options, const ProcessSettings& settings,
                                const ServiceSources& sources, const OpenListening& open) {
  std::vector<Door> doors;
  const net::Endpoint statistics{.host = options.stats_addr, .port = options.stats_port};
  doors.push_back(statistics_door(open("statistics", statistics), options.stats_interval, sources));
  if (!settings.metrics.empty())
    doors.push_back(metrics_door(open("metrics", parse_endpoint(settings.metrics)), sources));
  if (!settings.admin.empty())
    doors.push_back(admin_door(settings.admin, sources.registry, sources.actions, open));
  return doors;
}

}  // namespace sluice::proxy
