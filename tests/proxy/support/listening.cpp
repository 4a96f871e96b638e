#include "proxy/support/listening.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>
#include <thread>

#include "support/plain_client.hpp"

namespace sluice::test {
namespace {

bool listens(std::uint16_t port) try {
  PlainClient client{port};
  return true;
} catch (const std::system_error&) {
  return false;
}

}  // namespace

bool comes_to_listen(Process& process, std::uint16_t port) {
  constexpr std::chrono::seconds patience{20};
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (process.running() && std::chrono::steady_clock::now() < deadline) {
    if (listens(port)) return process.running();
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
  return false;
}

Descriptor connect_to(std::uint16_t port) {
  Descriptor socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  if (::connect(socket.number(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    throw std::system_error{errno, std::generic_category(), "connect"};
  return socket;
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

Said talk(std::uint16_t port, std::string_view bytes, std::string_view last) {
  PlainClient client{port};
  Said said;
  try {
    client.send(bytes);
    while (last.empty() || !said.bytes.ends_with(last)) {
      const auto more = client.read_raw();
      if (more.empty()) {
        said.closed = true;
        break;
      }
      said.bytes += more;
    }
  } catch (const std::system_error& error) {
    const auto code = error.code();
    if (code != std::errc::connection_reset && code != std::errc::broken_pipe) throw;
    said.closed = true;  // reset: it had not read all bytes
  }
  return said;
}

}  // namespace sluice::test
