// A real server that is refused, stopped, killed, restarted, or left in the middle of a call.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <latch>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/sha1.hpp"
#include "redis/at_server.hpp"
#include "sluice/when_all.hpp"
#include "support/collected_log.hpp"
#include "support/free_port.hpp"
#include "support/plain_client.hpp"
#include "support/thread_sanitized.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::at;
using test::failure_of;

void wait_until_asleep(test::PlainClient& admin, std::string_view flag) {
  // A client that waits in a blocking command has the flag 'b'.
  while (admin.command({"CLIENT", "LIST"}).as_text().find(flag) == std::string::npos)
    std::this_thread::yield();
}

/// What ends a wait, or leaves it: the key goes, or becomes another, or the call is freed.
struct EndOfWait {
  std::string name;
  std::function<void(Store&, test::PlainClient&)> end;
};

std::vector<EndOfWait> ends_of_waits() {
  const auto by = [](std::vector<std::string> words) {
    return EndOfWait{words[0], [words](Store&, test::PlainClient& admin) { admin.command(words); }};
  };
  std::vector<EndOfWait> all{by({"DEL", "key"}), by({"FLUSHALL"}), by({"RENAME", "key", "other"}),
                             by({"SET", "key", "text"}), by({"XGROUP", "DESTROY", "key", "group"})};
  for (const auto* const words : {"READONLY mine", "MOVED 1 127.0.0.1:1", "UNBLOCKED mine"})
    all.push_back({words, [words](Store& store, test::PlainClient&) {
                     const auto error = failure_of([&] {
                       store
                           .run({"EVAL",
                                 "redis.call('DEL', KEYS[1]) return redis.error_reply(ARGV[1])",
                                 "1", "key", words})
                           .get();
                     });
                     EXPECT_EQ(error.effect(), Effect::unknown) << error.message();
                   }});
  return all;
}

/// The id of a client that waits; empty: none does.
std::string waiting_client(test::PlainClient& admin) {
  std::istringstream lines{admin.command({"CLIENT", "LIST"}).as_text()};
  for (std::string line; std::getline(lines, line);)
    if (line.find("flags=b") != line.npos) return line.substr(3, line.find(' ') - 3);
  return {};
}

TEST(BlockingCall, NU04_TheEndOfItsKeyIsNoEndOfItsServer) {
  const test::RedisServer server;
  const auto store = redis::open_redis(at(server));
  test::PlainClient admin{server.port()};
  const std::vector<std::vector<std::string_view>> calls{
      {"BLPOP", "key", "60"},
      {"BLMOVE", "key", "other", "LEFT", "RIGHT", "60"},
      {"BZPOPMIN", "key", "60"},
      {"XREAD", "BLOCK", "60000", "STREAMS", "key", "$"},
      {"XREADGROUP", "GROUP", "group", "me", "BLOCK", "60000", "STREAMS", "key", ">"}};
  const auto connections = [&] {
    const auto text = admin.command({"INFO", "stats"}).as_text();
    return text.substr(text.find("total_connections_received:"), 40);
  };
  std::string before;
  test::CollectedLog log;
  for (const auto& call : calls)
    for (const auto& end : ends_of_waits()) {
      admin.command({"FLUSHALL"});
      if (call[0].starts_with("X")) {
        admin.command({"XADD", "key", "1-1", "f", "v"});
        admin.command({"XGROUP", "CREATE", "key", "group", "$"});
      }
      std::jthread caller{[&] {
        try {
          store->run(Words{call}).get();
        } catch (const Error& error) {
          EXPECT_NE(error.errc(), Errc::connection) << error.message();
        }
      }};
      wait_until_asleep(admin, "flags=b");
      if (before.empty()) before = connections();
      end.end(*store, admin);
      if (const auto id = waiting_client(admin); !id.empty())
        admin.command({"CLIENT", "UNBLOCK", id, "ERROR"});
      caller.join();
      EXPECT_EQ(connections(), before) << call[0] << ", " << end.name << ": a new connection";
    }
  EXPECT_EQ(log.text(), "");
}

