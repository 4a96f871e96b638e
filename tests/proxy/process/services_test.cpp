#include "proxy/process/services.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "proxy/support/nutcracker.hpp"
#include "proxy/watch/documents.hpp"
#include "sluice/error.hpp"
#include "support/plain_client.hpp"
#include "support/temp_dir.hpp"

namespace sluice::proxy::process {
namespace {

using namespace std::chrono_literals;
using test::PlainClient;

std::string read_all(PlainClient& client) {
  std::string all;
  for (std::string piece; !(piece = client.read_raw()).empty();) all += piece;
  return all;
}

class ServicesTest : public testing::Test {
 protected:
  ServicesTest() {
    options.stats_port = 0;               // any
    settings.metrics = "127.0.0.1:9090";  // see start()
    settings.admin = (directory / "admin").string();
  }
  std::unique_ptr<ManagementServer> start() {
    auto services = open_services(options, settings, {registry, actions, clock, "1.2.3"},
                                  [this](std::string_view what, net::Endpoint endpoint) {
                                    endpoint.port = 0;  // any, whatever the file says
                                    auto listening = ListeningSocket::open(endpoint);
                                    ports[std::string{what}] = listening.port();
                                    return listening;
                                  });
    return std::make_unique<ManagementServer>(std::move(services), clock);
  }
  std::string read_all(std::string_view what, std::string_view question) {
    PlainClient client{ports.at(std::string{what})};
    client.send(question);
    return proxy::process::read_all(client);
  }

  test::TempDir directory;
  VirtualClock clock;
  watch::Registry registry{1, {}, clock};
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
  settings.admin = "0.0.0.0:22";
  EXPECT_THROW(start(), Error);
}

std::string http(const std::string& request) {
  VirtualClock clock;
  const auto session = metrics_conversation(
      std::make_shared<CachedText>([] { return std::string{"m 1\n"}; }, 1s, clock));
  std::string input = request, output;
  session->talk(input, output);
  return output;
}

TEST(CachedText, IsMadeOnceInAnInterval) {
  VirtualClock clock;
  int made = 0;
  CachedText text{[&] { return std::to_string(++made); }, 1s, clock};
  EXPECT_EQ(text.text(), "1");
  clock.advance(999ms);
  EXPECT_EQ(text.text(), "1");
  clock.advance(1ms);
  EXPECT_EQ(text.text(), "2");
}

TEST(MetricsConversation, AnswersAsHttpAsks) {
  EXPECT_TRUE(http("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").ends_with("\r\n\r\nm 1\n"));
  EXPECT_TRUE(http("GET /metrics?x=1 HTTP/1.0\n\n").starts_with("HTTP/1.1 200 OK\r\n"));
  const auto head = http("HEAD /metrics HTTP/1.1\r\n\r\n");
  EXPECT_NE(head.find("Content-Length: 4\r\n"), std::string::npos);
  EXPECT_TRUE(head.ends_with("\r\n\r\n"));
  EXPECT_TRUE(http("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
  EXPECT_TRUE(http("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
  EXPECT_TRUE(http("\r\n\r\n").starts_with("HTTP/1.1 405 "));
  EXPECT_EQ(http("GET /metrics HTTP/1.1\r\nHost"), "");  // more to come
}

/// Keys in the order of the text, with those of what lies inside.
std::string shape_of(const nlohmann::ordered_json& json) {
  std::string shape;
  for (const auto& [key, value] : json.items())
    shape += key +
             (value.is_object() ? "{" + shape_of(value) + "}" : std::string{value.type_name()}) +
             " ";
  return shape;
}

/// Without what differs from run to run.
std::string without_numbers(std::string text) {
  std::erase_if(text, [](char c) { return c >= '0' && c <= '9'; });
  return text;
}

TEST(Statistics, AreThoseOfARealNutcracker) {
  const std::vector<std::string> servers{"redis: true", "servers:", " - 127.0.0.1:1:1 longer",
                                         " - 127.0.0.1:2:1 b", " - 127.0.0.1:3:1 a"};
  const test::Nutcracker nutcracker{servers};
  PlainClient to_nutcracker{nutcracker.stats_port()};
  const auto real = read_all(to_nutcracker);

  VirtualClock clock;
  watch::Registry registry{1, {}, clock};
  registry.set_pools({{"alpha", {"longer", "b", "a"}, 0, {}}});
  const auto source = nlohmann::json::parse(real)["source"].get<std::string>();
  auto listening = ListeningSocket::open({.host = "127.0.0.1", .port = 0});
  const auto port = listening.port();
  std::vector<Service> services;
  const auto document = std::make_shared<CachedText>(
      [&] {
        return watch::twemproxy_document(registry.snapshot(),
                                         {.source = source, .version = "0.5.0"});
      },
      1s, clock);
  services.push_back({.listening = std::move(listening),
                      .open_conversation = [document] { return document_conversation(document); }});
  const ManagementServer server{std::move(services), clock};
  PlainClient client{port};
  client.send("GET / HTTP/1.0\r\n\r\n");  // many ask so; the answer must not be lost for it
  const auto ours = read_all(client);

  EXPECT_EQ(shape_of(nlohmann::ordered_json::parse(ours)),
            shape_of(nlohmann::ordered_json::parse(real)));
  EXPECT_EQ(without_numbers(ours), without_numbers(real));
}

}  // namespace
}  // namespace sluice::proxy::process
