// Several clients of one server, each of which changes what the others see: transactions, waiting
// calls, channels. The same is said to the engine at a port and to a redis-server.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "port/port_under_test.hpp"
#include "resp/writer.hpp"
#include "support/comes_true.hpp"
#include "support/plain_client.hpp"
#include "support/redis_server.hpp"
#include "support/sanitized.hpp"

namespace sluice::test {
namespace {

using Line = std::vector<std::string>;

Line words_of(const std::string& text) {
  std::istringstream stream{text};
  return {std::istream_iterator<std::string>{stream}, {}};
}

/// Clients named a, b, c ... of a server that is empty.
class Clients {
 public:
  Clients(std::uint16_t port, int protocol) : port_(port), protocol_(protocol), side_(port) {
    side_.command({"FLUSHALL"});
    side_.command({"CONFIG", "RESETSTAT"});
  }

  PlainClient& operator[](char name) {
    const auto [found, is_new] = clients_.try_emplace(name, port_);
    if (is_new) {
      found->second.command({"HELLO", std::to_string(protocol_)});
      found->second.command({"CLIENT", "SETNAME", std::string{name}});
    }
    return found->second;
  }
  void say(char name, const std::string& command) {
    std::string bytes;
    const auto words = words_of(command);
    resp::append_command(bytes, std::vector<std::string_view>{words.begin(), words.end()});
    (*this)[name].send(bytes);
  }
  /// Names of those that wait.
  std::set<char> waiting() {
    std::set<char> names;
    std::istringstream list{std::string{side_.command({"CLIENT", "LIST"}).as_text()}};
    for (std::string line; std::getline(list, line);)
      if (line.find(" flags=b") != line.npos) names.insert(line[line.find(" name=") + 6]);
    return names;
  }
  Value ask(std::initializer_list<std::string_view> words) { return side_.command(words); }

