#include "port/health.hpp"

#include <fmt/format.h>

#include "port/port.hpp"
#include "sluice/metrics.hpp"

namespace sluice::port {
namespace {

constexpr std::string_view prometheus_media = "text/plain; version=0.0.4; charset=utf-8";

/// Under the engine's lock for as long as figures are read.
std::string figures(Port& port) {
  const auto& figures = port.figures();
  return fmt::format(
      "# HELP sluice_port_keys Keys in all databases.\n# TYPE sluice_port_keys gauge\n"
      "sluice_port_keys {}\n"
      "# HELP sluice_port_commands_total Commands that were run.\n"
      "# TYPE sluice_port_commands_total counter\nsluice_port_commands_total {}\n"
      "# HELP sluice_port_clients Clients that are connected.\n"
      "# TYPE sluice_port_clients gauge\nsluice_port_clients {}\n"
      "# HELP sluice_port_log_failed 1: the log takes no writes.\n"
      "# TYPE sluice_port_log_failed gauge\nsluice_port_log_failed {}\n",
      figures.keys, figures.commands, figures.clients, figures.has_failed ? 1 : 0);
}

http::Routes routes_of(Port& port) {
  http::Routes routes;
  routes.add({.method = "GET",
              .path = "/metrics",
              .operation = "metrics",
              .summary = "Figures for Prometheus",
              .answers = {{200, "The figures", {}, std::string{prometheus_media}}},
              .handler = [&port](http::Request&&, http::Responder&& respond) {
                respond.send({.status = 200,
                              .media = std::string{prometheus_media},
                              .body = prometheus_text() + figures(port)});
              }});
  return routes;
}

}  // namespace

Health::Health(Port& port, const net::Endpoint& listen)
    : server_(system_clock(), routes_of(port),
              {.listen = listen, .loops = 1, .not_ready_because = [&port]() -> std::string {
                 return port.figures().has_failed ? "the log takes no writes" : "";
               }}) {}

}  // namespace sluice::port
