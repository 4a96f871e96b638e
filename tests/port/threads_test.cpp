// What many connections see of one engine: each command takes effect once, at a moment between its
// request and its reply, whichever thread has the connection.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "base/integer.hpp"
#include "port/port_under_test.hpp"
#include "proxy/support/asking.hpp"
#include "support/history.hpp"
#include "support/sanitized.hpp"
#include "support/temp_dir.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;
using Texts = std::vector<std::string>;

constexpr int callers = 12;

/// Runs `body` with a connection of its own on each of several threads.
void crowd(const PortUnderTest& port, int size,
           const std::function<void(int number, PlainClient& client)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < size; ++i)
    threads.emplace_back([&, i] {
      PlainClient client{port.port()};
      body(i, client);
    });
  for (auto& thread : threads) thread.join();
}

void raise_to(std::atomic<std::int64_t>& highest, std::int64_t value) {
  auto before = highest.load();
  while (before < value && !highest.compare_exchange_weak(before, value)) {
  }
}

class PortThreads : public testing::TestWithParam<std::size_t> {
 protected:
  PortUnderTest port_{{.threads = GetParam()}};
};

INSTANTIATE_TEST_SUITE_P(Of, PortThreads, testing::Values(1U, 3U),
                         [](const auto& threads) { return fmt::format("{}", threads.param); });

TEST_P(PortThreads, ACounterIsLinearizable) {
  const int rounds_each = rounds(300);
  std::atomic<std::int64_t> seen{0};  // some reply had it
  std::mutex mutex;
  std::set<std::int64_t> given;
  crowd(port_, callers, [&](int, PlainClient& client) {
    std::set<std::int64_t> own;
    for (int i = 0; i < rounds_each; ++i) {
      const auto floor = seen.load();
      const auto value = client.command({"INCR", "n"}).as_integer();
      EXPECT_GT(value, floor);
      raise_to(seen, value);
      own.insert(value);
      const auto least = seen.load();
      EXPECT_GE(*parse_integer<std::int64_t>(client.command({"GET", "n"}).as_text()), least);
    }
    const std::lock_guard lock{mutex};
    given.merge(own);
    EXPECT_TRUE(own.empty()) << "a number was given twice";
  });
  EXPECT_EQ(given.size(), static_cast<std::size_t>(callers * rounds_each));
  EXPECT_EQ(*given.rbegin(), callers * rounds_each);
}

/// Each value is replaced by one caller, and none is passed over.
TEST_P(PortThreads, CompareAndSetByAScriptIsLinearizable) {
  const std::string script =
      "local now = redis.call('GET', KEYS[1]) or '0' "
      "if now ~= ARGV[1] then return now end redis.call('SET', KEYS[1], ARGV[2]) return false";
  const int wanted = rounds(1000);
  std::mutex mutex;
  std::map<std::string, std::string> next;  // what came behind each value
  crowd(port_, callers, [&](int number, PlainClient& client) {
    std::string known = "0";
    for (int i = 0, done = 0; done < wanted / callers; ++i) {
      const auto own = fmt::format("{}-{}", number, i);
      const auto reply = client.command({"EVAL", script, "1", "k", known, own});
      if (!reply.is_null()) {
        known = reply.as_text();
        continue;
      }
      ++done;
      const std::lock_guard lock{mutex};
      EXPECT_TRUE(next.emplace(known, own).second) << known << " was replaced twice";
      known = own;
    }
  });
  std::string last = "0";
  std::size_t steps = 0;
  for (auto at = next.find(last); at != next.end(); at = next.find(last), ++steps)
    last = at->second;
  EXPECT_EQ(steps, next.size());
  PlainClient client{port_.port()};
  EXPECT_EQ(client.command({"GET", "k"}).as_text(), last);
}

TEST_P(PortThreads, WatchedTransactionsLoseNothing) {
  const int wanted = rounds(60);
  std::atomic<int> refused{0};
  crowd(port_, callers, [&](int, PlainClient& client) {
    for (int done = 0; done < wanted;) {
      client.command({"WATCH", "n"});
      const auto now = client.command({"GET", "n"});
      const auto next = std::to_string(now.is_null() ? 1 : std::stoi(now.as_text()) + 1);
      const auto replies = ask_all(client, {"MULTI", "SET n " + next, "INCR m", "EXEC"});
      replies.back() == "_" ? ++refused : ++done;
    }
  });
  PlainClient client{port_.port()};
  EXPECT_EQ(ask(client, "MGET n m"),
            ask(client, fmt::format("ECHO {}", callers * wanted)).insert(0, "*2 ") + " " +
                ask(client, fmt::format("ECHO {}", callers * wanted)));
  EXPECT_GT(refused, 0);
}

