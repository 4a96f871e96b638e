#include "proxy/storm/strangers.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "net/tls.hpp"
#include "proxy/support/listening.hpp"
#include "proxy/support/nutcracker.hpp"
#include "proxy/support/proxy_program.hpp"
#include "support/redis_server.hpp"
#include "support/temp_dir.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;
using Texts = std::vector<std::string>;

/// A certificate for itself, made with the openssl program: lines for a pool that listens with it.
Texts tls_lines(const TempDir& folder) {
  Process openssl{{"openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                   "-subj", "/CN=localhost", "-keyout", "key", "-out", "certificate"},
                  {.directory = folder.path(), .environment = {}, .output = folder / "output"}};
  if (openssl.wait() != 0) throw std::runtime_error{text_of(folder / "output")};
  return {"listen_tls:", "  certificate: " + (folder / "certificate").string(),
          "  key: " + (folder / "key").string()};
}

void wait_for(int descriptor, net::Transport::Wants wants) {
  pollfd wait{.fd = descriptor,
              .events = static_cast<short>((wants.read ? POLLIN : 0) | (wants.write ? POLLOUT : 0)),
              .revents = 0};
  ::poll(&wait, 1, 1000);
}

/// Shakes hands as a client; throws when the peer does not.
std::shared_ptr<net::Transport> shake_hands(std::uint16_t port) {
  static const auto context = net::TlsContext::for_client(
      {.certificate = {}, .key = {}, .ca = {}, .verify = false, .least = net::TlsVersion::v1_2});
  static const net::TlsFailure ignored = [](const Error&) {};
  auto socket = net::Socket::start_connect(
      net::resolve({.host = "127.0.0.1", .port = port, .unix_path = {}}).front());
  wait_for(socket.descriptor(), {.read = false, .write = true});
  std::shared_ptr<net::Transport> transport =
      context.connect(std::move(socket), "localhost", ignored);
  while (!transport->is_established()) {
    char byte = 0;
    if (transport->read_some({&byte, 1}).outcome != net::Transfer::Outcome::would_block)
      throw std::runtime_error{"the proxy closes a client that shakes hands"};
    if (!transport->is_established()) wait_for(transport->descriptor(), transport->wants_to_read());
  }
  return transport;
}

double resident_mib(pid_t process) {
  std::size_t whole = 0, resident = 0;
  std::ifstream{fmt::format("/proc/{}/statm", process)} >> whole >> resident;
  return static_cast<double>(resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))) /
         (1 << 20);
}

std::size_t clients_of(const ProxyProgram& proxy) {
  constexpr std::string_view name = "\"client_connections\":";
  const auto text = proxy.statistics();
  const auto at = text.find(name);
  return at == text.npos ? 0 : std::stoul(text.substr(at + name.size()));
}

/// Until the proxy has so many, for half a minute at most.
bool come_to_be(const ProxyProgram& proxy, std::size_t clients) {
  for (int looks = 0; looks < 300 && clients_of(proxy) != clients; ++looks)
    std::this_thread::sleep_for(100ms);
  return clients_of(proxy) == clients;
}

/// What holds one stranger's connection.
using Stranger = std::function<std::shared_ptr<void>(std::uint16_t port)>;

std::shared_ptr<void> silent(std::uint16_t port) {
  return std::make_shared<Descriptor>(connect_to(port));
}

std::shared_ptr<void> in_a_word(std::uint16_t port) {
  const std::string begun = "*2\r\n$4\r\nAUTH\r\n$16000\r\n" + std::string(1000, 'x');
  auto connection = std::make_shared<Descriptor>(connect_to(port));
  if (::send(connection->number(), begun.data(), begun.size(), MSG_NOSIGNAL) < 0)
    throw std::runtime_error{"the proxy closes a client that begins a word"};
  return connection;
}

}  // namespace

bool weigh_strangers(std::size_t strangers, const std::string& program,
                     const std::function<void(const std::string&)>& tell) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  const TempDir folder;
  const RedisServer server{Texts{"requirepass sesame"}};
  const auto weigh = [&](std::string_view name, const Stranger& stranger, const Texts& more) {
    auto pool = redis_pool({server.port()});
    pool.insert(pool.begin(), {"redis_auth: sesame", "backlog: 4096", "login_timeout: 1h"});
    pool.insert(pool.begin(), more.begin(), more.end());
    const ProxyProgram proxy{pool, {.process = {}, .arguments = {}, .program = program}};
    const auto before = resident_mib(proxy.serving_pid());
    std::vector<std::shared_ptr<void>> here;
    while (here.size() < strangers) here.push_back(stranger(proxy.port()));
    const bool all = come_to_be(proxy, strangers);
    const auto during = resident_mib(proxy.serving_pid());
    here.clear();
    const bool none = come_to_be(proxy, 0);
    std::this_thread::sleep_for(10s);  // it gives memory back once a second
    tell(fmt::format(
        "{} strangers, {}: {:.1f} MiB before, {:.1f} MiB with them ({:.0f} bytes each), "
        "{:.1f} MiB ten seconds after{}",
        strangers, name, before, during,
        (during - before) * (1 << 20) / static_cast<double>(strangers),
        resident_mib(proxy.serving_pid()), all && none ? "" : "; NOT ALL CAME OR LEFT"));
    return all && none;
  };
  const bool plain = weigh("silent", silent, {}) && weigh("in the middle of a word", in_a_word, {});
  return weigh("behind a TLS handshake", shake_hands, tls_lines(folder)) && plain;
}

}  // namespace sluice::test
