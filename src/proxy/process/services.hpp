/// What is served beside the data path, put together: twemproxy's statistics, /metrics, the
/// administration.
#pragma once

#include <string>
#include <vector>

#include "proxy/config/config.hpp"
#include "proxy/process/admin.hpp"
#include "proxy/process/options.hpp"
#include "proxy/process/side_server.hpp"
#include "proxy/watch/registry.hpp"

namespace sluice::proxy {

/// What the services tell and do; all of it outlives the SideServer.
struct ServiceSources {
  Registry& registry;
  const AdminActions& actions;
  Clock& clock;
  std::string version;  ///< our own
};

/// The doors for a SideServer: statistics at -a and -s always, metrics and administration if the
/// file names an address. The statistics are made anew when they are asked for, but not more often
/// than every -i ms or every second, whichever is less: nutcracker's may be -i ms old. Throws Error
/// for an address that cannot be had.
std::vector<Door> open_services(const Options& options, const ProcessSettings& settings,
                                const ServiceSources& sources,
                                const OpenListening& open = open_listening);

}  // namespace sluice::proxy