TEST(Refused, PortWithoutAServer) {
  redis::RedisOptions options;
  options.endpoint.host = "127.0.0.1";
  options.endpoint.port = test::free_port();
  const auto error = failure_of([&] { redis::open_redis(options); });
  EXPECT_EQ(error.errc(), Errc::connection);
  EXPECT_EQ(error.effect(), Effect::none);
  EXPECT_NE(error.message().find("refused"), std::string::npos) << error.what();
  EXPECT_NE(error.message().find(std::to_string(options.endpoint.port)), std::string::npos)
      << error.what();
}

TEST(Refused, HostThatDoesNotExist) {
  redis::RedisOptions options;
  options.endpoint.host = "no-such-host.invalid";
  options.endpoint.port = 6379;
  EXPECT_EQ(failure_of([&] { redis::open_redis(options); }).errc(), Errc::connection);
}

TEST(Refused, UnixSocketThatDoesNotExistOrHasTooLongAName) {
  redis::RedisOptions options;
  options.endpoint.unix_path = "/nonexistent/redis.sock";
  EXPECT_EQ(failure_of([&] { redis::open_redis(options); }).errc(), Errc::connection);
  options.endpoint.unix_path = "/" + std::string(200, 'x');
  EXPECT_EQ(failure_of([&] { redis::open_redis(options); }).errc(), Errc::bad_argument);
}

TEST(Login, PasswordUserAndDatabase) {
  const test::RedisServer server{{"requirepass secret", "user app on >word ~* &* +@all"}};
  auto options = at(server);
  EXPECT_EQ(failure_of([&] { redis::open_redis(options); }).errc(), Errc::authentication);
  options.password = "wrong-word";
  const auto error = failure_of([&] { redis::open_redis(options); });
  EXPECT_EQ(error.errc(), Errc::authentication);
  EXPECT_EQ(std::string{error.what()}.find("wrong-word"), std::string::npos) << error.what();

  options.password = "secret";
  options.database = 99;
  const auto message = failure_of([&] { redis::open_redis(options); }).message();
  EXPECT_NE(message.find("DB index is out of range"), std::string::npos) << message;
  EXPECT_EQ(message.find("redis://"), message.rfind("redis://")) << message;
  options.database = 3;
  options.name = "my-program";
  const auto store = redis::open_redis(options);
  const auto info = store->run({"CLIENT", "INFO"}).get().as_text();
  EXPECT_NE(info.find("db=3 "), std::string::npos) << info;
  EXPECT_NE(info.find("name=my-program "), std::string::npos) << info;
  EXPECT_EQ(store->describe(), "redis://127.0.0.1:" + std::to_string(server.port()) + "/3");

  options.user = "app";
  options.password = "word";
  EXPECT_EQ(redis::open_redis(options)->run({"ACL", "WHOAMI"}).get().as_text(), "app");
}

TEST(Login, UnixSocket) {
  const test::RedisServer server{{}, test::RedisServer::Address::unix_socket};
  const auto store = redis::open_redis(at(server));
  EXPECT_EQ(store->run({"PING"}).get().as_text(), "PONG");
  EXPECT_EQ(store->describe(), "redis+unix://" + server.socket_path() + "/0");
}

TEST(Patience, MayBeWithoutAnEnd) {
  const test::RedisServer server;
  auto options = at(server);
  options.connect_timeout = options.command_timeout = options.idle =
      std::chrono::milliseconds::max();
  const auto store = redis::open_redis(options);
  store->run({"GET", "k"}).get();
  const auto listener = store->listen("c", [](const Message&) {}).get();
  const CallOptions endless{.timeout = std::chrono::milliseconds::max()};
  EXPECT_EQ(store->run({"PING"}, endless).get().as_text(), "PONG");
  EXPECT_TRUE(store->run({"BLPOP", "queue", "0.01"}, endless).get().is_null());
}

