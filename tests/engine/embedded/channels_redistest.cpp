// What commands and scripts are told of listeners: the same as by a redis-server that has as many.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/embedded_store.hpp"
#include "support/plain_client.hpp"
#include "support/redis_server.hpp"

namespace sluice::engine {
namespace {

using Command = std::vector<std::string>;

const std::vector<Command> commands{
    {"PUBLISH", "a", "message"},
    {"PUBLISH", "b", ""},
    {"PUBLISH", "nobody", "message"},
    {"PUBLISH", "a"},
    {"PUBSUB", "NUMSUB", "a", "b", "nobody", "a"},
    {"PUBSUB", "NUMSUB"},
    {"PUBSUB", "NOSUCH"},
    {"EVAL", "return redis.call('PUBLISH', ARGV[1], 'm')", "0", "a"},
    {"EVAL", "return redis.call('PUBLISH', ARGV[1], 'm')", "0", "nobody"},
    {"EVAL", "return {redis.call('publish', 'a', '1'), redis.call('publish', 'b', '2')}", "0"},
    {"EVAL", "return redis.call('PUBSUB', 'NUMSUB', unpack(ARGV))", "0", "a", "b", "nobody"},
    {"EVAL", "return redis.call('pubsub', 'numsub', 'b')[2] + 1", "0"},
    {"EVAL", "return type(redis.call('PUBSUB', 'NUMSUB', 'b')[2])", "0"},
    {"EVAL", "return #redis.call('PUBSUB', 'CHANNELS')", "0"},
    {"EVAL", "return redis.pcall('PUBLISH', 'a')", "0"},
    {"EVAL_RO", "return redis.call('PUBSUB', 'NUMSUB', 'a')", "0"},
    {"EVAL_RO", "return redis.pcall('PUBLISH', 'a', 'm').err ~= nil", "0"},
    {"PUBSUB", "CHANNELS", "b*"},
};

class Embedded {
 public:
  void listen(const std::string& channel) {
    listeners_.push_back(store_->subscribe(channel, [this](const Message&) { ++heard_; }).get());
  }
  void leave() { listeners_.pop_back(); }
  Value run(const Command& command) {
    Batch batch;  // where an error is a Value
    const std::vector<std::string_view> words{command.begin(), command.end()};
    batch.add(Words{words});
    return store_->run(std::move(batch)).get().front();
  }
  int heard() const { return heard_; }

 private:
  int heard_ = 0;
  std::unique_ptr<EmbeddedStore> store_ = open_embedded();
  std::vector<Listener> listeners_;
};

class Redis {
 public:
  Redis() { asking_.command({"HELLO", "3"}); }
  void listen(const std::string& channel) {
    listeners_.emplace_back(server_.port());
    listeners_.back().command({"SUBSCRIBE", channel});
  }
  /// Messages that it was sent stand before the answer.
  void leave() {
    auto answer = listeners_.back().command({"UNSUBSCRIBE"});
    while (answer.as_items().front().as_text() != "unsubscribe") answer = listeners_.back().read();
  }
  Value run(const Command& command) { return asking_.command(std::span{command}); }

 private:
  test::RedisServer server_;
  test::PlainClient asking_{server_.port()};
  std::vector<test::PlainClient> listeners_;
};

void expect_the_same(Redis& redis, Embedded& embedded, const std::string& when) {
  for (const auto& command : commands) {
    std::string line;
    for (const auto& word : command) line += word + ' ';
    EXPECT_EQ(to_string(embedded.run(command)), to_string(redis.run(command)))
        << when << ": " << line;
  }
}

TEST(Channels, CommandsAndScriptsAreToldOfListenersAsByRedis) {
  Redis redis;
  Embedded embedded;
  const auto listen = [&](const std::string& channel) {
    redis.listen(channel);
    embedded.listen(channel);
  };
  expect_the_same(redis, embedded, "nobody listens");
  listen("a");
  expect_the_same(redis, embedded, "one");
  EXPECT_EQ(embedded.heard(), 3);  // of `commands`, those that publish to it
  listen("b");
  listen("a");
  expect_the_same(redis, embedded, "two and one");
  embedded.leave();
  redis.leave();
  expect_the_same(redis, embedded, "one of them left");
}

}  // namespace
}  // namespace sluice::engine
