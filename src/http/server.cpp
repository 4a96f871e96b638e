#include "http/server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "http/response.hpp"
#include "http/worker.hpp"

namespace sluice::http {
namespace {

constexpr int backlog = 4096;

/// One for each loop: sockets that share a port, or one unix socket that all accept from.
std::vector<net::ServerSocket> listen(net::Endpoint endpoint, std::size_t count,
                                      const Limits& limits) {
  net::ListenOptions options{.backlog = backlog,
                             .share_port = count > 1,
                             .first = true,
                             .permissions = {},
                             .most_unsent = limits.unsent};
  std::vector<net::ServerSocket> sockets;
  sockets.push_back(net::ServerSocket::open(endpoint, options));
  endpoint.port = sockets.front().port();
  options.first = false;
  while (sockets.size() < count)
    sockets.push_back(endpoint.is_unix() ? sockets.front().duplicate()
                                         : net::ServerSocket::open(endpoint, options));
  return sockets;
}

Route health(std::string path, std::string operation, std::string summary, Handler handler) {
  return {.method = "GET",
          .path = std::move(path),
          .operation = std::move(operation),
          .summary = std::move(summary),
          .parameters = {},
          .request = {},
          .answers = {{.status = 200, .description = "It does", .schema = R"({"type":"object"})"}},
          .problems = {},
          .credentials = {},
          .handler = std::move(handler)};
}

}  // namespace

Server::Server(Clock& clock, Routes routes, ServerOptions options) {
  const auto fine = json(200, Json::object({{"status", "ok"}}));
  routes.add(health("/livez", "livez", "Whether the process serves",
                    [fine](Request&&, Responder&& respond) { respond.send(fine); }));
  routes.add(health(
      "/readyz", "readyz", "Whether it takes new clients",
      [this, fine, because = std::move(options.not_ready_because),
       trouble = std::move(options.trouble)](Request&&, Responder&& respond) {
        auto why = is_ready() ? std::string{} : "it is about to stop";
        if (why.empty() && because) why = because();
        if (!why.empty()) return respond.send(problem(problems::unavailable, why));
        const auto also = trouble ? trouble() : std::string{};
        respond.send(also.empty() ? fine
                                  : json(200, Json::object({{"status", "ok"}, {"trouble", also}})));
      }));
  routes.add(health("/openapi.json", "openapi", "This interface, as OpenAPI 3.1",
                    [this](Request&&, Responder&& respond) {
                      respond.send(
                          {.status = 200, .media = json_media, .body = document_, .fields = {}});
                    }));
  document_ = openapi(routes, options.api);
  const auto& limits = options.limits;
  shared_.reset(new Shared{
      .routes = std::move(routes),
      .limits = limits,
      .trusted = Networks{options.trusted},
      .balancers = Networks{options.proxy_protocol},
      .vary = options.vary,
      .places = {},
  });
  shared_->places.limit(limits.connections, limits.connections_of_a_client);
  const std::size_t loops =
      options.loops != 0 ? options.loops : std::max(1U, std::thread::hardware_concurrency());
  for (auto& socket : listen(options.listen, loops, limits)) {
    port_ = socket.port();
    workers_.push_back(std::make_unique<Worker>(clock, *shared_, options.tls, std::move(socket)));
  }
  for (auto& worker : workers_) worker->start();
}

Server::~Server() = default;

void Server::stop(std::chrono::nanoseconds within, std::chrono::nanoseconds notice) {
  is_ready_.store(false, std::memory_order_release);
  for (auto& worker : workers_) worker->stop(std::min(notice, within), within);
  for (auto& worker : workers_) worker->join();
}

void Server::replace_tls(const net::TlsContext& tls) {
  for (auto& worker : workers_) worker->replace(tls);
}

Server::Load Server::load() const {
  Load load;
  for (const auto& worker : workers_) {
    load.connections += worker->counts().open_connections.get();
    load.requests += worker->counts().answers();
  }
  return load;
}

std::string Server::metrics() const {
  std::vector<const Counts*> loops;
  for (const auto& worker : workers_) loops.push_back(&worker->counts());
  return metrics_text(shared_->routes, loops);
}

}  // namespace sluice::http
