/// Commands that run while something is held, of every kind: one way for all.
#include "cli/program.hpp"
#include "support/free_port.hpp"

namespace sluice {
namespace {

using test::PlainClient;
using test::Ran;
using CommandWords = std::vector<std::string>;

struct Kind {
  const char* name;
  CommandWords words;  ///< before the name
  CommandWords end;    ///< after it
  const char* key;
};

CommandWords command_of(const Kind& kind, const std::string& wait, const CommandWords& command,
                        const CommandWords& times = {}) {
  CommandWords words = kind.words;
  words.insert(words.end(), {"deploy", "--wait", wait});
  words.insert(words.end(), times.begin(), times.end());
  words.insert(words.end(), kind.end.begin(), kind.end.end());
  words.push_back("--");
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

class Holding : public test::Program, public testing::WithParamInterface<Kind> {};

TEST_P(Holding, RunsACommandAndExitsWithItsStatus) {
  EXPECT_EQ(run_on_redis(command_of(GetParam(), "1m", {"true"})).status, 0);
  EXPECT_EQ(run_on_redis(command_of(GetParam(), "1m", {"sh", "-c", "exit 7"})).status, 7);
  EXPECT_EQ(run_on_redis(command_of(GetParam(), "1m", {"no-such-command"})).status, 127);
  EXPECT_EQ(run_on_redis(command_of(GetParam(), "1m", {"/"})).status, 126);
  CommandWords json = command_of(GetParam(), "1m", {"true"});
  json.insert(json.begin(), "--json");
  const auto said = run_on_redis(json).json();
  EXPECT_EQ(said.at("outcome"), "released");
  EXPECT_TRUE(said.at("ok").get<bool>());
}

TEST_P(Holding, BusyExits75AndLeavesNothing) {
  auto holder = start_on_redis(command_of(GetParam(), "1m", {"sleep", "60"}), "holder");
  wait_for_key(GetParam().key);
  for (const char* const wait : {"0", "50ms"}) {
    const Ran busy = run_on_redis(command_of(GetParam(), wait, {"echo", "never"}));
    EXPECT_EQ(busy.status, 75) << busy.output;
    EXPECT_FALSE(busy.says("never"));
    EXPECT_TRUE(busy.output.starts_with("sluice: ")) << busy.output;
    EXPECT_EQ(std::count(busy.output.begin(), busy.output.end(), '\n'), 1) << busy.output;
  }
  holder.terminate();
  EXPECT_EQ(holder.wait_for(std::chrono::seconds{20}), 128 + SIGTERM);
  EXPECT_EQ(run_on_redis(command_of(GetParam(), "0", {"true"})).status, 0);
}

TEST_P(Holding, LostEndsTheCommandAndExits76) {
  auto holder =
      start_on_redis(command_of(GetParam(), "1m",
                                {"sh", "-c", "trap '' TERM; echo > in; while :; do sleep 1; done"},
                                {"--lease", "2s", "--grace", "100ms"}),
                     "holder");
  wait_until([&](PlainClient&) { return std::filesystem::exists(folder_ / "in"); });
  PlainClient{server_.port()}.command({"FLUSHALL"});
  EXPECT_EQ(holder.wait_for(std::chrono::seconds{20}), 76) << test::read_file(folder_ / "holder");
  EXPECT_NE(test::read_file(folder_ / "holder").find("lost"), std::string::npos);
}

TEST_P(Holding, ASignalEndsTheWait) {
  auto holder = start_on_redis(command_of(GetParam(), "1m", {"sleep", "60"}), "holder");
  wait_for_key(GetParam().key);
  auto waiter = start_on_redis(command_of(GetParam(), "1h", {"echo", "never"}), "waiter");
  wait_until([](PlainClient& side) {
    return side.command({"PUBSUB", "CHANNELS", "sluice*"}).as_items().size() == 1;
  });
  waiter.signal(SIGINT);
  EXPECT_EQ(waiter.wait_for(std::chrono::seconds{20}), 128 + SIGINT);
  EXPECT_EQ(test::read_file(folder_ / "waiter"), "");
  holder.terminate();
}

INSTANTIATE_TEST_SUITE_P(Of, Holding,
                         testing::Values(Kind{"Mutex", {"lock"}, {}, "deploy"},
                                         Kind{"FairMutex", {"lock", "--fair"}, {}, "deploy"},
                                         Kind{"SharedMutex", {"lock", "--exclusive"}, {}, "deploy"},
                                         Kind{"Semaphore",
                                              {"semaphore"},
                                              {"--permits", "3", "--count", "2"},
                                              "sluice_semaphore_holds:{deploy}"}),
                         [](const auto& kind) { return kind.param.name; });

class Locking : public test::Program {};

TEST_F(Locking, ReadersRunTogetherAndWritersAlone) {
  auto reader = start_on_redis({"lock", "-s", "prices", "--", "sleep", "60"}, "reader");
  wait_for_key("prices");
  EXPECT_EQ(run_on_redis({"lock", "-s", "prices", "--wait", "0", "--", "true"}).status, 0);
  EXPECT_EQ(run_on_redis({"lock", "-x", "prices", "--wait", "0", "--", "true"}).status, 75);
  reader.terminate();
}

TEST_F(Locking, AMajorityOfStoresIsEnough) {
  const test::RedisServer second;
  const std::string down = "redis://127.0.0.1:" + std::to_string(test::free_port());
  const std::string two = server_.url() + ',' + second.url();
  const Ran held = run({"lock", "deploy", "--quorum", two + ',' + down, "--", "sh", "-c",
                        "echo token $SLUICE_TOKEN"});
  EXPECT_EQ(held.status, 0) << held.output;
  EXPECT_TRUE(held.says("token ")) << held.output;
  const Ran failed = run({"lock", "deploy", "--quorum", server_.url() + ',' + down + ',' + down,
                          "--wait", "0", "--", "true"});
  EXPECT_EQ(failed.status, 69) << failed.output;
  EXPECT_FALSE(failed.says("not released")) << failed.output;
}

TEST_F(Locking, TheKindsExcludeEachOther) {
  EXPECT_EQ(run_on_redis({"lock", "--fair", "--shared", "x", "--", "true"}).status, 64);
  EXPECT_EQ(run_on_redis({"lock", "x"}).status, 64) << "a lock without a command is nothing";
}

TEST_F(Locking, TheLabelIsShown) {
  auto holder =
      start_on_redis({"lock", "deploy", "--label", "night run", "--", "sleep", "60"}, "holder");
  wait_for_key("deploy");
  EXPECT_EQ(
      run_on_redis({"--json", "locks"}).json().at("locks").at(0).at("holders").at(0).at("label"),
      "night run");
  holder.terminate();
}

class Latching : public test::Program {};

TEST_F(Latching, OpensWhenTheLastHasReported) {
  EXPECT_EQ(run_on_redis({"latch", "import", "set", "2"}).status, 0);
  EXPECT_EQ(run_on_redis({"latch", "import", "set", "2"}).status, 75);
  EXPECT_EQ(run_on_redis({"latch", "import", "wait", "--wait", "0"}).status, 75);
  auto waiter =
      start_on_redis({"latch", "import", "--", "sh", "-c", "echo all is here; exit 4"}, "waiter");
  for (int i = 0; i < 2; ++i) {
    const Ran part = run_on_redis({"--json", "latch", "import", "count-down", "--part", "one"});
    EXPECT_EQ(part.json().at("count"), 1) << "counts once";
  }
  EXPECT_TRUE(waiter.running());
  EXPECT_TRUE(run_on_redis({"latch", "import", "count-down"}).says("is open"));
  EXPECT_EQ(waiter.wait_for(std::chrono::seconds{20}), 4);
  EXPECT_EQ(test::read_file(folder_ / "waiter"), "all is here\n");
  EXPECT_EQ(run_on_redis({"latch", "import"}).status, 0);
}

TEST_F(Latching, IsSetAnewOnlyWhenAsked) {
  EXPECT_EQ(run_on_redis({"latch", "import", "set", "2"}).status, 0);
  EXPECT_EQ(run_on_redis({"latch", "import", "set", "0", "--reset"}).status, 0);
  EXPECT_TRUE(run_on_redis({"--json", "latch", "import", "show"}).json().at("open").get<bool>());
  EXPECT_EQ(run_on_redis({"latch", "import", "set", "0"}).status, 64);
  EXPECT_EQ(run_on_redis({"latch"}).status, 64);
}

}  // namespace
}  // namespace sluice