TEST(Stopped, ACallTimesOutWithUnknownEffectAndTheConnectionRecovers) {
  test::RedisServer server;
  const auto store = redis::open_redis(at(server));
  server.stop();
  const auto error = failure_of([&] { store->run({"SET", "k", "1"}, {.timeout = 50ms}).get(); });
  EXPECT_EQ(error.errc(), Errc::timeout);
  EXPECT_EQ(error.effect(), Effect::unknown);
  server.cont();
  for (int i = 0; i < 10; ++i) {
    const auto word = std::to_string(i);
    EXPECT_EQ(store->run({"ECHO", word}, {.timeout = 10s}).get().as_text(), word);
  }
}

TEST(Stopped, EachOfManyCallersTimesOutAtItsOwnTime) {
  test::RedisServer server;
  const auto store = redis::open_redis(at(server));
  server.stop();
  std::atomic<int> in_time{0};
  {
    std::vector<std::jthread> crowd;
    for (int t = 0; t < 8; ++t) {
      crowd.emplace_back([&, t] {
        const auto timeout = 20ms + 10ms * t;
        const auto begin = std::chrono::steady_clock::now();
        const auto error = failure_of([&] {
          store->run({"INCR", "k"}, {.timeout = timeout}).get();
        });
        if (error.errc() == Errc::timeout && std::chrono::steady_clock::now() - begin >= timeout)
          ++in_time;
      });
    }
  }
  EXPECT_EQ(in_time, 8);
  server.cont();
}

TEST(Killed, CallsInFlightAreUnknownAndCallsWithoutAConnectionAreNone) {
  test::RedisServer server;
  auto options = at(server);
  const auto store = redis::open_redis(options);
  server.stop();  // it takes the bytes, and will never answer
  std::latch sent{1};
  std::jthread killer{[&] {
    sent.wait();
    server.kill();
  }};
  // The call is submitted before the coroutine suspends, and the latch opens after that.
  std::vector<Task<void>> both;
  both.push_back([](Store& to) -> Task<void> {
    auto asked = to.run({"SET", "k", "v"}, {.timeout = 20s});
    co_await asked;
  }(*store));
  both.push_back([](std::latch& latch) -> Task<void> {
    latch.count_down();
    co_return;
  }(sent));
  const auto in_flight = failure_of([&] { when_all(std::move(both)).get(); });
  EXPECT_EQ(in_flight.errc(), Errc::connection);
  EXPECT_EQ(in_flight.effect(), Effect::unknown);

  std::string why;
  for (int i = 0; i < 1000 && why.find("refused") == why.npos; ++i) {  // once it has tried again
    const auto without = failure_of([&] {
      store->run({"SET", "k", "v"}, {.timeout = 50ms}).get();
    });
    EXPECT_EQ(without.errc(), Errc::connection);
    EXPECT_EQ(without.effect(), Effect::none);
    why = without.message();
  }
  EXPECT_NE(why.find("refused"), std::string::npos) << why;
}

TEST(Restarted, CallsWaitForTheConnectionAndScriptsAreTaughtAgain) {
  test::RedisServer server;
  const auto store = redis::open_redis(at(server));
  const Script script{"test", "return ARGV[1]", "098e0f0d1448c0a81dafe820f66d460eb09263da"};
  EXPECT_EQ(store->run(script, {}, {"a"}).get().as_text(), "a");
  for (int i = 0; i < 3; ++i) {
    server.restart();
    EXPECT_EQ(store->run(script, {}, {"b"}, {.timeout = 20s, .repeatable = true}).get().as_text(),
              "b");
  }
}

TEST(Restarted, ManyThreadsReadingNoticeNothing) {
  test::RedisServer server;
  const auto store = redis::open_redis(at(server));
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::vector<std::jthread> crowd;
  for (int t = 0; t < 8; ++t)
    crowd.emplace_back([&, t] {
      for (int i = 0; !done; ++i) {
        const auto word = std::to_string(t) + ":" + std::to_string(i);
        if (store->run({"ECHO", word}, {.timeout = 30s}).get().as_text() != word) ++wrong;
      }
    });
  for (int i = 0; i < 3; ++i) {
    const auto before = metrics().redis_commands.load();
    while (metrics().redis_commands.load() < before + 200) std::this_thread::yield();
    server.kill();
    server.start();
  }
  done = true;
  crowd.clear();
  EXPECT_EQ(wrong, 0);
}

