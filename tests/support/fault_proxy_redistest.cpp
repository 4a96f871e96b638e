/// Each fault, on real sockets and a real server.
#include <gtest/gtest.h>

#include <filesystem>

#include "redisson/semaphore_release.lua.hpp"
#include "resp/writer.hpp"
#include "support/fault_proxy.hpp"
#include "support/plain_client.hpp"
#include "support/redis_server.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;
using Door = FaultProxy::Door;
using Way = FaultProxy::Way;

const Value ok = Value::simple_string("OK");

std::size_t threads_of_this_process() {
  const std::filesystem::directory_iterator tasks{"/proc/self/task"};
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

class Proxy : public testing::Test {
 protected:
  PlainClient client() { return PlainClient{proxy_.port()}; }
  Value value_of(std::string_view key) { return side_.command({"GET", key}); }
  static void send(PlainClient& client, std::initializer_list<std::string_view> words) {
    std::string bytes;
    resp::append_command(bytes, {words.begin(), words.size()});
    client.send(bytes);
  }

  RedisServer server_;
  PlainClient side_{server_.port()};
  FaultProxy proxy_{server_.port()};
};

TEST_F(Proxy, IsNotNoticed) {
  auto c = client();
  const std::string big(3'000'000, 'x');
  EXPECT_EQ(c.command({"SET", "k", big}), ok);
  EXPECT_EQ(c.command({"GET", "k"}), Value::bulk_string(big));
  EXPECT_TRUE(c.command({"NOSUCH"}).is_error());
  EXPECT_EQ(c.command({"HELLO", "3"}).type(), Value::Type::map);
  EXPECT_EQ(c.command({"SUBSCRIBE", "c"}).type(), Value::Type::push);
  side_.command({"PUBLISH", "c", "hi"});
  EXPECT_EQ(c.read().as_items().at(2), Value::bulk_string("hi"));
}

TEST_F(Proxy, EndsCleanly) {
  const auto before = threads_of_this_process();
  std::uint16_t port = 0;
  std::optional<PlainClient> c;
  {
    FaultProxy proxy{server_.port()};
    port = proxy.port();
    c.emplace(port);
    EXPECT_EQ(c->command({"SET", "k", "v"}), ok);
    proxy.on(reply_to("GET"), {.fault = LineFault::hold});
    send(*c, {"GET", "k"});
    EXPECT_EQ(threads_of_this_process(), before + 1);
  }
  // A thread that was joined may be on the kernel's list for a moment more.
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds{5};
  while (threads_of_this_process() != before && std::chrono::steady_clock::now() < patience)
    std::this_thread::yield();
  EXPECT_EQ(threads_of_this_process(), before);
  EXPECT_THROW(c->read(), std::system_error);
  EXPECT_THROW(PlainClient{port}, std::system_error);
}

TEST_F(Proxy, CutLosesTheReplyAndNotTheEffect) {
  auto c = client();
  const auto rule = proxy_.on(reply_to("incr"), {.fault = LineFault::cut, .skip = 1});
  EXPECT_EQ(c.command({"INCR", "k"}), Value::integer(1));
  EXPECT_THROW(c.command({"INCR", "k"}), std::system_error);
  EXPECT_EQ(proxy_.hits(rule), 1U);
  EXPECT_EQ(value_of("k"), Value::bulk_string("2"));
  EXPECT_EQ(client().command({"INCR", "k"}), Value::integer(3)) << "the rule is used up";
}

TEST_F(Proxy, CutLosesTheRequest) {
  proxy_.on(request_of("INCR"), {.fault = LineFault::cut, .bytes = 7});
  auto c = client();
  EXPECT_THROW(c.command({"INCR", "k"}), std::system_error);
  EXPECT_TRUE(value_of("k").is_null());
}

TEST_F(Proxy, CutInTheMiddleOfAReply) {
  proxy_.on(any_reply(), {.fault = LineFault::cut, .bytes = 5});
  side_.command({"SET", "k", "hello"});
  auto c = client();
  send(c, {"GET", "k"});
  EXPECT_EQ(c.read_raw(), "$5\r\nh");
  EXPECT_EQ(c.read_raw(), "");
}

TEST_F(Proxy, CutAtAByteOfEitherStream) {
  proxy_.cut_next_at(Way::to_client, 10);
  auto c = client();
  send(c, {"PING"});
  EXPECT_EQ(c.read(), Value::simple_string("PONG"));
  send(c, {"PING"});
  EXPECT_EQ(c.read_raw(), "+PO");
  proxy_.cut_next_at(Way::to_server, 20);
  EXPECT_THROW(client().command({"SET", "k", "v"}), std::system_error);
  EXPECT_TRUE(value_of("k").is_null());
}

TEST_F(Proxy, SwallowedReplyLeavesTheClientWaiting) {
  const auto rule = proxy_.on(reply_to("INCR"), {.fault = LineFault::swallow});
  auto c = client();
  send(c, {"INCR", "k"});
  ASSERT_TRUE(proxy_.await_hits(rule));
  EXPECT_EQ(value_of("k"), Value::bulk_string("1"));
  EXPECT_FALSE(c.read_for(20ms));
  proxy_.let_go();
  EXPECT_FALSE(c.read_for(20ms)) << "swallowed, not held";
}

TEST_F(Proxy, HeldReplyComesWhenItIsLetGo) {
  const auto rule = proxy_.on(reply_to("INCR"), {.fault = LineFault::hold});
  auto c = client();
  send(c, {"INCR", "k"});
  send(c, {"PING"});
  ASSERT_TRUE(proxy_.await_hits(rule));
  EXPECT_EQ(value_of("k"), Value::bulk_string("1"));
  EXPECT_FALSE(c.read_for(20ms));
  EXPECT_EQ(client().command({"PING"}), Value::simple_string("PONG")) << "others go on";
  proxy_.let_go();
  EXPECT_EQ(c.read(), Value::integer(1));
  EXPECT_EQ(c.read(), Value::simple_string("PONG"));
}

TEST_F(Proxy, HeldMessageDelaysWhatIsBehindIt) {
  const auto rule = proxy_.on(message_on("c"), {.fault = LineFault::hold});
  auto c = client();
  c.command({"PSUBSCRIBE", "*"});
  side_.command({"PUBLISH", "b", "0"});
  side_.command({"PUBLISH", "c", "1"});
  side_.command({"PUBLISH", "d", "2"});
  EXPECT_EQ(c.read().as_items().at(3), Value::bulk_string("0"));
  ASSERT_TRUE(proxy_.await_hits(rule));
  EXPECT_FALSE(c.read_for(20ms));
  proxy_.let_go();
  EXPECT_EQ(c.read().as_items().at(3), Value::bulk_string("1"));
  EXPECT_EQ(c.read().as_items().at(3), Value::bulk_string("2"));
}

TEST_F(Proxy, RequestArrivesTwice) {
  proxy_.on(request_of("INCR"), {.fault = LineFault::twice});
  auto c = client();
  EXPECT_EQ(c.command({"INCR", "k"}), Value::integer(2)) << "the reply to the second";
  EXPECT_EQ(c.command({"INCR", "k"}), Value::integer(3));
}

TEST_F(Proxy, MessageArrivesTwice) {
  proxy_.on(message_on("c"), {.fault = LineFault::twice});
  auto c = client();
  c.command({"SUBSCRIBE", "c"});
  side_.command({"PUBLISH", "c", "0"});
  side_.command({"PUBLISH", "c", "1"});
  for (const auto* const payload : {"0", "0", "1"})
    EXPECT_EQ(c.read().as_items().at(2), Value::bulk_string(payload));
}

TEST_F(Proxy, StrandedRequestArrivesAfterTheNewerConnection) {
  proxy_.on(request_of("SET"), {.fault = LineFault::strand});
  auto old = client();
  EXPECT_THROW(old.command({"SET", "k", "old"}), std::system_error);
  auto newer = client();
  EXPECT_EQ(newer.command({"SET", "k", "new"}), ok);
  EXPECT_EQ(value_of("k"), Value::bulk_string("new"));
  proxy_.let_go();
  EXPECT_EQ(value_of("k"), Value::bulk_string("old"));
}

TEST_F(Proxy, HeldRequestOfAClientThatLeavesArrivesLate) {
  const auto rule = proxy_.on(request_of("SET"), {.fault = LineFault::hold});
  {
    auto c = client();
    send(c, {"SET", "k", "v"});
    ASSERT_TRUE(proxy_.await_hits(rule));
  }
  ASSERT_TRUE(proxy_.await_stranded());
  EXPECT_TRUE(value_of("k").is_null());
  proxy_.let_go();
  EXPECT_EQ(value_of("k"), Value::bulk_string("v"));
}

TEST_F(Proxy, DoorRefusesHoldsAndOpens) {
  auto inside = client();
  inside.command({"PING"});  // the proxy has taken it in
  proxy_.set_door(Door::closed);
  EXPECT_THROW(client(), std::system_error);
  EXPECT_EQ(inside.command({"PING"}), Value::simple_string("PONG")) << "who is in stays in";
  proxy_.set_door(Door::held);
  auto waiting = client();
  send(waiting, {"PING"});
  EXPECT_FALSE(waiting.read_for(20ms));
  proxy_.set_door(Door::open);
  EXPECT_EQ(waiting.read(), Value::simple_string("PONG"));
}

TEST_F(Proxy, CutsEverybody) {
  auto a = client();
  auto b = client();
  a.command({"PING"});
  b.command({"PING"});
  EXPECT_EQ(proxy_.connections(), 2U);
  proxy_.cut();
  EXPECT_THROW(a.read(), std::system_error);
  EXPECT_THROW(b.read(), std::system_error);
  EXPECT_EQ(client().command({"PING"}), Value::simple_string("PONG"));
}

TEST_F(Proxy, KnowsScriptsAndConnections) {
  const Script& script = scripts::redisson_semaphore_release;
  proxy_.on(on_connection(1, reply_to(script)), {.fault = LineFault::cut});
  const auto counted = proxy_.on(request_of(script), {.times = Deed::always});
  auto first = client();
  EXPECT_TRUE(first.command({"EVALSHA", script.sha1, "2", "k", "c", "1"}).is_error());
  EXPECT_EQ(first.command({"EVAL", script.text, "2", "k", "c", "1"}), Value::integer(1));
  auto second = client();
  EXPECT_THROW(second.command({"EVALSHA", script.sha1, "2", "k", "c", "1"}), std::system_error);
  EXPECT_EQ(value_of("k"), Value::bulk_string("2"));
  EXPECT_EQ(proxy_.hits(counted), 3U);
}

TEST_F(Proxy, ForgetsRulesAndWhatTheyHit) {
  const auto rule = proxy_.on(any_reply(), {.fault = LineFault::cut, .times = Deed::always});
  EXPECT_THROW(client().command({"PING"}), std::system_error);
  proxy_.forget_rules();
  EXPECT_EQ(client().command({"PING"}), Value::simple_string("PONG"));
  EXPECT_EQ(proxy_.hits(rule), 0U);
}

TEST_F(Proxy, ClientOfADeadServerIsCutOff) {
  auto c = client();
  c.command({"PING"});
  server_.kill();
  EXPECT_THROW(c.read(), std::system_error);
  EXPECT_THROW(client().command({"PING"}), std::system_error);
}

}  // namespace
}  // namespace sluice::test
