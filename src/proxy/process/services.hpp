/// What is served beside the data path: twemproxy's statistics, /metrics, the administration.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proxy/config/config.hpp"
#include "proxy/process/admin.hpp"
#include "proxy/process/management_server.hpp"
#include "proxy/process/options.hpp"
#include "proxy/watch/registry.hpp"
#include "sluice/clock.hpp"

namespace sluice::proxy::process {

/// Makes the text when it is asked for, but at most once in `interval`: however many clients ask,
/// the cost is bounded. Threads: one.
class CachedText {
 public:
  CachedText(std::function<std::string()> make, std::chrono::nanoseconds interval, Clock& clock)
      : make_(std::move(make)), interval_(interval), clock_(clock) {}
  const std::string& text();

 private:
  std::function<std::string()> make_;
  std::chrono::nanoseconds interval_;
  Clock& clock_;
  std::optional<SteadyTime> made_;
  std::string text_;
};

/// Connect, read one document, the end: as twemproxy does. Nothing is asked.
std::unique_ptr<Conversation> document_conversation(std::shared_ptr<CachedText> document);
/// HTTP/1.0 and 1.1, one request a connection: GET or HEAD of /metrics.
std::unique_ptr<Conversation> metrics_conversation(std::shared_ptr<CachedText> metrics);

/// What the services tell and do; it outlives the ManagementServer.
struct ServiceSources {
  watch::Registry& registry;
  const AdminActions& actions;
  Clock& clock;
  std::string version;  ///< our own
};

/// The services for a ManagementServer: statistics at -a and -s always, metrics and administration
/// when the file names an address. The statistics are at most -i ms old, and at most a second
/// (nutcracker's: -i ms). Throws Error for an address that it cannot have.
std::vector<Service> open_services(const Options& options, const ProcessSettings& settings,
                                   const ServiceSources& sources,
                                   const OpenSocket& open = open_socket);

}  // namespace sluice::proxy::process
