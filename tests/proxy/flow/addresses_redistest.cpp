/// A server by its name, whose addresses change while it is used.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <thread>

#include "proxy/config/read.hpp"
#include "proxy/flow/proxy.hpp"
#include "support/free_port.hpp"
#include "support/plain_client.hpp"
#include "support/redis_server.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;

net::Address address_of(std::uint16_t port) {
  return net::resolve({.host = "127.0.0.1", .port = port}).front();
}

/// What the name service says, as the test wants it.
class Names {
 public:
  void say(std::vector<net::Address> addresses) {
    const std::lock_guard lock{known_->mutex};
    known_->addresses = std::move(addresses);
  }
  /// It may be called when this is gone.
  proxy::flow::Resolver::Lookup lookup() {
    return [known = known_](const net::Endpoint&) {
      const std::lock_guard lock{known->mutex};
      ++known->questions;
      return known->addresses;
    };
  }
  int questions() {
    const std::lock_guard lock{known_->mutex};
    return known_->questions;
  }

 private:
  struct Known {
    std::mutex mutex;
    std::vector<net::Address> addresses;
    int questions = 0;
  };
  const std::shared_ptr<Known> known_ = std::make_shared<Known>();
};

class AddressesTest : public testing::Test {
 protected:
  void start(const std::string& settings = {}) {
    port_ = free_port();
    const auto text = fmt::format(
        "alpha:\n  listen: 127.0.0.1:{}\n  redis: true\n{}  servers:\n   - some.name:6379:1\n",
        port_, settings);
    proxy_ = std::make_unique<proxy::Proxy>(system_clock(), proxy::config::read(text, "test.yml"),
                                            16384, proxy::InheritedListeners{}, names_.lookup());
    proxy_->start();
  }
  /// A SET through the proxy has come to this server.
  bool comes_to(PlainClient& client, const RedisServer& server) {
    PlainClient side{server.port()};
    for (int tries = 0; tries < 1000; ++tries) {
      const auto value = std::to_string(++last_);
      client.command({"SET", "k", value});
      if (const auto there = side.command({"GET", "k"});
          !there.is_null() && there.as_text() == value)
        return true;
      side.command({"BLPOP", "nothing", "0.01"});
    }
    return false;
  }

  RedisServer one_, two_;
  Names names_;
  std::uint16_t port_ = 0;
  int last_ = 0;
  std::unique_ptr<proxy::Proxy> proxy_;
};

TEST_F(AddressesTest, ItIsAskedAgainAndNewRequestsGoWhereItIsNow) {
  names_.say({address_of(one_.port())});
  start("  resolve_interval: 100\n");
  PlainClient client{port_};
  ASSERT_EQ(client.command({"SET", "a", "1"}).as_text(), "OK");
  names_.say({address_of(two_.port())});
  EXPECT_TRUE(comes_to(client, two_)) << "though the old address still answers";
}

TEST_F(AddressesTest, WhatIsUnderWayIsAnsweredAtTheOldAddress) {
  names_.say({address_of(one_.port())});
  start("  resolve_interval: 100\n");
  PlainClient waiting{port_}, other{port_};
  ASSERT_EQ(other.command({"SET", "a", "old"}).as_text(), "OK");
  one_.stop();
  waiting.send("*2\r\n$3\r\nGET\r\n$1\r\na\r\n");
  ASSERT_FALSE(waiting.read_for(50ms));
  names_.say({address_of(two_.port())});
  while (names_.questions() < 3) std::this_thread::sleep_for(5ms);
  one_.cont();
  EXPECT_EQ(waiting.read().as_text(), "old");
  EXPECT_TRUE(comes_to(other, two_));
}

TEST_F(AddressesTest, AddressesAreTriedInTurnWithoutAnErrorToTheClient) {
  names_.say({address_of(free_port()), address_of(free_port()), address_of(one_.port())});
  start();
  PlainClient client{port_};
  EXPECT_EQ(client.command({"SET", "a", "1"}).as_text(), "OK");
  EXPECT_EQ(PlainClient{one_.port()}.command({"GET", "a"}).as_text(), "1");
}

TEST_F(AddressesTest, AConnectionThatFailsHasItAskedAgain) {
  names_.say({address_of(one_.port())});
  start();  // every 30 seconds, else
  PlainClient client{port_};
  ASSERT_EQ(client.command({"SET", "a", "1"}).as_text(), "OK");
  names_.say({address_of(two_.port())});
  one_.kill();
  EXPECT_TRUE(comes_to(client, two_));
}

TEST_F(AddressesTest, ANameWithoutAnAddressIsToldAndFoundLater) {
  start();
  PlainClient client{port_};
  EXPECT_EQ(client.command({"GET", "a"}).as_text(), "ERR Host is down");
  names_.say({address_of(one_.port())});
  EXPECT_TRUE(comes_to(client, one_));
}

}  // namespace
}  // namespace sluice::test