TEST(Wire, E12_AScriptMayAnswerAsDeepAsRedisCan) {
  constexpr std::string_view text =
      "local nested = 1 for _ = 1, tonumber(ARGV[1]) do nested = {nested} end return nested";
  const std::string sha = sha1_hex(text);
  const Script script{.name = "test/nest", .text = text, .sha1 = sha};
  const test::RedisServer server;
  const auto store = redis::open_redis(at(server));
  const auto connection = store->run({"CLIENT", "ID"}).get().as_integer();
  for (const char* const depth : {"127", "129", "2000", "8000", "100000"}) {
    try {
      Value reply = store->run(script, {}, {depth}).get();
      int levels = 0;
      for (; reply.is_aggregate(); ++levels) reply = Value{std::move(reply.as_items().at(0))};
      EXPECT_TRUE(levels == std::atoi(depth) || reply.is_error()) << levels << " of " << depth;
    } catch (const Error& error) {  // a Lua with too small a stack says so
      EXPECT_EQ(error.errc(), Errc::script) << depth << error.message();
    }
  }
  EXPECT_EQ(store->run({"CLIENT", "ID"}).get().as_integer(), connection);
}

TEST(Blocking, CommandsHoldUpNobody) {
  test::RedisServer server;
  const auto store = redis::open_redis(at(server));
  test::PlainClient admin{server.port()};
  std::jthread waiting{[&] {
    EXPECT_EQ(to_string(store->run({"BLPOP", "queue", "0"}).get()), R"(["queue", "work"])");
  }};
  wait_until_asleep(admin, "cmd=blpop");
  EXPECT_EQ(store->run({"PING"}).get().as_text(), "PONG");
  EXPECT_EQ(store->run({"RPUSH", "queue", "work"}).get().as_integer(), 1);
}

TEST(Blocking, TheirOwnTimeIsAddedToTheCalls) {
  test::RedisServer server;
  const auto store = redis::open_redis(at(server));
  test::PlainClient admin{server.port()};
  // The call alone would have ended long before the push.
  std::jthread waiting{[&] {
    EXPECT_FALSE(store->run({"BLPOP", "queue", "60"}, {.timeout = 50ms}).get().is_null());
  }};
  wait_until_asleep(admin, "cmd=blpop");
  EXPECT_TRUE(admin.command({"BLPOP", "nothing", "0.1"}).is_null());
  admin.command({"RPUSH", "queue", "work"});
}

TEST(Blocking, OneTooManyWaitsItsTimeForAConnection) {
  test::RedisServer server;
  auto options = at(server);
  options.most_blocking = 1;
  const auto store = redis::open_redis(options);
  test::PlainClient admin{server.port()};
  std::jthread waiting{[&] { store->run({"BLPOP", "queue", "0"}).get(); }};
  wait_until_asleep(admin, "cmd=blpop");
  const CallOptions brief{.timeout = 50ms};
  EXPECT_EQ(failure_of([&] {
              store->run({"BLPOP", "queue", "0"}, brief).get();
            }).effect(),
            Effect::none);
  store->run({"RPUSH", "queue", "work"}).get();
}

TEST(Blocking, AKilledServerEndsThemWithUnknownEffect) {
  test::RedisServer server;
  const auto store = redis::open_redis(at(server));
  {
    test::PlainClient admin{server.port()};
    std::jthread waiting{[&] {
      EXPECT_EQ(failure_of([&] {
                  store->run({"BLPOP", "queue", "0"}).get();
                }).effect(),
                Effect::unknown);
    }};
    wait_until_asleep(admin, "cmd=blpop");
    server.kill();
  }
  server.start();
  EXPECT_TRUE(store->run({"BLPOP", "queue", "0.01"}, {.timeout = 20s}).get().is_null());
}

