// The parts of the client that need no server.
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "redis/greeting.hpp"
#include "redis/in_flight.hpp"
#include "redis/request.hpp"
#include "redis/spin.hpp"

namespace sluice::redis {
namespace {

using namespace std::chrono_literals;

Needs needs(std::initializer_list<std::string_view> words) {
  return needs_of({words.begin(), words.size()});
}

Request request_of(std::initializer_list<std::string_view> words) {
  Request request;
  request.add(Words{words.begin(), words.size()});
  return request;
}

TEST(Request, KnowsWhatMayBeRepeated) {
  EXPECT_TRUE(request_of({"get", "k"}).only_reads());
  EXPECT_TRUE(request_of({"TIME"}).only_reads());
  EXPECT_TRUE(request_of({"PING"}).only_reads());
  for (const auto* const name :
       {"SET", "INCR", "PUBLISH", "EVAL", "FLUSHALL", "SCRIPT", "WAIT", "NO-SUCH-COMMAND"})
    EXPECT_FALSE(request_of({name, "x", "y"}).only_reads()) << name;
}

TEST(Request, TeachesAScriptOnceForEachConnection) {
  const Script script{"s", "return 1", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"};
  const std::string_view keys[] = {"k"};
  const std::string_view args[] = {"a"};
  Request request;
  request.add(script, keys, args);
  request.add(script, keys, {});
  EXPECT_EQ(request.commands(), 2U);
  EXPECT_FALSE(request.only_reads());

  const std::string first_tail = "$1\r\n1\r\n$1\r\nk\r\n$1\r\na\r\n";
  const std::string second_tail = "$1\r\n1\r\n$1\r\nk\r\n";
  const std::string by_sha = "$7\r\nEVALSHA\r\n$40\r\ne0e1f9fabfc9d4800c877a703b823ac0578ff8db\r\n";
  KnownScripts known;
  std::string out;
  request.append_to(out, known);
  EXPECT_EQ(
      out, "*5\r\n$4\r\nEVAL\r\n$8\r\nreturn 1\r\n" + first_tail + "*4\r\n" + by_sha + second_tail);
  out.clear();
  request.append_to(out, known);
  EXPECT_EQ(out, "*5\r\n" + by_sha + first_tail + "*4\r\n" + by_sha + second_tail);
}

TEST(Request, ABatchBringsEachScriptAlongOnce) {
  const Script one{"one", "return 1", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"};
  const Script two{"two", "return 2", "7f923f79fe76194c868d7e1d0820de36700eb649"};
  Request request{Request::Kind::batch};
  for (int i = 0; i < 3; ++i) {
    request.add(one, {}, {});
    request.add(two, {}, {});
  }
  KnownScripts known;
  std::string first;
  request.append_to(first, known);
  std::string again;
  request.append_to(again, known);
  EXPECT_EQ(first, again);
  const auto count = [&](std::string_view word) {
    std::size_t found = 0;
    for (auto at = again.find(word); at != std::string::npos; at = again.find(word, at + 1))
      ++found;
    return found;
  };
  EXPECT_EQ(count("EVAL\r\n"), 2U);
  EXPECT_EQ(count("EVALSHA\r\n"), 4U);
}

TEST(Request, NeedsAWord) {
  Request request;
  EXPECT_THROW(request.add(Words{}), Error);
  EXPECT_THROW(needs({}), Error);
}

TEST(Needs, OfBlockingCommandsAreTheirOwnConnectionAndTime) {
  struct Row {
    std::initializer_list<std::string_view> words;
    bool own;
    std::chrono::milliseconds time;
  };
  const Row rows[] = {
      {{"GET", "k"}, false, 0ms},
      {{"BLPOP", "a", "b", "1.5"}, true, 1501ms},
      {{"blpop", "a", "0"}, true, std::chrono::milliseconds::max()},
      {{"BLMPOP", "2", "1", "k", "LEFT"}, true, 2001ms},
      {{"XREAD", "COUNT", "1", "STREAMS", "s", "$"}, false, 0ms},
      {{"XREAD", "block", "250", "STREAMS", "s", "$"}, true, 251ms},
      {{"XREAD", "STREAMS", "BLOCK", "0"}, false, 0ms},
      {{"XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "s", ">"},
       true,
       std::chrono::milliseconds::max()},
      {{"XREADGROUP", "GROUP", "BLOCK", "5", "STREAMS", "s", ">"}, false, 0ms},
      {{"BLPOP", "a", "nonsense"}, true, 0ms},
      {{"BLPOP"}, false, 0ms},
  };
  for (const auto& row : rows) {
    const auto found = needs(row.words);
    EXPECT_EQ(found.own_connection, row.own) << std::data(row.words)[0];
    EXPECT_EQ(found.blocks_for, row.time) << std::data(row.words)[0];
  }
}

TEST(Needs, OfCommandsThatChangeTheConnectionAreRefused) {
  for (const auto* const name : {"SELECT", "multi", "WATCH", "SUBSCRIBE", "PSUBSCRIBE", "HELLO",
                                 "AUTH", "RESET", "MONITOR", "WAIT"})
    EXPECT_THROW(needs({name, "x"}), Error) << name;
  EXPECT_THROW(needs({"CLIENT", "REPLY", "OFF"}), Error);
  EXPECT_NO_THROW(needs({"CLIENT", "LIST"}));
}

TEST(Flight, KeepsItsOrderWhileItGrowsAndWraps) {
  InFlight flight;
  std::size_t in = 0;
  std::size_t out = 0;
  for (int round = 0; round < 500; ++round) {
    for (int i = 0; i < 3; ++i) flight.push({nullptr, in++, {}});
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(flight.front().replies_left, out++);
      flight.pop();
    }
  }
  for (; !flight.empty(); flight.pop()) EXPECT_EQ(flight.front().replies_left, out++);
  EXPECT_EQ(in, out);
}

TEST(Backoff, DoublesUpToItsLimitAndIsJittered) {
  Backoff backoff{10ms, 100ms};
  for (const auto whole : {10ms, 20ms, 40ms, 80ms, 100ms, 100ms}) {
    const auto pause = backoff.next();
    EXPECT_GE(pause, whole / 2);
    EXPECT_LE(pause, whole);
  }
  backoff.reset();
  EXPECT_LE(backoff.next(), 10ms);
}

/// Lets the spin live in a world where a spun wait takes `spun` and a slept one `slept`; how often
/// it spins at the end.
int spins_of_a_thousand(AdaptiveSpin& spin, std::chrono::nanoseconds spun,
                        std::chrono::nanoseconds slept) {
  int spins = 0;
  for (int i = 0; i < 2000; ++i) {
    const bool spinning = spin.spins();
    if (i >= 1000) spins += spinning;
    spin.waited(spinning, spinning ? spun : slept);
  }
  return spins;
}

TEST(AdaptiveSpin, SpinsWhereItPaysAndLearnsAgainWhenTheMachineChanges) {
  AdaptiveSpin spin{50us};
  EXPECT_GT(spins_of_a_thousand(spin, 20us, 55us), 950);
  EXPECT_LT(spins_of_a_thousand(spin, 60us, 55us), 50);
  EXPECT_GT(spins_of_a_thousand(spin, 20us, 55us), 950);
  EXPECT_LT(spins_of_a_thousand(spin, 10ms, 10ms), 50);
}

TEST(AdaptiveSpin, IsOffWithoutALimit) { EXPECT_FALSE(AdaptiveSpin{0us}.is_on()); }

RedisOptions all_options() {
  RedisOptions options;
  options.endpoint.host = "h";
  options.endpoint.port = 6379;
  options.user = "u";
  options.password = "secret";
  options.name = "n";
  options.database = 3;
  return options;
}

TEST(Greeting, SaysAllInOneWriteAndNeedsEveryAnswer) {
  Greeting greeting{all_options(), {"c"}};
  EXPECT_EQ(
      greeting.bytes(),
      "*7\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$1\r\nu\r\n$6\r\nsecret\r\n$7\r\nSETNAME\r\n$"
      "1\r\nn\r\n"
      "*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nc\r\n*1\r\n$4\r\nPING\r\n");
  EXPECT_FALSE(greeting.take(Value::aggregate(Value::Type::map, {})));
  EXPECT_FALSE(greeting.take(Value::simple_string("OK")));
  EXPECT_FALSE(greeting.take(Value::aggregate(
      Value::Type::push,
      {Value::bulk_string("message"), Value::bulk_string("c"), Value::bulk_string("m")})));
  EXPECT_FALSE(greeting.take(Value::aggregate(
      Value::Type::push,
      {Value::bulk_string("subscribe"), Value::bulk_string("c"), Value::integer(1)})));
  EXPECT_TRUE(greeting.take(Value::simple_string("PONG")));
}

TEST(Greeting, NeverShowsThePassword) {
  for (const auto* const reply :
       {"WRONGPASS invalid username-password pair or user is disabled.",
        "ERR unknown command `HELLO`, with args beginning with: `3`, `AUTH`, `u`, `secret`"}) {
    Greeting greeting{all_options(), {}};
    try {
      greeting.take(Value::error(reply));
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(std::string{error.what()}.find("secret"), std::string::npos) << error.what();
    }
  }
  EXPECT_EQ(describe(all_options()), "redis://h:6379/3");
}

Value subscribed(const std::string& channel) {
  return Value::aggregate(Value::Type::push, {Value::bulk_string("subscribe"),
                                              Value::bulk_string(channel), Value::integer(1)});
}

/// What the server says to each of its channels, by the bits: allowed or refused.
TEST(Greeting, D12_AChannelThatIsForbiddenIsLeftOutAlone) {
  const std::vector<std::string> channels{"a", "b", "c"};
  const auto forbidden = Value::error("NOPERM No permissions to access a channel");
  for (unsigned refused = 0; refused < 8; ++refused) {
    Greeting greeting{all_options(), channels};
    greeting.take(Value::aggregate(Value::Type::map, {}));
    greeting.take(Value::simple_string("OK"));
    std::vector<std::string> expected;
    for (std::size_t i = 0; i < channels.size(); ++i) {
      const bool is_refused = (refused >> i & 1U) != 0;
      if (is_refused) expected.push_back(channels[i]);
      EXPECT_FALSE(greeting.take(is_refused ? forbidden : subscribed(channels[i])));
    }
    EXPECT_TRUE(greeting.take(Value::simple_string("PONG")));
    std::vector<std::string> found;
    for (const auto& one : greeting.refused()) found.push_back(one.channel);
    EXPECT_EQ(found, expected) << refused;
  }
}

/// Nothing but a channel may be refused so, and a channel not otherwise.
TEST(Greeting, D12_EveryOtherErrorRefusesTheConnection) {
  const std::vector<Value> right{Value::aggregate(Value::Type::map, {}), Value::simple_string("OK"),
                                 subscribed("a"), subscribed("b"), Value::simple_string("PONG")};
  for (std::size_t wrong = 0; wrong < right.size(); ++wrong)
    for (const auto* const error :
         {"NOPERM no right", "ERR unknown", "LOADING soon", "NOAUTH first", "MASTERDOWN Link"}) {
      const bool is_channel = wrong == 2 || wrong == 3;
      if (is_channel && std::string_view{error}.starts_with("NOPERM")) continue;
      Greeting greeting{all_options(), {"a", "b"}};
      for (std::size_t i = 0; i < wrong; ++i) EXPECT_FALSE(greeting.take(right[i]));
      EXPECT_THROW(greeting.take(Value::error(error)), Error) << wrong << ' ' << error;
    }
}

}  // namespace
}  // namespace sluice::redis
