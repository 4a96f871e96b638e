#include "proxy/storm/wire.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <vector>

#include "proxy/support/listening.hpp"

namespace sluice::test {

Wire::Wire(std::uint16_t port) : socket_(connect_to(port)) {
  const int on = 1;
  ::setsockopt(socket_.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::fcntl(socket_.number(), F_SETFL, O_NONBLOCK);
}

void Wire::vanish() {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket_.number(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  socket_.close();
  ended_ = true;
}

void Wire::write() {
  if (output_.empty() || ended_) return;
  const auto sent = ::send(socket_.number(), output_.data(), output_.size(), MSG_NOSIGNAL);
  if (sent > 0) output_.erase(0, static_cast<std::size_t>(sent));
  if (sent < 0 && errno != EAGAIN && errno != EINTR) output_.clear();  // read() sees why
}

void Wire::read() {
  std::array<char, 65536> bytes;
  while (!ended_) {
    const auto got = ::recv(socket_.number(), bytes.data(), bytes.size(), 0);
    if (got > 0) input_.append(bytes.data(), static_cast<std::size_t>(got));
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) ended_ = true;
    if (got < static_cast<ssize_t>(bytes.size())) return;
  }
}

void Wire::turn(std::span<Wire* const> wires, int milliseconds) {
  std::vector<pollfd> waiting;
  for (auto* const wire : wires) {
    if (wire == nullptr || wire->ended_) continue;
    wire->write();
    const auto events = static_cast<short>(wire->sent_all() ? POLLIN : POLLIN | POLLOUT);
    waiting.push_back({wire->socket_.number(), events, 0});
  }
  ::poll(waiting.data(), waiting.size(), milliseconds);
  auto seen = waiting.begin();
  for (auto* const wire : wires) {
    if (wire == nullptr || wire->ended_) continue;
    const auto events = (seen++)->revents;
    if ((events & POLLOUT) != 0) wire->write();
    if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) wire->read();
  }
}

}  // namespace sluice::test
