// Event streams, and the end of a server.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <system_error>
#include <thread>

#include "client.hpp"
#include "serving.hpp"
#include "sluice/clock.hpp"
#include "support/matchers.hpp"

namespace sluice::http {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(HttpStream, V47_SendsEventsAndHearsTheLastId) {
  Serving serving;
  RawClient client{serving.port()};
  client.send(get("/events", "Last-Event-ID: 41\r\n"));
  const auto head = client.until("\r\n\r\n");
  EXPECT_EQ(status_of(head), 200);
  EXPECT_THAT(head, HasSubstr("Content-Type: text/event-stream\r\n"));
  EXPECT_THAT(head, HasSubstr("X-Accel-Buffering: no\r\n"));
  EXPECT_THAT(head, testing::Not(HasSubstr("Content-Length")));
  EXPECT_EQ(serving.kept.last_event_id, "41");
  auto& stream = serving.kept.streams.at(0);
  EXPECT_TRUE(stream.send({.id = "42", .event = "sold", .data = "{\"left\":1}\nmore\r\nlast"}));
  EXPECT_EQ(client.until("\n\n"),
            "id: 42\nevent: sold\ndata: {\"left\":1}\ndata: more\ndata: last\n\n");
  EXPECT_TRUE(stream.send({.id = {}, .event = {}, .data = {}}));
  EXPECT_EQ(client.until("\n\n"), "data: \n\n");
  EXPECT_THROW(stream.send({.id = "4\n2", .event = {}, .data = {}}), Error);
  serving.kept.streams.clear();
  EXPECT_TRUE(client.is_closed());
}

TEST(HttpStream, EventsBeforeItsTurnComeInTheirTurn) {
  Serving serving;
  RawClient client{serving.port()};
  client.send(get("/kept") + get("/events"));
  ASSERT_TRUE(test::comes_true([&] { return serving.kept.open_streams() == 1; }));
  EXPECT_TRUE(serving.kept.streams.at(0).send({.id = "1", .event = {}, .data = "a"}));
  serving.kept.take(0).send(text("first"));
  EXPECT_EQ(body_of(client.answer()), "first");
  EXPECT_EQ(status_of(client.until("\r\n\r\n")), 200);
  EXPECT_EQ(client.until("\n\n"), "id: 1\ndata: a\n\n");
}

TEST(HttpStream, ASilentStreamHasAComment) {
  VirtualClock clock;
  Serving serving{{.loops = 1}, clock};
  RawClient client{serving.port()};
  client.send(get("/events"));
  client.until("\r\n\r\n");
  for (int i = 0; i < 3; ++i) {
    clock.advance(16s);
    EXPECT_EQ(client.until("\n\n"), ":\n\n");
  }
}

TEST(HttpStream, V47_ASlowReaderIsDropped) {
  Serving serving;
  RawClient client{serving.port(), nullptr, 4096};
  client.send(get("/events"));
  client.until("\r\n\r\n");
  auto& stream = serving.kept.streams.at(0);
  const std::string data(8 << 10, 'x');
  EXPECT_TRUE(test::comes_true([&] {
    for (int i = 0; i < 100; ++i)
      static_cast<void>(stream.send({.id = {}, .event = {}, .data = data}));
    return !stream.is_open();
  }));
  EXPECT_FALSE(stream.send({.id = {}, .event = {}, .data = data}));
  EXPECT_EQ(serving.metric("sluice_http_refused_total{cause=\"slow_event_reader\"}"), "1");
}

/// What it reads in the end would be minutes old: the system itself takes megabytes for a client.
TEST(HttpStream, AClientThatDoesNotReadIsDroppedBeforeAMegabyteWaits) {
  Serving serving;
  RawClient client{serving.port(), nullptr, 4096};
  client.send(get("/events"));
  client.until("\r\n\r\n");
  auto& stream = serving.kept.streams.at(0);
  const std::string data(8 << 10, 'x');
  for (int i = 0; i < 128; ++i)
    static_cast<void>(stream.send({.id = {}, .event = {}, .data = data}));
  EXPECT_TRUE(test::comes_true([&] { return !stream.is_open(); }));
}

TEST(HttpStream, AClientThatLeavesClosesTheStream) {
  Serving serving;
  {
    RawClient client{serving.port()};
    client.send(get("/events"));
    client.until("\r\n\r\n");
  }
  EXPECT_TRUE(test::comes_true([&] { return !serving.kept.streams.at(0).is_open(); }));
}

TEST(HttpStop, V44_AnswersWhatWasAskedAndClosesAll) {
  VirtualClock clock;
  Serving serving{{.loops = 1}, clock};
  // Time passes until it is so; an hour of it takes longer than comes_true() waits.
  const auto comes_in_time = [&](auto condition) {
    return test::comes_true([&] {
      clock.advance(100ms);
      return condition();
    });
  };
  RawClient idle{serving.port()};
  RawClient busy{serving.port()};
  RawClient watching{serving.port()};
  RawClient balancer{serving.port()};
  EXPECT_EQ(status_of(balancer.ask(get("/readyz"))), 200);
  EXPECT_EQ(body_of(idle.ask(get("/hello"))), "hello");
  watching.send(get("/events"));
  watching.until("\r\n\r\n");
  busy.send(get("/kept"));
  ASSERT_TRUE(test::comes_true([&] { return serving.kept.size() == 1; }));
  std::thread stopping{[&] { serving.server.stop(1h, 5s); }};
  EXPECT_TRUE(test::comes_true([&] { return !serving.server.is_ready(); }));
  EXPECT_EQ(status_of(balancer.ask(get("/readyz"))), 503);
  EXPECT_EQ(status_of(balancer.ask(get("/livez"))), 200);
  EXPECT_EQ(body_of(RawClient{serving.port()}.ask(get("/hello"))), "hello");  // in the notice
  EXPECT_TRUE(comes_in_time([&] { return watching.has_input(); }));
  EXPECT_TRUE(watching.is_closed());
  EXPECT_THROW(RawClient{serving.port()}, std::system_error);
  EXPECT_TRUE(comes_in_time([&] { return idle.has_input() && balancer.has_input(); }));
  EXPECT_TRUE(idle.is_closed());
  EXPECT_TRUE(balancer.is_closed());
  serving.kept.take(0).send(text("in the end"));
  const auto last = busy.answer();
  EXPECT_EQ(body_of(last), "in the end");
  EXPECT_THAT(last, HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(busy.is_closed());
  EXPECT_TRUE(comes_in_time([&] { return serving.metric("sluice_http_connections") == "0"; }));
  stopping.join();
}

TEST(HttpStop, ItsTimeIsKept) {
  Serving serving;
  RawClient client{serving.port()};
  client.send(get("/kept"));
  ASSERT_TRUE(test::comes_true([&] { return serving.kept.size() == 1; }));
  serving.server.stop(200ms, 0s);
  EXPECT_TRUE(client.is_closed());
  serving.kept.take(0).send(text("too late"));
}

}  // namespace
}  // namespace sluice::http
