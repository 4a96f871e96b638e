#include <gtest/gtest.h>
#include <signal.h>

#include <stdexcept>
#include <system_error>

#include "support/plain_client.hpp"
#include "support/redis_server.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;

TEST(RedisServer, AnswersAndIsGoneAfterwards) {
  pid_t pid = 0;
  std::uint16_t port = 0;
  {
    RedisServer server;
    pid = server.pid();
    port = server.port();
    PlainClient client{port};
    EXPECT_EQ(client.command({"SET", "k", "v"}), Value::simple_string("OK"));
    EXPECT_EQ(client.command({"GET", "k"}), Value::bulk_string("v"));
    EXPECT_EQ(server.url(), "redis://127.0.0.1:" + std::to_string(port));
  }
  EXPECT_NE(::kill(pid, 0), 0);
  EXPECT_THROW(PlainClient{port}, std::system_error);
}

TEST(RedisServer, KeepsOrForgetsItsDataOverARestart) {
  RedisServer server;
  PlainClient{server.port()}.command({"SET", "k", "v"});
  server.restart(true);
  EXPECT_EQ(PlainClient{server.port()}.command({"GET", "k"}), Value::bulk_string("v"));
  server.restart(false);
  EXPECT_TRUE(PlainClient{server.port()}.command({"GET", "k"}).is_null());
}

TEST(RedisServer, ComesBackFromSigkillWithItsFile) {
  RedisServer server{{"appendonly yes", "appendfsync always"}};
  PlainClient{server.port()}.command({"SET", "k", "v"});
  server.kill();
  EXPECT_EQ(server.pid(), -1);
  server.start();
  EXPECT_EQ(PlainClient{server.port()}.command({"GET", "k"}), Value::bulk_string("v"));
}

TEST(RedisServer, ListensOnASocket) {
  RedisServer server{{}, RedisServer::Address::unix_socket};
  EXPECT_EQ(server.port(), 0);
  EXPECT_EQ(PlainClient{server.socket_path()}.command({"PING"}), Value::simple_string("PONG"));
}

TEST(RedisServer, TakesAPassword) {
  RedisServer server{{"requirepass secret"}};
  PlainClient client{server.port()};
  EXPECT_EQ(client.command({"GET", "k"}), Value::error("NOAUTH Authentication required."));
  EXPECT_EQ(client.command({"AUTH", "secret"}), Value::simple_string("OK"));
}

TEST(RedisServer, SaysNothingWhileStopped) {
  RedisServer server;
  PlainClient client{server.port()};
  server.stop();
  client.send("PING\r\n");
  EXPECT_FALSE(client.read_for(20ms).has_value());
  server.cont();
  EXPECT_EQ(client.read(), Value::simple_string("PONG"));
}

TEST(RedisServer, RefusesAConfigurationThatRedisRefuses) {
  EXPECT_THROW(RedisServer({"no-such-setting yes"}), std::runtime_error);
}

TEST(PlainClient, ReadsResp3AndPushes) {
  RedisServer server;
  PlainClient listener{server.port()};
  EXPECT_EQ(listener.command({"HELLO", "3"}).type(), Value::Type::map);
  EXPECT_EQ(listener.command({"SUBSCRIBE", "c"}).type(), Value::Type::push);
  PlainClient{server.port()}.command({"PUBLISH", "c", "hello"});
  const auto message = listener.read();
  ASSERT_EQ(message.type(), Value::Type::push);
  EXPECT_EQ(message.as_items().at(2), Value::bulk_string("hello"));
}

}  // namespace
}  // namespace sluice::test