 private:
  std::uint16_t port_;
  int protocol_;
  PlainClient side_;
  std::map<char, PlainClient> clients_;
};

/// "a: PING" says it and reads a reply; "a> BLPOP k 0" says it and sees to it that the client
/// waits; "a- CLIENT REPLY OFF" only says it; "a<" reads a reply or a message.
struct Row {
  std::string says;
  std::string of_7_2 = {};  ///< where 7.2 answers otherwise than 7.0
};

std::string heard(Clients& clients, const Row& row) {
  const char name = row.says[0];
  if (row.says[1] != '<') clients.say(name, row.says.substr(3));
  if (row.says[1] == '>')
    EXPECT_TRUE(comes_true([&] { return clients.waiting().contains(name); })) << row.says;
  if (row.says[1] == '>' || row.says[1] == '-') return {};
  return to_string(clients[name].read());
}

struct Dialog {
  std::string name;
  std::vector<Row> rows;
};

const Dialog dialogs[] = {
    {"AReplyIsItsOwnClients",
     {{"a> BLPOP k 0"}, {"b: LPUSH k v"}, {"a<"}, {"b: LLEN k"}, {"a: PING"}}},
    {"OfATransactionTheEndWakes",
     {{"a> BLPOP k 0"},
      {"b: MULTI"},
      {"b: LPUSH k v"},
      {"b: DEL k"},
      {"b: EXEC"},
      {"b: LPUSH k w"},
      {"a<"}}},
    {"AValueOfAnotherTypeWakesNobody",
     {{"a> BLPOP k 0"},
      {"c> XREAD BLOCK 0 STREAMS k $"},
      {"b: MULTI"},
      {"b: LPUSH k v"},
      {"b: DEL k"},
      {"b: SET k v"},
      {"b: EXEC"},
      {"b: DEL k"},
      {"b: ZADD k 1 m"},
      {"b: DEL k"},
      {"b: LPUSH k w"},
      {"a<"},
      {"b: XADD k 1-1 f v"},
      {"c<"}}},
    {"AWrongTargetIsTold",
     {{"b: SET to v"}, {"a> BLMOVE from to LEFT LEFT 0"}, {"b: LPUSH from v"}, {"a<"}}},
    {"AGroupsReaderHearsOfTheEndOfItsStream",
     {{"b: XGROUP CREATE s g $ MKSTREAM"},
      {"a> XREADGROUP GROUP g c BLOCK 0 STREAMS s >"},
      {"b: DEL s"},
      {"a<",
       "(error) NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option"},
      {"b: XGROUP CREATE s g $ MKSTREAM"},
      {"a> XREADGROUP GROUP g c BLOCK 0 STREAMS s >"},
      {"b: SET s v"},
      {"a<", "(error) WRONGTYPE Operation against a key holding the wrong kind of value"},
      {"b: DEL s"},
      {"b: XGROUP CREATE s g $ MKSTREAM"},
      {"a> XREADGROUP GROUP g c BLOCK 0 STREAMS s >"},
      {"b: FLUSHALL"},
      {"a<",
       "(error) NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option"}}},
    {"OtherDatabasesComeIntoPlace",
     {{"b: SELECT 1"},
      {"b: LPUSH k v"},
      {"a> BLPOP k 0"},
      {"b: SWAPDB 0 1"},
      {"a<"},
      {"b: SET x v"},
      {"a: WATCH x"},
      {"b: SWAPDB 0 1"},
      {"a: MULTI"},
      {"a: PING"},
      {"a: EXEC"}}},
    {"NothingWaitsInATransaction",
     {{"a: XGROUP CREATE s g $ MKSTREAM"},
      {"a: MULTI"},
      {"a: BLPOP k 0"},
      {"a: XREAD BLOCK 0 STREAMS s $"},
      {"a: XREADGROUP GROUP g c BLOCK 0 STREAMS s >"},
      {"a: BZPOPMIN k 0"},
      {"a: EXEC"},
      {"a: PING"}}},
    {"WhatIsReadAloneIsNotChanged",
     {{"b: SADD from m n"},
      {"b: SADD to m"},
      {"a: WATCH from to2"},
      {"b: SUNIONSTORE to3 from"},
      {"b: COPY from to4"},
      {"b: SORT from ALPHA STORE to5"},
      {"a: MULTI"},
      {"a: PING"},
      {"a: EXEC"},
      {"a: WATCH to"},
      {"b: SMOVE from to m"},
      {"a: MULTI"},
      {"a: PING"},
      {"a: EXEC"},
      {"a: WATCH to"},
      {"b: SMOVE from to n"},
      {"a: MULTI"},
      {"a: PING"},
      {"a: EXEC"}}},
    {"SilenceIsNotForMessages",
     {{"a- CLIENT REPLY OFF"},
      {"a- SUBSCRIBE c"},
      {"a<"},
      {"b: PUBLISH c hello"},
      {"a<"},
      {"a- UNSUBSCRIBE c"},
      {"a<"}}},
    {"NotInATransaction",
     {{"a: MULTI"}, {"a: SAVE"}, {"a: EXEC"}, {"a: MULTI"}, {"a: SHUTDOWN"}, {"a: EXEC"}}},
    {"GroupsAndBits",
     {{"a: XGROUP CREATE s g $ MKSTREAM"},
      {"a: XGROUP SETID s g -"},
      {"a: XGROUP SETID s g +"},
      {"a: XGROUP CREATE s h -"},
      {"a: SETBIT k 1 1"},
      {"b: WATCH k"},
      {"a: BITFIELD k SET u1 1 1"},
      {"b: MULTI"},
      {"b: PING"},
      {"b: EXEC"},
      {"a: EVAL return{redis.call('CLUSTER','RESET')} 0"}}},
};

TEST(PortDialogs, AreThoseOfRedis) {
  RedisServer server;
  const PortUnderTest port;
  for (const int protocol : {2, 3})
    for (const auto& dialog : dialogs) {
      SCOPED_TRACE(fmt::format("{}, RESP{}", dialog.name, protocol));
      Clients theirs{server.port(), protocol}, ours{port.port(), protocol};
      for (const auto& row : dialog.rows) {
        const auto redis = heard(theirs, row);
        EXPECT_EQ(heard(ours, row), row.of_7_2.empty() ? redis : row.of_7_2) << row.says;
      }
    }
}

TEST(PortDialogs, AMonitorHearsOfCommands) {
  RedisServer server;
  const PortUnderTest port;
  std::string heard_by[2];
  for (const int which : {0, 1}) {
    Clients clients{which == 0 ? server.port() : port.port(), 2};
    clients.say('b', "PING");
    clients['b'].read();
    EXPECT_EQ(heard(clients, {"a: MONITOR"}), "OK");
    for (const auto* const command : {"SET k \"v", "CONFIG GET save", "MULTI", "GET k", "EXEC"}) {
      clients.say('b', command);
      clients['b'].read();
    }
    clients.say('b', "ECHO end");
    while (!heard_by[which].ends_with("\"ECHO\" \"end\"\n")) {
      const auto line = to_string(clients['a'].read());
      heard_by[which] += line.substr(line.find(']') + 1) + "\n";
    }
  }
  EXPECT_EQ(heard_by[0], heard_by[1]);
}

// --- at random ---

/// K is a key, D a database, N a number that grows. Waiting calls name one key: of several 7.2
/// looks at all again, 7.0 at the one that came. No list or sorted set is stored over another
/// value: with us that wakes a client, in Redis only where the key was free.
constexpr std::string_view sayings[] = {
    "LPUSH K v",
    "RPUSH K w",
    "DEL K",
    "SET K v",
    "ZADD K 1 m",
    "SADD K m n",
    "SMOVE K K m",
    "RENAME K K",
    "COPY K K",
    "COPY K K DB D",
    "MOVE K D",
    "SWAPDB 0 1",
    "SELECT D",
    "FLUSHDB",
    "BLPOP K 0",
    "BRPOP K 0",
    "BZPOPMIN K 0",
    "BLMOVE K K LEFT RIGHT 0",
    "MULTI",
    "MULTI",
    "EXEC",
    "EXEC",
    "EXEC",
    "DISCARD",
    "WATCH K",
    "WATCH K K",
    "UNWATCH",
    "SUNIONSTORE K K K",
    "BITFIELD K SET u8 0 1",
    "SETBIT K 7 1",
    "XADD K N-1 f v",
    "XREAD BLOCK 0 STREAMS K $",
    "XGROUP CREATE K g 0",
    "XREADGROUP GROUP g c BLOCK 0 STREAMS K >",
    "EXPIRE K 1000",
    "LRANGE K 0 -1",
    "GET K",
};

std::string made(std::string_view saying, std::mt19937_64& random, int number) {
  std::string text;
  for (std::size_t i = 0; i < saying.size(); ++i) {
    const bool is_alone = (i == 0 || saying[i - 1] == ' ') &&
                          (i + 1 == saying.size() || saying[i + 1] == ' ' || saying[i + 1] == '-');
    if (is_alone && saying[i] == 'K')
      text += fmt::format("k{}", random() % 3);
    else if (is_alone && saying[i] == 'D')
      text += fmt::format("{}", random() % 2);
    else if (is_alone && saying[i] == 'N')
      text += fmt::format("{}", number);
    else
      text += saying[i];
  }
  return text;
}

/// What a client hears that waited. 7.0 and 7.2 have other words for the end of a stream.
std::string woken(PlainClient& client) {
  const auto value = client.read();
  return value.is_error() ? "error" : to_string(value);
}

/// Empty: both servers answered the same to everything.
std::string difference(std::uint64_t seed, std::uint16_t redis, std::uint16_t port) {
  std::mt19937_64 random{seed};
  const int protocol = 2 + static_cast<int>(seed % 2);
  Clients theirs{redis, protocol}, ours{port, protocol};
  std::set<char> waiting;
  std::string said;
  for (int i = 1; i <= 60; ++i) {
    const char name = static_cast<char>('a' + random() % 4);
    if (waiting.contains(name)) continue;
    const auto command = made(sayings[random() % std::size(sayings)], random, i);
    said += fmt::format("  {}: {}\n", name, command);
    for (Clients* const each : {&theirs, &ours}) {
      static_cast<void>((*each)[name]);
      each->say(name, command);
    }
    auto before = waiting;
    before.insert(name);
    // It has its reply, or waits.
    std::array<std::map<char, std::string>, 2> told;
    std::set<char> left[2];
    for (const int which : {0, 1}) {
      auto& clients = which == 0 ? theirs : ours;
      auto own = clients[name].read_for(std::chrono::milliseconds{0});
      while (!own && !clients.waiting().contains(name))
        own = clients[name].read_for(std::chrono::milliseconds{5});
      if (own) told[which][name] = to_string(*own);
      left[which] = clients.waiting();
      for (const char other : waiting)
        if (!left[which].contains(other)) told[which][other] = woken(clients[other]);
    }
    if (told[0] != told[1] || left[0] != left[1]) {
      for (const auto& [client, text] : told[0])
        said += fmt::format("redis {}: {}\n", client, text);
      for (const auto& [client, text] : told[1])
        said += fmt::format("port  {}: {}\n", client, text);
      return said;
    }
    waiting = left[0];
  }
  return {};
}

TEST(PortDialogs, AtRandomAreThoseOfRedis) {
  RedisServer server;
  const PortUnderTest port;
  const char* const asked = std::getenv("SLUICE_LONG");
  const auto most = asked ? std::strtoull(asked, nullptr, 10) : rounds(60U);
  for (std::uint64_t seed = 1; seed <= most; ++seed)
    ASSERT_EQ(difference(seed, server.port(), port.port()), "") << "seed " << seed;
}

}  // namespace
}  // namespace sluice::test
