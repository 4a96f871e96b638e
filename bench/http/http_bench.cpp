/// The HTTP server with a handler that refuses at once, beside nginx's `return 200` of the same 88
/// bytes, each with one thread. What counts is the processor time of the server for a request, as
/// the scheduler counts it, and its ratio within one round. Then: the memory of idle connections,
/// and what 100 slow clients among 10,000 do to honest ones.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "http/load.hpp"
#include "http/response.hpp"
#include "http/server.hpp"
#include "support/free_port.hpp"
#include "support/process.hpp"
#include "support/process_cost.hpp"
#include "support/report.hpp"
#include "support/temp_dir.hpp"

namespace {

using namespace sluice;
using namespace sluice::bench;
using namespace std::chrono_literals;

constexpr std::size_t honest = 64;
constexpr std::size_t idle = 10'000;
constexpr std::size_t first = 200;  // what the first ones need is there behind them
constexpr std::size_t slow = 100;
constexpr std::size_t of_an_address = 900;
const std::string refusal =
    R"({"type":"urn:sluice:problem:sold-out","title":"Nothing is left","status":409,"left":0})"
    "\n ";

struct Subject {
  std::uint16_t port = 0;
  test::Process process;

  double cpu_us() const { return cpu_us_of(process.pid()); }
  double memory() const { return memory_of(process.pid()); }
};

int serve(std::uint16_t port) {
  http::Routes routes;
  routes.add({.method = "GET",
              .path = "/refusal",
              .operation = "refusal",
              .summary = "Refuses",
              .parameters = {},
              .request = {},
              .answers = {},
              .problems = {},
              .credentials = {},
              .handler = [](http::Request&&, http::Responder&& respond) {
                respond.send(
                    {.status = 200, .media = http::json_media, .body = refusal, .fields = {}});
              }});
  const http::Server server{system_clock(),
                            std::move(routes),
                            {.listen = {.host = "127.0.0.1", .port = port}, .loops = 1}};
  for (;;) ::pause();
}

void wait_for(const Subject& subject) {
  for (int i = 0; i < 500; ++i) {
    try {
      ask_once(connect(subject.port).number());
      return;
    } catch (const std::system_error&) {  // not yet
      std::this_thread::sleep_for(10ms);
    }
  }
  throw std::runtime_error{"a server does not answer"};
}

Subject ours() {
  const auto port = test::free_port();
  Subject subject{port, test::Process{[port] { return serve(port); }}};
  wait_for(subject);
  return subject;
}

Subject nginx(const test::TempDir& folder) {
  const auto port = test::free_port();
  const auto file = folder / "nginx.conf";
  std::ofstream{file} << "daemon off; master_process off; worker_processes 1; pid " << folder.str()
                      << "/pid; error_log stderr crit;\nevents { worker_connections 4096; }\n"
                      << "http { access_log off; keepalive_requests 1000000000;\n"
                      << "client_body_temp_path " << folder.str() << "/b; proxy_temp_path "
                      << folder.str() << "/p; fastcgi_temp_path " << folder.str()
                      << "/f; uwsgi_temp_path " << folder.str() << "/u; scgi_temp_path "
                      << folder.str() << "/s;\nserver { listen 127.0.0.1:" << port
                      << "; location / { default_type application/json; return 200 '" << refusal
                      << "'; } } }\n";
  Subject subject{port, test::Process{{"nginx", "-c", file.string(), "-p", folder.str()}}};
  wait_for(subject);
  return subject;
}

double cpu_of_a_request(const Subject& subject, std::chrono::milliseconds each) {
  const auto before = subject.cpu_us();
  const auto figures = load(subject.port, honest, each, [] {});
  return (subject.cpu_us() - before) / static_cast<double>(figures.requests);
}

void connect_idle(const Subject& subject, std::vector<Descriptor>& sockets, std::size_t count) {
  while (sockets.size() < count) {
    sockets.push_back(connect(subject.port, 2 + sockets.size() / of_an_address));
    ask_once(sockets.back().number());
  }
}

/// Clients that send a head for ever, a byte each 100 ms, and come back when they are closed.
class Slowloris {
 public:
  explicit Slowloris(const Subject& subject) : subject_(subject), sockets_(slow) {}

  void operator()() {
    auto& socket = sockets_[next_++ % slow];
    if (socket.is_open() && ::send(socket.number(), "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1)
      return;
    socket = connect(subject_.port, 100);
    static_cast<void>(::send(socket.number(), "GET / HTTP/1.1\r\nX: ", 19, MSG_NOSIGNAL));
  }

 private:
  const Subject& subject_;
  std::vector<Descriptor> sockets_;
  std::size_t next_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const auto options = parse_options(argc, argv);
  Report report{"http", options};
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);

  if (options.wants("cpu")) {
    const test::TempDir folder;
    const auto server = ours();
    const auto peer = nginx(folder);
    Row row{.figure = "a refusal: CPU of the server for a request",
            .unit = "us",
            .values = {},
            .peer = "nginx return 200",
            .peer_values = {},
            .goal = 1.0,
            .at_most = true};
    cpu_of_a_request(server, options.each / 4);
    cpu_of_a_request(peer, options.each / 4);
    for (int round = 0; round < options.rounds; ++round) {
      row.values.push_back(cpu_of_a_request(server, options.each));
      row.peer_values.push_back(cpu_of_a_request(peer, options.each));
    }
    report.add(std::move(row));
  }
  if (options.wants("idle")) {
    const auto server = ours();
    std::vector<Descriptor> sockets;
    connect_idle(server, sockets, first);
    const auto before = server.memory();
    connect_idle(server, sockets, idle);
    report.add({.figure = "memory of an idle connection",
                .unit = "bytes",
                .values = {(server.memory() - before) / static_cast<double>(idle - first)},
                .peer = {},
                .peer_values = {},
                .goal = 1024,
                .at_most = true});
  }
  if (options.wants("slow")) {
    const auto server = ours();
    std::vector<Descriptor> sockets;
    connect_idle(server, sockets, idle - honest - slow);
    Row row{.figure = "p99 with 10,000 connections, 100 of them slow",
            .unit = "us",
            .values = {},
            .peer = "none slow",
            .peer_values = {},
            .goal = 1.5,
            .at_most = true};
    for (int round = 0; round < options.rounds; ++round) {
      row.peer_values.push_back(load(server.port, honest, options.each, [] {}).p99_us);
      row.values.push_back(load(server.port, honest, options.each, Slowloris{server}).p99_us);
    }
    report.add(std::move(row));
  }
  report.print();
}
