/// `sluice locks` on a real server.
#include <thread>

#include "cli/program.hpp"
#include "sluice/mutex.hpp"
#include "sluice/open.hpp"
#include "support/free_port.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::PlainClient;
using test::Ran;

class Locks : public test::Program {};

TEST_F(Locks, ListsWhoHoldsAndHowManyWait) {
  const Ran none = run_on_redis({"locks"});
  EXPECT_EQ(none.status, 0);
  EXPECT_EQ(none.last_line().find("NAME"), 0U) << none.output;
  auto holder =
      start_on_redis({"lock", "deploy", "--label", "first", "--", "sleep", "60"}, "holder");
  wait_for_key("deploy");
  auto waiter = start_on_redis({"lock", "deploy", "--label", "second", "--", "true"}, "waiter");
  wait_for_key("sluice_lock_queue:{deploy}");
  PlainClient side{server_.port()};
  side.command({"HSET", "books", "8f14e45f-ceea-467f-9b5d-1c2b3a4d5e6f:42", "1"});
  side.command({"HSET", "user:1", "name", "x"});

  const Ran all = run_on_redis({"locks"});
  EXPECT_EQ(std::count(all.output.begin(), all.output.end(), '\n'), 3) << all.output;
  for (const char* const word : {"deploy", "mutex", "first", "books", "foreign"})
    EXPECT_TRUE(all.says(word)) << word << '\n' << all.output;
  const auto mine = run_on_redis({"--json", "locks", "--mine"}).json().at("locks");
  ASSERT_EQ(mine.size(), 1U);
  EXPECT_EQ(mine[0].at("name"), "deploy");
  EXPECT_EQ(mine[0].at("waiters").size(), 1U);
  EXPECT_EQ(run_on_redis({"--json", "locks", "b*"}).json().at("locks").size(), 1U);
  EXPECT_EQ(run_on_redis({"--json", "locks", "--host", "nowhere"}).json().at("locks").size(), 0U);

  const Ran one = run_on_redis({"locks", "deploy"});
  for (const char* const word : {"mutex", "token", "first@", "1. waits: second@", "lease ends in"})
    EXPECT_TRUE(one.says(word)) << word << '\n' << one.output;
  EXPECT_TRUE(run_on_redis({"locks", "nothing"}).says("nobody holds it"));
  const Ran cut = run_on_redis({"locks", "--most", "1"});
  EXPECT_TRUE(cut.says("more than 1 locks")) << cut.output;
  holder.terminate();
}

TEST_F(Locks, AWrongAddressExits69) {
  const auto url = "redis://127.0.0.1:" + std::to_string(test::free_port());
  EXPECT_EQ(run({"--store", url, "locks"}).status, 69);
  EXPECT_EQ(run({"--store", url, "locks", "--graph"}).status, 69);
}

TEST_F(Locks, NamesDoNotCommandTheTerminal) {
  PlainClient{server_.port()}.command(
      {"HSET", "red\x1b[31m", "8f14e45f-ceea-467f-9b5d-1c2b3a4d5e6f:42", "1"});
  const Ran ran = run_on_redis({"locks"});
  EXPECT_FALSE(ran.says("\x1b")) << ran.output;
  EXPECT_TRUE(ran.says("red")) << ran.output;
}

TEST_F(Locks, AFolderHasLocksToo) {
  const Ran ran = run({"--store", "embedded:" + (folder_ / "data").string(), "locks", "--graph"});
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_TRUE(ran.says("0 deadlocks")) << ran.output;
}

TEST_F(Locks, TwoThatLockCrosswiseAreADeadlockAndExit80) {
  EXPECT_EQ(run_on_redis({"locks", "--graph"}).status, 0);
  const auto store = open(server_.url());
  const auto other = open(server_.url());  // as another process
  Mutex first{*store, "first", {.label = "anna"}};
  Mutex second{*store, "second", {.label = "anna"}};
  Mutex other_first{*other, "first", {.label = "bert"}};
  Mutex other_second{*other, "second", {.label = "bert"}};
  std::stop_source stop;
  std::atomic<int> in{0};
  const auto cross = [&](Mutex& one, Mutex& two) {
    const auto held = one.acquire().get();
    ++in;
    while (in < 2) std::this_thread::yield();
    const auto both = two.try_acquire(1h, stop.get_token()).get();  // of one, once the other stops
  };
  std::jthread anna{[&] { cross(first, second); }};
  std::jthread bert{[&] { cross(other_second, other_first); }};
  wait_for_key("sluice_lock_queue:{first}");
  wait_for_key("sluice_lock_queue:{second}");

  const Ran text = run_on_redis({"locks", "--graph"});
  EXPECT_EQ(text.status, 80) << text.output;
  EXPECT_TRUE(text.says("anna@")) << text.output;
  EXPECT_TRUE(text.says(": deadlock\n1 deadlock\n")) << text.output;
  const Ran json = run_on_redis({"--json", "locks", "--graph"});
  EXPECT_EQ(json.status, 80);
  EXPECT_FALSE(json.json().at("ok").get<bool>());
  EXPECT_EQ(json.json().at("deadlocks").at(0).at("steps").size(), 2U);
  const Ran dot = run_on_redis({"locks", "--dot"});
  EXPECT_EQ(dot.status, 80);
  EXPECT_TRUE(dot.says("digraph")) << dot.output;
  EXPECT_TRUE(dot.says("color=red")) << dot.output;
  stop.request_stop();
}

}  // namespace
}  // namespace sluice
