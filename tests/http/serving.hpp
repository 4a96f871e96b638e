/// A server for tests, with routes that show what a handler gets and may do.
#pragma once

#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "http/response.hpp"
#include "http/server.hpp"
#include "support/comes_true.hpp"

namespace sluice::http {

inline Route route(std::string method, std::string path, std::string operation, Handler handler) {
  return {.method = std::move(method),
          .path = std::move(path),
          .operation = std::move(operation),
          .summary = "For tests",
          .parameters = {},
          .request = {},
          .answers = {{.status = 200, .description = "Fine", .schema = R"({"type":"object"})"}},
          .problems = {},
          .credentials = {},
          .handler = std::move(handler)};
}

inline Response text(std::string body) {
  return {.status = 200, .media = "text/plain", .body = std::move(body), .fields = {}};
}

/// Requests that wait for an answer, and the event streams that were begun.
struct Kept {
  std::mutex mutex;
  std::vector<Responder> responders;
  std::vector<EventStream> streams;
  std::string last_event_id;

  std::size_t size() {
    const std::lock_guard lock{mutex};
    return responders.size();
  }
  std::size_t open_streams() {
    const std::lock_guard lock{mutex};
    return streams.size();
  }
  Responder take(std::size_t at) {
    const std::lock_guard lock{mutex};
    return std::move(responders.at(at));
  }
};

/// GET /hello, GET /client, POST /echo, GET /items/{item}, GET /kept (answered by the test),
/// GET /dropped, GET /throws, GET /events, GET /large.
inline Routes test_routes(Kept& kept) {
  Routes routes;
  routes.add(route("GET", "/hello", "hello",
                   [](Request&&, Responder&& respond) { respond.send(text("hello")); }));
  routes.add(route("GET", "/client", "client", [](Request&& request, Responder&& respond) {
    respond.send(text(request.client()));
  }));
  routes.add(route("POST", "/echo", "echo", [](Request&& request, Responder&& respond) {
    respond.send(text(request.body()));
  }));
  routes.add(route("GET", "/items/{item}", "item", [](Request&& request, Responder&& respond) {
    respond.send(text(request.parameter("item") + "|" + request.query("q").value_or("none")));
  }));
  routes.add(route("GET", "/kept", "kept", [&kept](Request&&, Responder&& respond) {
    const std::lock_guard lock{kept.mutex};
    kept.responders.push_back(std::move(respond));
  }));
  routes.add(route("GET", "/dropped", "dropped", [](Request&&, Responder&&) {}));
  routes.add(route("GET", "/throws", "throws",
                   [](Request&&, Responder&&) { throw std::runtime_error{"on purpose"}; }));
  routes.add(route("GET", "/events", "events", [&kept](Request&& request, Responder&& respond) {
    const std::lock_guard lock{kept.mutex};
    kept.last_event_id = request.field("Last-Event-ID").value_or("");
    kept.streams.push_back(respond.stream());
  }));
  routes.add(route("GET", "/large", "large", [](Request&&, Responder&& respond) {
    respond.send(text(std::string(32 << 10, 'x')));
  }));
  return routes;
}

struct Serving {
  explicit Serving(ServerOptions options = {}, Clock& clock = system_clock())
      : server(clock, test_routes(kept), std::move(options)) {}

  std::uint16_t port() const { return server.port(); }
  /// A line of the metrics without its value; the value.
  std::string metric(const std::string& line) const {
    const auto all = server.metrics();
    const auto at = all.find("\n" + line + " ");
    if (at == std::string::npos) return {};
    const auto from = at + line.size() + 2;
    return all.substr(from, all.find('\n', from) - from);
  }

  Kept kept;
  Server server;
};

inline std::string get(const std::string& path, const std::string& fields = {}) {
  return "GET " + path + " HTTP/1.1\r\nHost: test\r\n" + fields + "\r\n";
}
inline std::string post(const std::string& path, const std::string& body) {
  return "POST " + path +
         " HTTP/1.1\r\nHost: test\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         body;
}
inline std::string body_of(const std::string& answer) {
  const auto end = answer.find("\r\n\r\n");
  return end == std::string::npos ? std::string{} : answer.substr(end + 4);
}
inline int status_of(const std::string& answer) {
  return answer.starts_with("HTTP/1.1 ") ? std::stoi(answer.substr(9, 3)) : 0;
}

}  // namespace sluice::http
