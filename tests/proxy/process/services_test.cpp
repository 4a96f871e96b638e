#include "proxy/process/services.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>

#include "sluice/error.hpp"
#include "support/plain_client.hpp"
#include "support/temp_dir.hpp"

namespace sluice::proxy {
namespace {

using namespace std::chrono_literals;
using test::PlainClient;

class ServicesTest : public testing::Test {
 protected:
  ServicesTest() {
    options.stats_port = 0;  // any
    settings.metrics = "127.0.0.1:0";
    settings.admin = (directory / "admin").string();
  }
  std::unique_ptr<SideServer> start() {
    auto doors = open_services(options, settings, {registry, actions, clock, "1.2.3"},
                               [this](std::string_view what, const net::Endpoint& endpoint) {
                                 auto listening = Listening::open(endpoint);
                                 ports[std::string{what}] = listening.port();
                                 return listening;
                               });
    return std::make_unique<SideServer>(std::move(doors), clock);
  }
  std::string read_all(std::string_view what, std::string_view question) {
    PlainClient client{ports.at(std::string{what})};
    client.send(question);
    std::string all;
    for (std::string piece; !(piece = client.read_raw()).empty();) all += piece;
    return all;
  }

  test::TempDir directory;
  VirtualClock clock;
  Registry registry{1, {}, clock};
  AdminActions actions;
  Options options;
  ProcessSettings settings;
  std::map<std::string, std::uint16_t> ports;
};

TEST_F(ServicesTest, AllThreeAreServed) {
  const auto server = start();
  EXPECT_TRUE(read_all("statistics", "").starts_with(R"({"service":"nutcracker", "source":")"));
  EXPECT_NE(read_all("metrics", "GET /metrics HTTP/1.0\r\n\r\n")
                .find(R"(sluice_proxy_build_info{version="1.2.3"} 1)"),
            std::string::npos);
  EXPECT_EQ(PlainClient{settings.admin}.command({"PING"}).as_text(), "PONG");
}

TEST_F(ServicesTest, WhatTheFileDoesNotNameIsNotServed) {
  settings.metrics = settings.admin = "";
  const auto server = start();
  EXPECT_EQ(ports.size(), 1u);
}

TEST_F(ServicesTest, TheDocumentIsAsOldAsItsIntervalAtMost) {
  options.stats_interval = 100ms;
  const auto server = start();
  registry.set_pools({{"p", {"s"}, 0, {}}});
  registry.pool(0, "p")->counters.client_eof.set(1);
  const auto first = read_all("statistics", "");
  EXPECT_NE(first.find(R"("client_eof":1)"), std::string::npos);
  registry.pool(0, "p")->counters.client_eof.set(2);
  EXPECT_EQ(read_all("statistics", ""), first);
  clock.advance(100ms);
  EXPECT_NE(read_all("statistics", "").find(R"("client_eof":2)"), std::string::npos);
}

TEST_F(ServicesTest, AfterAnUpgradeTheSocketIsTheSuccessors) {
  auto server = start();
  server->hand_on();
  server.reset();
  EXPECT_TRUE(std::filesystem::exists(settings.admin));
  start().reset();
  EXPECT_FALSE(std::filesystem::exists(settings.admin));
}

TEST_F(ServicesTest, AnAdministrationForEverybodyIsRefused) {
  settings.admin = "0.0.0.0:0";
  EXPECT_THROW(start(), Error);
}

}  // namespace
}  // namespace sluice::proxy