TEST(Closed, CallsInFlightEndAndTheirEffectIsUnknown) {
  test::RedisServer server;
  test::PlainClient admin{server.port()};
  auto store = redis::open_redis(at(server));
  std::vector<std::jthread> crowd;
  for (int t = 0; t < 4; ++t)
    crowd.emplace_back([&] {
      const auto error = failure_of([&] { store->run({"BLPOP", "queue", "0"}).get(); });
      EXPECT_EQ(error.errc(), Errc::closed);
      EXPECT_EQ(error.effect(), Effect::unknown);
    });
  while (admin.command({"INFO", "clients"}).as_text().find("blocked_clients:4") ==
         std::string::npos)
    std::this_thread::yield();
  server.stop();
  std::atomic<int> sent{0};
  for (int t = 0; t < 4; ++t)
    crowd.emplace_back([&] {
      auto call = [](Store& to, std::atomic<int>& count) -> Task<void> {
        auto asked = to.run({"INCR", "k"}, {.timeout = 30s});
        ++count;
        co_await asked;
      };
      EXPECT_EQ(failure_of([&] { call(*store, sent).get(); }).errc(), Errc::closed);
    });
  while (sent < 4) std::this_thread::yield();
  store.reset();
  crowd.clear();
}

/// As a coroutine of a lock that hears that its channel is open, and then gives something back.
TEST(Closed, WhatTheStoresThreadIsInsideOfIsStillSent) {
  test::RedisServer server;
  test::PlainClient admin{server.port()};
  auto store = redis::open_redis(at(server));
  std::latch heard{1};
  const auto give_back = [](Store& from, std::latch& told) -> Task<void> {
    auto listening = from.subscribe("news", [](const Message&) {});
    const Listener listener = co_await listening;
    told.count_down();
    std::this_thread::sleep_for(100ms);  // the Store closes meanwhile
    auto given_back = from.run({"SET", "given-back", "1"}, {.unhurried = true});
    co_await given_back;
  };
  spawn(give_back(*store, heard));
  heard.wait();
  store.reset();
  EXPECT_EQ(admin.command({"EXISTS", "given-back"}).as_integer(), 1);
}

/// As the releases of many locks.
TEST(Closed, ASlowServerIsAwaitedAsLongAsItAnswers) {
  constexpr std::string_view text =
      "local function now() local t = redis.call('TIME') return t[1] * 1000 + t[2] / 1000 end\n"
      "local ends = now() + 20\n"
      "while now() < ends do end\n"
      "return redis.call('INCR', KEYS[1])";
  constexpr int many = 60;
  const std::string sha = sha1_hex(text);
  const Script slow{.name = "slow", .text = text, .sha1 = sha};
  test::RedisServer server;
  test::PlainClient admin{server.port()};
  auto store = redis::open_redis(at(server));
  const auto release = [](Store& to, const Script& script) -> Task<void> {
    // So large that the server reads two at once, and answers these.
    const std::string much(8000, 'x');
    auto released = to.run(script, {"released"}, {much}, {.unhurried = true});
    co_await released;
  };
  std::atomic<int> failed{0};
  for (int i = 0; i < many; ++i)
    spawn(release(*store, slow), [&](std::exception_ptr) { ++failed; });
  store.reset();
  EXPECT_EQ(failed, 0) << "of " << many;
  EXPECT_EQ(admin.command({"GET", "released"}).as_text(), std::to_string(many));
}

/// As a Store's callback that has just learnt of a loss, and then gives something back.
TEST(Closed, WhatACallbackIsInsideOfIsStillSent) {
  test::RedisServer server;
  test::PlainClient admin{server.port()};
  auto store = redis::open_redis(at(server));
  std::latch called{1};
  store->call_back([&, at = store.get()] {
    called.count_down();
    std::this_thread::sleep_for(100ms);  // the Store closes meanwhile
    at->run({"SET", "given-back", "1"}).get();
  });
  called.wait();
  store.reset();
  EXPECT_EQ(admin.command({"EXISTS", "given-back"}).as_integer(), 1);
}

