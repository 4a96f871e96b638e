// The memory of a client that has sent HELLO and AUTH and nothing else.
#include <malloc.h>
#include <sys/socket.h>

#include "base/descriptor.hpp"
#include "proxy/flow/two_servers.hpp"
#include "proxy/support/listening.hpp"
#include "support/sanitized.hpp"

namespace sluice::test {
namespace {

void say(const Descriptor& socket, const std::string& bytes, std::string_view last) {
  ASSERT_EQ(::send(socket.number(), bytes.data(), bytes.size(), 0),
            static_cast<ssize_t>(bytes.size()));
  char heard[1024];
  std::size_t size = 0;
  while (!std::string_view{heard, size}.ends_with(last)) {
    const auto got = ::recv(socket.number(), heard + size, sizeof heard - size, 0);
    ASSERT_GT(got, 0);
    size += static_cast<std::size_t>(got);
  }
}

TEST(SessionMemory, AClientThatSaidWhoItIsIsSmall) {
  if (is_sanitized) GTEST_SKIP() << "the sanitizer has an allocator of its own";
  constexpr std::size_t clients = 1000, most_each = 512;
  RedisServer server;
  ProxyUnderTest proxy{{server.port()}};
  const auto handshake = request("HELLO 3") + request("CLIENT SETINFO LIB-NAME go-redis(,go1.22)") +
                         request("CLIENT SETINFO LIB-VER 9.5.1");
  const auto come = [&] {
    auto socket = connect_to(proxy.port());
    say(socket, handshake, "*0\r\n+OK\r\n+OK\r\n");
    return socket;
  };
  const auto first = come();  // what is made once
  std::vector<Descriptor> sockets;
  sockets.reserve(clients);
  const auto before = ::mallinfo2().uordblks;
  for (std::size_t i = 0; i < clients; ++i) sockets.push_back(come());
  const auto each = (::mallinfo2().uordblks - before) / clients;
  RecordProperty("bytes_each", static_cast<int>(each));
  EXPECT_LE(each, most_each);
  EXPECT_GE(each, sizeof(void*)) << "nothing was measured";
}

}  // namespace
}  // namespace sluice::test
