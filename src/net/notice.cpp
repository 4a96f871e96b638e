#include "net/notice.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <system_error>

#include "base/descriptor.hpp"
#include "sluice/log.hpp"

namespace sluice::net {
namespace {

constexpr timeval patience{.tv_sec = 1, .tv_usec = 0};

/// 0, or an errno.
int send_to(std::string_view name, std::string_view state) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() >= sizeof address.sun_path) return ENAMETOOLONG;
  std::ranges::copy(name, address.sun_path);
  if (name.starts_with('@')) address.sun_path[0] = '\0';
  const Descriptor socket{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  if (!socket.is_open()) return errno;
  ::setsockopt(socket.number(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  const auto sent = ::sendto(socket.number(), state.data(), state.size(), MSG_NOSIGNAL,
                             reinterpret_cast<const sockaddr*>(&address), size);
  return sent < 0 ? errno : 0;
}

}  // namespace

void tell_manager(std::string_view state) {
  const char* const name = std::getenv("NOTIFY_SOCKET");
  if (!name || !*name) return;
  if (const int error = send_to(name, state); error != 0)
    log(LogLevel::warning, fmt::format("the service manager was not told {} at {}: {}", state, name,
                                       std::generic_category().message(error)));
}

}  // namespace sluice::net
