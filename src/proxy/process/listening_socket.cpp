#include "proxy/process/listening_socket.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <system_error>

#include "sluice/error.hpp"

namespace sluice::proxy::process {
namespace {

constexpr int backlog = 128;

bool is_loopback(const net::Address& address) {
  if (address.family() == AF_UNIX) return true;
  if (address.family() == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &address.storage, sizeof in);
    return ntohl(in.sin_addr.s_addr) >> 24 == 127;
  }
  sockaddr_in6 in6{};
  std::memcpy(&in6, &address.storage, sizeof in6);
  return IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
}

}  // namespace

ListeningSocket::~ListeningSocket() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

ListeningSocket ListeningSocket::open(const net::Endpoint& endpoint, unsigned permissions) {
  try {
    ListeningSocket listening{
        net::ServerSocket::open(endpoint, {.backlog = backlog, .permissions = permissions})};
    listening.path_ = endpoint.unix_path;
    return listening;
  } catch (const Error&) {  // an unknown host
    throw;
  } catch (const std::system_error& refused) {
    const bool taken = refused.code() == std::errc::address_in_use;
    throw Error{taken ? Errc::in_use : Errc::connection,
                fmt::format("{}{}", refused.what(),
                            taken ? "; another process has it, or choose another address" : "")};
  }
}

ListeningSocket open_socket(std::string_view, const net::Endpoint& endpoint) {
  return ListeningSocket::open(endpoint);
}

bool is_local(const net::Endpoint& endpoint) {
  return std::ranges::all_of(net::resolve(endpoint), is_loopback);
}

}  // namespace sluice::proxy::process
