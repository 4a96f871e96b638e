/// Two servers of Redis for a whole suite of tests, empty at the beginning of each.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "proxy/support/asking.hpp"
#include "proxy/support/proxy_under_test.hpp"
#include "support/plain_client.hpp"
#include "support/redis_server.hpp"

namespace sluice::test {

class TwoServers : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    for (auto& server : servers_) server = std::make_unique<RedisServer>();
  }
  static void TearDownTestSuite() {
    for (auto& server : servers_) server.reset();
  }
  void SetUp() override {
    for (const auto& server : servers_) {
      PlainClient client{server->port()};
      ASSERT_EQ(ask(client, "FLUSHALL"), "+OK");
    }
  }

  static std::vector<std::uint16_t> ports() { return {servers_[0]->port(), servers_[1]->port()}; }
  static PlainClient direct(std::size_t server) { return PlainClient{servers_[server]->port()}; }

  static inline std::unique_ptr<RedisServer> servers_[2];
};

}  // namespace sluice::test
