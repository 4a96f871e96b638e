// Sessions of every kind at once while servers cut connections: each request has its one reply, in
// its place.
#include <random>

#include "proxy/flow/two_servers.hpp"

namespace sluice::test {
namespace {

using Storm = TwoServers;

class Sailor {
 public:
  Sailor(std::uint16_t port, unsigned seed) : client_(port), random_(seed) {}

  /// One write of some requests; the last one tells that all before it were answered.
  void go() {
    const auto token = std::to_string(++count_);
    std::string bytes;
    const int requests = pick(12);
    for (int i = 0; i < requests; ++i) bytes += request(line());
    // Whatever has begun is ended, so that ECHO is answered and not queued.
    bytes += request("DISCARD") + request("UNWATCH") + request("ECHO " + token);
    client_.send(bytes);
    for (int i = 0; i < requests + 2; ++i) replies_.push_back(text_of(client_.read()));
    const auto last = text_of(client_.read());
    EXPECT_EQ(last, "$" + std::to_string(token.size()) + " " + token);
    for (const auto& reply : replies_) EXPECT_FALSE(reply.starts_with("+OK ")) << reply;
    replies_.clear();
  }

 private:
  int pick(int most) { return static_cast<int>(random_() % static_cast<unsigned>(most)); }
  std::string line() {
    static const std::vector<std::string> lines{"MULTI",
                                                "MULTI",
                                                "EXEC",
                                                "EXEC",
                                                "DISCARD",
                                                "WATCH k%",
                                                "UNWATCH",
                                                "SET k% 1",
                                                "INCR k%",
                                                "GET k%",
                                                "MGET k1 k2 k3",
                                                "DEL k1 k2 k3",
                                                "SELECT 0",
                                                "SELECT 1",
                                                "SELECT 77",
                                                "HELLO 2",
                                                "HELLO 3",
                                                "RESET",
                                                "PING",
                                                "CLIENT SETNAME n",
                                                "CLIENT INFO",
                                                "RPUSH l% x",
                                                "RPUSH l% y z",
                                                "BLPOP l1 0.01",
                                                "EVAL return{1} 0",
                                                "BLMPOP 0.01 1 l2 LEFT",
                                                "FOO",
                                                "SET k%",
                                                "AUTH x",
                                                "DBSIZE"};
    auto text = lines[static_cast<std::size_t>(pick(static_cast<int>(lines.size())))];
    if (const auto at = text.find('%'); at != std::string::npos)
      text.replace(at, 1, std::to_string(pick(4)));
    return text;
  }

  PlainClient client_;
  std::mt19937 random_;
  int count_ = 0;
  std::vector<std::string> replies_;
};

TEST_F(Storm, EveryRequestHasItsReply) {
  ProxyUnderTest proxy{ports(), {"timeout: 50000", "server_connections: 2"}, {"workers: 2"}};
  std::vector<std::jthread> crew;
  std::atomic<int> sailing{6};
  for (unsigned seed = 1; seed <= 6; ++seed)
    crew.emplace_back([&, seed] {
      Sailor sailor{proxy.port(), seed};
      for (int i = 0; i < 200; ++i) sailor.go();
      --sailing;
    });
  std::mt19937 random{7};
  while (sailing != 0) {
    auto server = direct(random() % 2);
    EXPECT_EQ(ask(server, "CLIENT KILL TYPE normal SKIPME yes").front(), ':');
    if (random() % 4 == 0)
      proxy.reload(ports(), {fmt::format("timeout: {}", 40000 + random() % 2)});
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
}

}  // namespace
}  // namespace sluice::test
