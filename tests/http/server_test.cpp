// The server as its clients see it.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "client.hpp"
#include "serving.hpp"
#include "support/matchers.hpp"

namespace sluice::http {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(HttpServer, AnswersWithDateLengthAndKeepsTheConnection) {
  Serving serving;
  RawClient client{serving.port()};
  for (int i = 0; i < 3; ++i) {
    const auto answer = client.ask(get("/hello"));
    EXPECT_THAT(answer, testing::MatchesRegex(
                            "HTTP/1.1 200 OK\r\nDate: .* GMT\r\nContent-Type: text/plain\r\n"
                            "Content-Length: 5\r\nCache-Control: no-store\r\n\r\nhello"));
  }
}

TEST(HttpServer, HeadHasTheLengthAndNoBody) {
  Serving serving;
  RawClient client{serving.port()};
  client.send("HEAD /hello HTTP/1.1\r\nHost: test\r\n\r\n" + get("/hello"));
  EXPECT_THAT(client.answer(true),
              testing::EndsWith("Content-Length: 5\r\nCache-Control: no-store\r\n\r\n"));
  EXPECT_EQ(body_of(client.answer()), "hello");
}

TEST(HttpServer, Http10ClosesUnlessAskedNotTo) {
  Serving serving;
  RawClient closing{serving.port()};
  EXPECT_THAT(closing.ask("GET /hello HTTP/1.0\r\n\r\n"), HasSubstr("Connection: close"));
  EXPECT_TRUE(closing.is_closed());
  RawClient staying{serving.port()};
  const auto asked = "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
  EXPECT_THAT(staying.ask(asked), HasSubstr("Connection: keep-alive"));
  EXPECT_EQ(body_of(staying.ask(asked)), "hello");
}

TEST(HttpServer, AClientThatAsksToCloseIsClosed) {
  Serving serving;
  RawClient client{serving.port()};
  EXPECT_THAT(client.ask(get("/hello", "Connection: close\r\n")), HasSubstr("Connection: close"));
  EXPECT_TRUE(client.is_closed());
}

TEST(HttpServer, AClientThatHasSaidAllIsAnswered) {
  Serving serving;
  RawClient client{serving.port()};
  client.send(get("/kept") + get("/hello"));
  client.finish_sending();
  ASSERT_TRUE(test::comes_true([&] { return serving.kept.size() == 1; }));
  serving.kept.take(0).send(text("late"));
  EXPECT_EQ(body_of(client.answer()), "late");
  EXPECT_EQ(body_of(client.answer()), "hello");
  EXPECT_TRUE(client.is_closed());
}

TEST(HttpServer, WaitsForTheBodyAfter100Continue) {
  Serving serving;
  RawClient client{serving.port()};
  client.send(
      "POST /echo HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
  EXPECT_EQ(client.until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(body_of(client.ask("abc")), "abc");
}

TEST(HttpServer, ReadsChunkedBodies) {
  Serving serving;
  RawClient client{serving.port()};
  const auto answer = client.ask(
      "POST /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: no\r\n\r\n" +
      get("/hello"));
  EXPECT_EQ(body_of(answer), "abcde");
  EXPECT_EQ(body_of(client.answer()), "hello");
}

TEST(HttpServer, NamesParametersAndQueries) {
  Serving serving;
  RawClient client{serving.port()};
  EXPECT_EQ(body_of(client.ask(get("/items/a%2Fb%20c?x=1&q=d+e%26"))), "a/b c|d e&");
  EXPECT_EQ(body_of(client.ask(get("/items/42"))), "42|none");
  EXPECT_EQ(status_of(client.ask(get("/items/"))), 404);
  EXPECT_EQ(status_of(client.ask(get("/items/%ff"))), 400);
  EXPECT_EQ(body_of(client.ask("GET http://test/items/7 HTTP/1.1\r\nHost: test\r\n\r\n")),
            "7|none");
  EXPECT_EQ(status_of(client.ask(get("/items/a%zz"))), 400);  // which is not HTTP
}

TEST(HttpServer, TellsWhichMethodsAPathHas) {
  Serving serving;
  RawClient client{serving.port()};
  const auto refused = client.ask(post("/hello", ""));
  EXPECT_EQ(status_of(refused), 405);
  EXPECT_THAT(refused, HasSubstr("Allow: GET, HEAD\r\n"));
  EXPECT_THAT(refused, HasSubstr("Content-Type: application/problem+json"));
  EXPECT_THAT(refused, HasSubstr("urn:sluice:problem:method-not-allowed"));
  EXPECT_EQ(status_of(client.ask(get("/nothing"))), 404);
}

TEST(HttpServer, AHandlerThatDropsOrThrowsAnswers500) {
  Serving serving;
  RawClient client{serving.port()};
  for (const auto* path : {"/dropped", "/throws"}) {
    const auto answer = client.ask(get(path));
    EXPECT_EQ(status_of(answer), 500);
    EXPECT_THAT(answer, HasSubstr("urn:sluice:problem:internal-error"));
    EXPECT_THAT(answer, Not(HasSubstr("on purpose")));
  }
}

TEST(HttpServer, V42_AnswersInOrderAndThe17thWaits) {
  Serving serving;
  RawClient client{serving.port()};
  std::string asked;
  for (int i = 0; i < 17; ++i) asked += get("/kept");
  client.send(asked + get("/hello"));
  ASSERT_TRUE(test::comes_true([&] { return serving.kept.size() == 16; }));
  // Another connection of the same loops goes on meanwhile, and the 17th is still not read.
  for (int i = 0; i < 20; ++i) {
    RawClient other{serving.port()};
    EXPECT_EQ(body_of(other.ask(get("/hello"))), "hello");
  }
  EXPECT_EQ(serving.kept.size(), 16);
  for (int i = 15; i > 0; --i)
    serving.kept.take(static_cast<std::size_t>(i)).send(text(std::to_string(i)));
  EXPECT_FALSE(client.has_input());
  serving.kept.take(0).send(text("0"));
  for (int i = 0; i < 16; ++i) EXPECT_EQ(body_of(client.answer()), std::to_string(i));
  ASSERT_TRUE(test::comes_true([&] { return serving.kept.size() == 17; }));
  serving.kept.take(16).send(text("16"));
  EXPECT_EQ(body_of(client.answer()), "16");
  EXPECT_EQ(body_of(client.answer()), "hello");
}

TEST(HttpServer, AnswersFromManyThreads) {
  Serving serving;
  constexpr int clients = 8;
  constexpr int rounds = 50;
  std::atomic<bool> over{false};
  std::thread answering{[&] {
    std::size_t next = 0;
    while (!over) {
      if (serving.kept.size() > next)
        serving.kept.take(next++).send(text("later"));
      else
        std::this_thread::yield();
    }
  }};
  std::vector<std::thread> asking;
  std::atomic<int> good{0};
  for (int i = 0; i < clients; ++i)
    asking.emplace_back([&] {
      RawClient client{serving.port()};
      for (int round = 0; round < rounds; ++round) {
        client.send(get("/kept") + get("/hello"));
        good += body_of(client.answer()) == "later";
        good += body_of(client.answer()) == "hello";
      }
    });
  for (auto& thread : asking) thread.join();
  over = true;
  answering.join();
  EXPECT_EQ(good, clients * rounds * 2);
}

TEST(HttpServer, AnAnswerForOneWhoHasGoneIsNobodys) {
  std::optional<Responder> late;
  {
    Serving serving;
    RawClient staying{serving.port()};
    staying.send(get("/kept"));
    ASSERT_TRUE(test::comes_true([&] { return serving.kept.size() == 1; }));
    {
      RawClient leaving{serving.port()};
      leaving.send(get("/kept"));
      ASSERT_TRUE(test::comes_true([&] { return serving.kept.size() == 2; }));
    }
    serving.kept.take(1).send(text("late"));
    EXPECT_TRUE(test::comes_true([&] { return serving.metric("sluice_http_connections") == "1"; }));
    late = serving.kept.take(0);
  }
  late->send(text("later than the server"));
}

TEST(HttpServer, AHandlerHearsWhenItsClientGoes) {
  Serving serving;
  const auto watched = [&](std::size_t at) {
    EXPECT_TRUE(test::comes_true([&] { return serving.kept.size() == at + 1; }));
    auto responder = serving.kept.take(at);
    auto gone = responder.gone();
    return std::pair{std::move(responder), std::move(gone)};
  };
  std::optional<RawClient> closes{serving.port()};
  closes->send(get("/kept"));
  const auto closed = watched(0);
  RawClient half{serving.port()};
  half.send(get("/kept"));
  auto halved = watched(1);
  RawClient stays{serving.port()};
  stays.send(get("/kept"));
  auto stayed = watched(2);
  closes.reset();
  half.finish_sending();
  EXPECT_TRUE(test::comes_true([&] { return closed.second.stop_requested(); }));
  EXPECT_TRUE(test::comes_true([&] { return halved.second.stop_requested(); }));
  halved.first.send(text("still read"));
  EXPECT_EQ(body_of(half.answer()), "still read") << "one that has said all may read on";
  EXPECT_FALSE(stayed.second.stop_requested());
  stayed.first.send(text("stayed"));
  EXPECT_EQ(body_of(stays.answer()), "stayed");
  EXPECT_TRUE(stayed.first.gone().stop_requested()) << "it is answered";
}

TEST(HttpServer, AHandlerHearsWhenTheServerStops) {
  std::stop_token gone;
  std::optional<Responder> responder;
  {
    Serving serving;
    RawClient client{serving.port()};
    client.send(get("/kept"));
    ASSERT_TRUE(test::comes_true([&] { return serving.kept.size() == 1; }));
    responder = serving.kept.take(0);
    gone = responder->gone();
    std::jthread stopping{[&] { serving.server.stop(std::chrono::seconds{30}, {}); }};
    EXPECT_TRUE(test::comes_true([&] { return gone.stop_requested(); }));
    responder->send(text("stopped"));
    EXPECT_EQ(body_of(client.answer()), "stopped");
  }
  EXPECT_TRUE(responder->gone().stop_requested());
}

TEST(HttpServer, V46_ForwardedForCountsFromListedNetworksAlone) {
  const auto asked = get("/client", "X-Forwarded-For: 203.0.113.9, 198.51.100.7, 127.0.0.5\r\n");
  Serving strangers;
  EXPECT_EQ(body_of(RawClient{strangers.port()}.ask(asked)), "127.0.0.1");
  Serving listed{{.trusted = {"127.0.0.0/8"}}};
  EXPECT_EQ(body_of(RawClient{listed.port()}.ask(asked)), "198.51.100.7");
  EXPECT_EQ(body_of(RawClient{listed.port()}.ask(get("/client", "X-Forwarded-For: me\r\n"))),
            "127.0.0.1");
  const std::string in_two = "X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-For: 198.51.100.7\r\n";
  EXPECT_EQ(body_of(RawClient{listed.port()}.ask(get("/client", in_two))), "198.51.100.7");
  Serving elsewhere{{.trusted = {"10.0.0.0/8"}}};
  EXPECT_EQ(body_of(RawClient{elsewhere.port()}.ask(asked)), "127.0.0.1");
}

TEST(HttpServer, LimitsConnectionsOfAClientAndOfAll) {
  Serving serving{{.limits = {.connections = 3, .connections_of_a_client = 2}}};
  RawClient one{serving.port()};
  RawClient two{serving.port()};
  EXPECT_EQ(body_of(one.ask(get("/hello"))), "hello");
  EXPECT_EQ(body_of(two.ask(get("/hello"))), "hello");
  EXPECT_TRUE(RawClient{serving.port()}.is_closed());
  RawClient other{serving.port(), "127.0.0.2"};
  EXPECT_EQ(body_of(other.ask(get("/hello"))), "hello");
  EXPECT_TRUE(RawClient(serving.port(), "127.0.0.3").is_closed());
  EXPECT_EQ(serving.metric("sluice_http_refused_total{cause=\"connections_of_a_client\"}"), "1");
  EXPECT_EQ(serving.metric("sluice_http_refused_total{cause=\"connections\"}"), "1");
}

TEST(HttpServer, CountsRequestsByRouteAndCode) {
  Serving serving;
  RawClient client{serving.port()};
  client.ask(get("/hello"));
  client.ask(get("/hello"));
  client.ask(get("/items/42"));
  client.ask(get("/nothing"));
  EXPECT_EQ(serving.metric("sluice_http_requests_total{route=\"hello\",code=\"200\"}"), "2");
  EXPECT_EQ(serving.metric("sluice_http_requests_total{route=\"item\",code=\"200\"}"), "1");
  EXPECT_EQ(serving.metric("sluice_http_requests_total{route=\"none\",code=\"404\"}"), "1");
  EXPECT_EQ(
      serving.metric("sluice_http_request_duration_seconds_count{route=\"hello\",code=\"200\"}"),
      "2");
  EXPECT_EQ(serving.metric("sluice_http_connections"), "1");
  EXPECT_THAT(serving.server.metrics(), Not(HasSubstr("42\"")));
}

TEST(HttpServer, V53_EachRouteIsInOpenApi) {
  Serving serving;
  const auto answer = RawClient{serving.port()}.ask(get("/openapi.json"));
  EXPECT_THAT(answer, HasSubstr("\"openapi\":\"3.1.0\""));
  Kept kept;
  const auto routes = test_routes(kept);
  for (const auto& route : routes.all()) {
    EXPECT_THAT(answer, HasSubstr("\"" + route.path + "\":{"));
    EXPECT_THAT(answer, HasSubstr("\"operationId\":\"" + route.operation + "\""));
  }
  for (const auto* problem : own_problems) EXPECT_THAT(answer, HasSubstr(type_of(*problem)));
}

}  // namespace
}  // namespace sluice::http