/// As an acquire with Durability whose caller has left: what it is granted, it gives back.
TEST(Closed, WhatWaitsForReplicasIsAwaited) {
  test::RedisServer server;
  test::PlainClient admin{server.port()};
  auto store = redis::open_redis(at(server));
  const auto grant_and_give_back = [](Store& from) -> Task<void> {
    Batch batch;
    batch.add({"SET", "granted", "1"}).add({"WAIT", "1", "100"});  // there is no replica
    auto granting = from.run(std::move(batch));
    co_await granting;
    auto given_back = from.run({"DEL", "granted"}, {.unhurried = true});
    co_await given_back;
  };
  spawn(grant_and_give_back(*store));
  while (admin.command({"EXISTS", "granted"}).as_integer() == 0) std::this_thread::yield();
  store.reset();
  EXPECT_EQ(admin.command({"EXISTS", "granted"}).as_integer(), 0);
}

/// As a wait whose time is up, and which then gives up its place.
TEST(Closed, WhatATimerIsInsideOfIsStillSent) {
  test::RedisServer server;
  test::PlainClient admin{server.port()};
  auto store = redis::open_redis(at(server));
  std::latch fired{1};
  system_clock().after(1ms, [&, at = store.get()] {
    fired.count_down();
    std::this_thread::sleep_for(100ms);  // the Store closes meanwhile
    spawn([](Store& to) -> Task<void> {
      auto given_back = to.run({"SET", "given-back", "1"}, {.unhurried = true});
      co_await given_back;
    }(*at));
  });
  fired.wait();
  store.reset();
  EXPECT_EQ(admin.command({"EXISTS", "given-back"}).as_integer(), 1);
}

TEST(Forked, AChildIsToldToOpenItsOwn) {
#ifdef SLUICE_THREAD_SANITIZER
  GTEST_SKIP() << "ThreadSanitizer does not support what a child of a threaded process does";
#endif
  test::RedisServer server;
  auto store = redis::open_redis(at(server));
  const pid_t child = ::fork();
  if (child == 0) {
    int status = 1;
    try {
      store->run({"PING"}).get();
    } catch (const Error& error) {
      status = error.errc() == Errc::closed && error.effect() == Effect::none ? 0 : 2;
    }
    store.reset();
    ::_exit(status);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(store->run({"PING"}).get().as_text(),
            "PONG");  // the child has left the connection alone
}

TEST(Forked, AChildEndsListenersWhoseHandlersItsParentRuns) {
#ifdef SLUICE_THREAD_SANITIZER
  GTEST_SKIP() << "ThreadSanitizer does not support what a child of a threaded process does";
#endif
  test::RedisServer server;
  const auto store = redis::open_redis(at(server));
  std::latch running{2};
  std::latch go_on{1};
  const auto handler = [&](const Message&) {
    running.count_down();
    go_on.wait();
  };
  auto inside = store->subscribe("c", handler).get();
  auto outside = store->listen("d", handler).get();
  store->run({"PUBLISH", "d", ""}).get();
  test::PlainClient admin{server.port()};
  admin.command({"PUBLISH", "c", ""});
  running.wait();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    inside = {};
    outside = {};
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  go_on.count_down();
}

TEST(Quiet, AnIdleStoreSendsNothingWhenNobodyListens) {
  test::RedisServer server;
  auto options = at(server);
  options.idle = 10ms;
  const auto store = redis::open_redis(options);
  store->run({"PING"}).get();
  const auto before = metrics().redis_commands.load();
  test::PlainClient admin{server.port()};
  EXPECT_TRUE(admin.command({"BLPOP", "nothing", "0.1"}).is_null());  // a tenth of a second passes
  EXPECT_EQ(metrics().redis_commands.load(), before);
}

}  // namespace
}  // namespace sluice
