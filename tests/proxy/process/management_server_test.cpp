#include "proxy/process/management_server.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <system_error>

#include "support/plain_client.hpp"

namespace sluice::proxy::process {
namespace {

using namespace std::chrono_literals;
using test::PlainClient;

/// Answers each line with itself; "bye" ends, "throw" throws, "big" answers with 8 MiB.
class Echo final : public Conversation {
 public:
  Next talk(std::string& input, std::string& output) override {
    const auto end = input.find('\n');
    if (end == std::string::npos) return Next::listen;
    const std::string line = input.substr(0, end + 1);
    input.erase(0, end + 1);
    if (line == "throw\n") throw std::runtime_error{"as asked"};
    output += line == "big\n" ? std::string(8 << 20, 'x') : line;
    return line == "bye\n" ? Next::close : Next::listen;
  }
};

class SideServerTest : public testing::Test {
 protected:
  Service service() {
    auto listening = ListeningSocket::open({.host = "127.0.0.1", .port = 0});
    port = listening.port();
    return {.listening = std::move(listening),
            .open_conversation = [] { return std::make_unique<Echo>(); },
            .idle = 10s,
            .input_limit = 100};
  }
  static std::vector<Service> one(Service service) {
    std::vector<Service> services;
    services.push_back(std::move(service));
    return services;
  }
  static std::string ask(PlainClient& client, const std::string& line) {
    client.send(line);
    return client.read_raw(line.size());
  }

  std::uint16_t port = 0;
  VirtualClock clock;
  ManagementServer server{one(service()), clock};
};

TEST_F(SideServerTest, AnswersInAnyPieces) {
  PlainClient client{port};
  client.send("he");
  client.send("llo\nthere\n");
  std::string heard;
  while (heard.size() < 12) heard += client.read_raw();
  EXPECT_EQ(heard, "hello\nthere\n");
  EXPECT_EQ(ask(client, "bye\n"), "bye\n");
  EXPECT_EQ(client.read_raw(), "");
}

TEST_F(SideServerTest, AClientThatDoesNotReadHoldsUpNobody) {
  PlainClient lazy{port}, other{port};
  for (int i = 0; i < 3; ++i) lazy.send("big\n");
  EXPECT_EQ(ask(other, "hello\n"), "hello\n");
}

TEST_F(SideServerTest, AClientThatThrowsOrSaysTooMuchIsClosedAlone) {
  PlainClient thrower{port}, talker{port}, other{port};
  thrower.send("throw\n");
  EXPECT_EQ(thrower.read_raw(), "");
  talker.send(std::string(101, 'x'));
  EXPECT_EQ(talker.read_raw(), "");
  EXPECT_EQ(ask(other, "hello\n"), "hello\n");
}

/// Ended by the server within the time that the clock is moved by.
bool is_closed(PlainClient& client, VirtualClock& clock, std::chrono::seconds within) {
  client.patience = 20ms;  // the server's thread looks when the clock tells it to, which is soon
  for (auto passed = 0s; passed < within; passed += 1s) {
    clock.advance(1s);
    try {
      if (client.read_raw().empty()) return true;
    } catch (const std::system_error&) {  // nothing yet
    }
  }
  return false;
}

TEST_F(SideServerTest, AnIdleClientIsClosedInTime) {
  PlainClient idle{port};
  EXPECT_EQ(ask(idle, "a\n"), "a\n");
  EXPECT_FALSE(is_closed(idle, clock, 8s));
  EXPECT_EQ(ask(idle, "b\n"), "b\n");  // and is busy again
  EXPECT_FALSE(is_closed(idle, clock, 8s));
  EXPECT_TRUE(is_closed(idle, clock, 1min));
}

TEST_F(SideServerTest, TooManyClientsGiveWayFromTheIdlest) {
  PlainClient first{port};
  EXPECT_EQ(ask(first, "a\n"), "a\n");
  clock.advance(1ms);
  std::vector<PlainClient> others;
  for (std::size_t i = 0; i < ManagementServer::most_clients; ++i) {
    others.emplace_back(port);
    EXPECT_EQ(ask(others.back(), "b\n"), "b\n");
  }
  EXPECT_EQ(first.read_raw(), "");
  EXPECT_EQ(ask(others.front(), "c\n"), "c\n");
}

}  // namespace
}  // namespace sluice::proxy::process
