#include "support/cutting_proxy.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace sluice::test {
namespace {

sockaddr_in at_loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

[[noreturn]] void no_socket(const char* what) {
  throw std::system_error{errno, std::generic_category(), what};
}

/// What has come; empty: the other side has closed.
std::optional<std::string> read_some(int socket) {
  std::string bytes(1 << 16, '\0');
  const auto count = ::read(socket, bytes.data(), bytes.size());
  if (count <= 0) return std::nullopt;
  bytes.resize(static_cast<std::size_t>(count));
  return bytes;
}

bool write_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto count = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace

CuttingProxy::CuttingProxy(std::uint16_t server)
    : server_(server), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  auto address = at_loopback(0);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener_.number(), any, size) != 0 || ::listen(listener_.number(), 64) != 0 ||
      ::getsockname(listener_.number(), any, &size) != 0)
    no_socket("cutting proxy");
  port_ = ntohs(address.sin_port);
  thread_ = std::jthread{[this](std::stop_token stop) { run(std::move(stop)); }};
}

CuttingProxy::~CuttingProxy() {
  thread_.request_stop();
  thread_.join();
}

void CuttingProxy::cut_at(std::string word, Cut cut) {
  const std::lock_guard lock{mutex_};
  word_ = std::move(word);
  cut_ = cut;
}

void CuttingProxy::do_at(std::string word, std::function<void()> deed) {
  const std::lock_guard lock{mutex_};
  word_ = std::move(word);
  deed_ = std::move(deed);
}

void CuttingProxy::run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    std::vector<pollfd> ready{{listener_.number(), POLLIN, 0}};
    for (const auto& line : lines_) {
      ready.push_back({line.client.number(), POLLIN, 0});
      ready.push_back({line.server.number(), POLLIN, 0});
    }
    constexpr int look_again_ms = 20;  // for the stop
    if (::poll(ready.data(), ready.size(), look_again_ms) <= 0) continue;
    for (std::size_t i = lines_.size(); i-- > 0;) {
      const bool goes_on = (ready[1 + 2 * i].revents == 0 || from_client(lines_[i])) &&
                           (ready[2 + 2 * i].revents == 0 || from_server(lines_[i]));
      if (!goes_on) lines_.erase(lines_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (ready[0].revents != 0) accept_one();
  }
}

void CuttingProxy::accept_one() {
  Line line{.client = Descriptor{::accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC)},
            .server = Descriptor{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)}};
  const auto address = at_loopback(server_);
  if (::connect(line.server.number(), reinterpret_cast<const sockaddr*>(&address),
                sizeof address) != 0)
    return;
  const int on = 1;
  for (const auto* const side : {&line.client, &line.server})
    ::setsockopt(side->number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  lines_.push_back(std::move(line));
}

bool CuttingProxy::from_client(Line& line) {
  const auto bytes = read_some(line.client.number());
  if (!bytes) return false;
  const std::lock_guard lock{mutex_};
  if (!word_.empty() && bytes->find(word_) != std::string::npos) {
    word_.clear();
    if (const auto deed = std::exchange(deed_, nullptr)) {
      deed();
      return write_all(line.server.number(), *bytes);
    }
    ++cuts_;
    if (cut_ == Cut::before) return false;
    line.waits = true;
  }
  return write_all(line.server.number(), *bytes);
}

bool CuttingProxy::from_server(Line& line) {
  const auto bytes = read_some(line.server.number());
  return bytes && !line.waits && write_all(line.client.number(), *bytes);
}

}  // namespace sluice::test
