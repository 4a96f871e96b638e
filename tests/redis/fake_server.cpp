#include "redis/fake_server.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace sluice::test {
namespace {

int checked(int result, const char* what) {
  if (result < 0) throw std::system_error{errno, std::generic_category(), what};
  return result;
}

/// False: the test is over.
bool wait_readable(int descriptor, int stop) {
  pollfd both[] = {{descriptor, POLLIN, 0}, {stop, POLLIN, 0}};
  while (::poll(both, 2, -1) < 0 && errno == EINTR) {
  }
  return both[1].revents == 0;
}

}  // namespace

FakeServer::FakeServer(std::function<void(Peer&, int)> serve, Serves how)
    : listener_(checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket")),
      stop_(checked(::eventfd(0, EFD_CLOEXEC), "eventfd")) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const name = reinterpret_cast<sockaddr*>(&address);
  checked(::bind(listener_, name, size), "bind");
  checked(::listen(listener_, 16), "listen");
  checked(::getsockname(listener_, name, &size), "getsockname");
  port_ = ntohs(address.sin_port);
  thread_ = std::thread{[this, how, serve = std::move(serve)] { run(serve, how); }};
}

FakeServer::~FakeServer() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(stop_, &one, sizeof one);
  thread_.join();
  ::close(listener_);
  ::close(stop_);
}

redis::RedisOptions FakeServer::options() const {
  redis::RedisOptions options;
  options.endpoint.host = "127.0.0.1";
  options.endpoint.port = port_;
  options.connect_timeout = options.command_timeout = std::chrono::seconds{30};
  options.backoff_min = std::chrono::milliseconds{1};
  options.backoff_max = std::chrono::milliseconds{10};
  return options;
}

void FakeServer::run(const std::function<void(Peer&, int)>& serve, Serves how) const {
  std::vector<std::jthread> served;
  for (int number = 0; wait_readable(listener_, stop_); ++number) {
    const int accepted = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (accepted < 0) continue;
    const int on = 1;
    ::setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const auto serve_one = [this, &serve, accepted, number] {
      Peer peer{accepted, stop_};
      serve(peer, number);
      ::close(accepted);
    };
    if (how == Serves::at_once) {
      served.emplace_back(serve_one);
    } else {
      serve_one();
    }
  }
}

bool FakeServer::Peer::receive() {
  if (!wait_readable(descriptor_, stop_)) return false;
  std::array<char, 4096> bytes;
  const auto got = ::recv(descriptor_, bytes.data(), bytes.size(), 0);
  if (got <= 0) return false;
  input_.append(bytes.data(), static_cast<std::size_t>(got));
  return true;
}

std::vector<std::string> FakeServer::Peer::command() {
  for (;;) {
    if (!input_.empty() && parser_.parse(input_) == resp::RequestParser::State::complete) {
      std::vector<std::string> words{parser_.words().begin(), parser_.words().end()};
      input_.erase(0, parser_.size());
      return words;
    }
    if (!receive()) return {};
  }
}

void FakeServer::Peer::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

bool FakeServer::Peer::greet() {
  for (;;) {
    const auto words = command();
    if (words.empty()) return false;
    if (words[0] == "HELLO") send("%1\r\n$5\r\nproto\r\n:3\r\n");
    if (words[0] == "SELECT") send("+OK\r\n");
    if (words[0] == "WAIT") send(":0\r\n");
    if (words[0] == "SUBSCRIBE") send(">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n");
    if (words[0] == "PING") {
      send("+PONG\r\n");
      return true;
    }
  }
}

void FakeServer::Peer::reset() {
  const sockaddr nobody{.sa_family = AF_UNSPEC, .sa_data = {}};
  ::connect(descriptor_, &nobody, sizeof nobody);
}

void FakeServer::Peer::wait_for_end() {
  while (receive()) input_.clear();
}

}  // namespace sluice::test
