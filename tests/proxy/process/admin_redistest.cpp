/// Who is connected and what is asked most, as the administration tells it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "proxy/support/nutcracker.hpp"
#include "proxy/support/proxy_program.hpp"
#include "support/plain_client.hpp"
#include "support/redis_server.hpp"

namespace sluice::test {
namespace {

TEST(ClientsTest, AreListedOfAllWorkersWithWhatIsUnderWay) {
  RedisServer server;
  ProxyProgram proxy{redis_pool({server.port()}), {.process = {"workers: 2"}, .arguments = {}}};
  PlainClient quiet{proxy.port()}, waiting{proxy.port()};
  quiet.command({"PING"});
  const auto id = waiting.command({"CLIENT", "ID"}).as_integer();
  waiting.send("*3\r\n$5\r\nBLPOP\r\n$4\r\nnone\r\n$1\r\n0\r\n");
  PlainClient watcher{server.port()};
  while (watcher.command({"INFO", "clients"}).as_text().find("blocked_clients:1") ==
         std::string::npos) {
  }
  const auto reply = proxy.ask({"CLIENTS"});
  ASSERT_FALSE(reply.is_error()) << reply.as_text();
  const auto clients = nlohmann::json::parse(reply.as_text());
  ASSERT_EQ(clients.size(), 2U) << reply.as_text();
  for (const auto& client : clients) {
    EXPECT_EQ(client.at("pool"), "alpha");
    EXPECT_TRUE(client.at("address").get<std::string>().starts_with("127.0.0.1:"));
    EXPECT_EQ(client.at("under_way"), client.at("id") == id ? 1 : 0);
  }
}

bool tells_hot_keys(std::vector<std::string> process) {
  RedisServer server;
  ProxyProgram proxy{redis_pool({server.port()}), {.process = std::move(process), .arguments = {}}};
  PlainClient client{proxy.port()};
  std::string requests;
  for (int i = 0; i < 20'000; ++i) requests += "*2\r\n$3\r\nGET\r\n$6\r\nhotkey\r\n";
  client.send(requests);
  for (int i = 0; i < 20'000; ++i) static_cast<void>(client.read());
  const auto reply = proxy.ask({"HOTKEYS"});
  return !reply.is_error() && !reply.as_items().empty();
}

TEST(HotKeysTest, AreCountedWhereTheSettingSaysSo) {
  EXPECT_FALSE(tells_hot_keys({}));
  EXPECT_TRUE(tells_hot_keys({"hot_keys: true"}));
}

}  // namespace
}  // namespace sluice::test
