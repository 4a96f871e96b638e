#include "proxy/process/statistics_door.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "proxy/process/side_server.hpp"
#include "proxy/support/nutcracker.hpp"
#include "proxy/watch/documents.hpp"
#include "support/plain_client.hpp"

namespace sluice::proxy {
namespace {

using namespace std::chrono_literals;
using test::PlainClient;

std::string read_all(PlainClient& client) {
  std::string all;
  for (std::string piece; !(piece = client.read_raw()).empty();) all += piece;
  return all;
}

std::string http(const std::string& request) {
  VirtualClock clock;
  const auto session =
      metrics_session(std::make_shared<CachedText>([] { return std::string{"m 1\n"}; }, 1s, clock));
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

TEST(MetricsSession, AnswersAsHttpAsks) {
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
  Registry registry{1, {}, clock};
  registry.set_pools({{"alpha", {"longer", "b", "a"}, 0, {}}});
  const auto source = nlohmann::json::parse(real)["source"].get<std::string>();
  auto listening = Listening::open({.host = "127.0.0.1", .port = 0});
  const auto port = listening.port();
  std::vector<Door> doors;
  const auto document = std::make_shared<CachedText>(
      [&] {
        return twemproxy_document(registry.snapshot(), {.source = source, .version = "0.5.0"});
      },
      1s, clock);
  doors.push_back({.listening = std::move(listening),
                   .open_session = [document] { return document_session(document); }});
  const SideServer server{std::move(doors), clock};
  PlainClient client{port};
  client.send("GET / HTTP/1.0\r\n\r\n");  // many ask so; the answer must not be lost for it
  const auto ours = read_all(client);

  EXPECT_EQ(shape_of(nlohmann::ordered_json::parse(ours)),
            shape_of(nlohmann::ordered_json::parse(real)));
  EXPECT_EQ(without_numbers(ours), without_numbers(real));
}

}  // namespace
}  // namespace sluice::proxy
