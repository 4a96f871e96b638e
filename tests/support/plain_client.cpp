#include "support/plain_client.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "resp/writer.hpp"
#include "support/system_failure.hpp"

namespace sluice::test {
namespace {

template <class Address>
int connect_to(int family, const Address& address, const std::string& name) {
  const int socket = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) fail("socket");
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    return socket;
  const int reason = errno;
  ::close(socket);
  fail("connect " + name, reason);
}

}  // namespace

PlainClient::PlainClient(std::uint16_t port, const std::string& host) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) fail("address " + host, EINVAL);
  socket_ = connect_to(AF_INET, address, host + ":" + std::to_string(port));
  const int on = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

PlainClient::PlainClient(const std::string& socket_path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof address.sun_path) fail("socket " + socket_path, ENAMETOOLONG);
  std::memcpy(address.sun_path, socket_path.data(), socket_path.size());
  socket_ = connect_to(AF_UNIX, address, socket_path);
}

PlainClient::PlainClient(PlainClient&& other) noexcept
    : patience(other.patience),
      socket_(std::exchange(other.socket_, -1)),
      parser_(std::move(other.parser_)),
      input_(std::move(other.input_)),
      used_(other.used_) {}

PlainClient::~PlainClient() {
  if (socket_ >= 0) ::close(socket_);
}

Value PlainClient::command(std::initializer_list<std::string_view> words) {
  return command(std::span<const std::string_view>{words.begin(), words.size()});
}

Value PlainClient::command(std::span<const std::string_view> words) {
  std::string bytes;
  resp::append_command(bytes, words);
  send(bytes);
  return read();
}

Value PlainClient::command(std::span<const std::string> words) {
  const std::vector<std::string_view> views{words.begin(), words.end()};
  return command(std::span<const std::string_view>{views});
}

void PlainClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) fail("send");
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

Value PlainClient::read() {
  auto value = read_for(patience);
  if (!value) fail("no reply", ETIMEDOUT);
  return std::move(*value);
}

std::optional<Value> PlainClient::read_for(std::chrono::milliseconds how_long) {
  for (;;) {
    auto rest = std::string_view{input_}.substr(used_);
    auto value = parser_.next(rest);
    used_ = input_.size() - rest.size();
    if (value) return value;
    if (!wait_readable(how_long)) return std::nullopt;
    input_.resize(65536);
    input_.resize(receive(input_.data(), input_.size()));
    used_ = 0;
    if (input_.empty()) fail("the server closed the connection", ECONNRESET);
  }
}

std::string PlainClient::read_raw(std::size_t most) {
  if (!wait_readable(patience)) fail("no bytes", ETIMEDOUT);
  std::string bytes(most, '\0');
  bytes.resize(receive(bytes.data(), most));
  return bytes;
}

void PlainClient::finish_sending() { ::shutdown(socket_, SHUT_WR); }

bool PlainClient::wait_readable(std::chrono::milliseconds how_long) const {
  pollfd readable{socket_, POLLIN, 0};
  return ::poll(&readable, 1, static_cast<int>(how_long.count())) > 0;
}

std::size_t PlainClient::receive(char* into, std::size_t most) const {
  ssize_t got = -1;
  do got = ::recv(socket_, into, most, 0);
  while (got < 0 && errno == EINTR);
  if (got < 0) fail("recv");
  return static_cast<std::size_t>(got);
}

}  // namespace sluice::test