TEST_P(PortThreads, LocksAreExclusive) {
  const TempDir folder;
  const auto path = folder / "history";
  const int wanted = rounds(40);
  crowd(port_, callers, [&](int number, PlainClient& client) {
    Recorder record{path, fmt::format("caller {}", number)};
    for (int done = 0; done < wanted;) {
      if (client.command({"SET", "lock", std::to_string(number), "NX"}).is_null()) continue;
      record.enter(static_cast<std::uint64_t>(client.command({"INCR", "token"}).as_integer()));
      record.leave();
      client.command({"DEL", "lock"});
      ++done;
    }
  });
  const auto verdict = check(read_history(path));
  EXPECT_TRUE(verdict.ok()) << verdict.text();
  EXPECT_EQ(verdict.entries, static_cast<std::size_t>(callers * wanted));
}

/// Who pushes gets its own reply, and who waits gets the element, whichever thread each has.
TEST_P(PortThreads, BlockedPopsGetEachElementOnce) {
  const int wanted = rounds(150);
  std::mutex mutex;
  std::vector<std::string> popped;
  std::atomic<int> left{callers / 2};  // that push
  crowd(port_, callers, [&](int number, PlainClient& client) {
    if (number % 2 == 0) {
      for (int i = 0; i < wanted; ++i) {
        const auto reply = ask(client, fmt::format("RPUSH l {}-{}", number, i));
        EXPECT_EQ(reply.front(), ':') << reply;
      }
      if (--left == 0)
        for (int i = 0; i < callers / 2; ++i) ask(client, "RPUSH l end");
      return;
    }
    std::map<std::string, int> last;  // of each that pushes
    for (;;) {
      const auto reply = client.command({"BLPOP", "l", "0"});
      const auto text = reply.as_items().at(1).as_text();
      if (text == "end") return;
      const auto dash = text.find('-');
      const int place = std::stoi(text.substr(dash + 1));
      EXPECT_GE(place, last[text.substr(0, dash)]) << "out of order";
      last[text.substr(0, dash)] = place;
      const std::lock_guard lock{mutex};
      popped.push_back(text);
    }
  });
  std::ranges::sort(popped);
  EXPECT_EQ(popped.size(), static_cast<std::size_t>(callers / 2 * wanted));
  EXPECT_EQ(std::ranges::adjacent_find(popped), popped.end());
}

TEST_P(PortThreads, MessagesComeInTheOrderOfTheirPublisher) {
  const int wanted = rounds(500);
  std::atomic<int> listening{0};
  crowd(port_, callers, [&](int number, PlainClient& client) {
    if (number % 2 == 0) {
      ASSERT_TRUE(comes_true([&] { return listening == callers / 2; }));
      for (int i = 0; i < wanted; ++i)
        EXPECT_EQ(ask(client, fmt::format("PUBLISH c {}:{}", number, i)),
                  fmt::format(":{}", callers / 2));
      return;
    }
    client.command({number % 4 == 1 ? "SUBSCRIBE" : "PSUBSCRIBE", "c"});
    ++listening;
    std::map<std::string, int> next;
    for (int i = 0; i < callers / 2 * wanted; ++i) {
      const auto text = client.read().as_items().back().as_text();
      const auto colon = text.find(':');
      EXPECT_EQ(next[text.substr(0, colon)]++, std::stoi(text.substr(colon + 1)));
    }
  });
}

/// After it was told that it has left a channel, a client of RESP2 reads replies, and a message
/// would be taken for one.
TEST_P(PortThreads, NoMessageComesAfterAChannelWasLeft) {
  const int wanted = rounds(300);
  std::atomic<int> left{callers / 2};
  int inputs = 0;
  crowd(port_, callers, [&](int number, PlainClient& client) {
    if (number % 2 == 0) {
      while (left > 0) ask(client, "PUBLISH c x");
      return;
    }
    for (int i = 0; i < wanted && !HasFailure(); ++i) {
      client.command({"SUBSCRIBE", "c"});
      const bool resets = i % 3 == 0;
      client.send(request(resets ? "RESET" : "UNSUBSCRIBE") + request("ECHO done"));
      for (;;) {
        const auto text = text_of(client.read());
        if (text == "+RESET" || text.contains("unsubscribe")) break;
        EXPECT_TRUE(text.contains("message")) << text;
      }
      EXPECT_EQ(text_of(client.read()), "$4 done") << "after " << ++inputs << " times";
    }
    --left;
  });
}

/// Connections come and go, wait, are killed, unblocked, tracked and listed by each other.
TEST_P(PortThreads, ConnectionsThatMeddleWithEachOther) {
  std::atomic<bool> done{false};
  std::thread watch{[&] {
    PlainClient client{port_.port()};
    for (int i = 0; i < rounds(150); ++i) {
      const auto list = client.command({"CLIENT", "LIST"}).as_text();
      std::size_t at = 0;
      for (int seen = 0; (at = list.find("id=", at)) != std::string::npos; ++at, ++seen) {
        const auto id = list.substr(at + 3, list.find(' ', at) - at - 3);
        if ((i + seen) % 3 == 0) ask(client, "CLIENT UNBLOCK " + id);
        if ((i + seen) % 7 == 0) ask(client, "CLIENT KILL ID " + id);
      }
      ask(client, "SET tracked x");
      ask(client, "PUBLISH c x");
      ask(client, "INFO clients");
      if (i % 50 == 0) ask(client, "CLIENT PAUSE 5 WRITE");
    }
    done = true;
    ask(client, "CLIENT UNPAUSE");
  }};
  std::vector<std::thread> threads;
  for (int number = 0; number < callers; ++number)
    threads.emplace_back([&, number] {
      while (!done) try {
          PlainClient client{port_.port()};
          ask(client, "PING");  // no more of them than the port keeps pace with
          const Texts lines[] = {
              {"HELLO 3", "CLIENT TRACKING on", "GET tracked", "BLPOP none 0.01", "GET tracked"},
              {"BLPOP none 0"},
              {"SUBSCRIBE c", "PSUBSCRIBE *"},
              {"CLIENT SETNAME me", "WATCH tracked", "MULTI", "GET tracked", "EXEC"},
              {"HELLO 3", "CLIENT TRACKING on BCAST", "INCR n", "CLIENT LIST", "QUIT"},
              {"LPUSH none x", "BLMOVE none other LEFT RIGHT 0.01"},
          };
          for (const auto& line : lines[number % std::size(lines)]) client.send(request(line));
          client.patience = 30ms;
          for (int i = number; i < 6; ++i) static_cast<void>(client.read());
        } catch (const std::system_error&) {  // killed, or left while it waits
        }
    });
  watch.join();
  for (auto& thread : threads) thread.join();
  PlainClient client{port_.port()};
  EXPECT_TRUE(comes_true([&] { return port_.clients() == 1; }))
      << text_of(client.command({"CLIENT", "LIST"}));
  EXPECT_EQ(ask(client, "PING"), "+PONG");
}

TEST_P(PortThreads, EndsUnderLoad) {
  std::vector<std::thread> threads;
  std::atomic<int> begun{0};
  for (int number = 0; number < callers; ++number)
    threads.emplace_back([&, number] {
      try {
        PlainClient client{port_.port()};
        for (int i = 0;; ++i) {
          if (i == 20) ++begun;
          if (number % 3 == 0) {
            client.command({"BLPOP", "l", "0"});
          } else if (number % 3 == 1) {
            client.command({"RPUSH", "l", "x"});
          } else if (i == 0) {
            client.command({"SUBSCRIBE", "c"});
            begun += 1;
          } else {
            client.read();
          }
          if (number % 3 == 1) client.command({"PUBLISH", "c", "x"});
        }
      } catch (const std::system_error&) {  // it has ended
      }
    });
  ASSERT_TRUE(comes_true([&] { return begun >= callers; }));
  PlainClient client{port_.port()};
  client.send(request("SHUTDOWN NOSAVE"));
  port_.served().wait();
  port_.end();
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace sluice::test
