/// The program as a user runs it: what it prints, and what it exits with.
#include <regex>

#include "cli/program.hpp"
#include "support/free_port.hpp"

namespace sluice {
namespace {

using test::Ran;
using test::read_file;

class Program : public test::Program {};

TEST_F(Program, HelpListsCommandsAndExitCodes) {
  const Ran help = run({"--help"});
  EXPECT_EQ(help.status, 0);
  for (const char* const word : {"lock", "locks", "semaphore", "latch", "number", "id", "sale",
                                 "demo", "bench", "doctor", "75", "76", "80"})
    EXPECT_NE(help.output.find(word), std::string::npos) << word;
}

TEST_F(Program, BadArgumentsAreOneLineAndExit64) {
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {},
           {"nonsense"},
           {"number"},
           {"--store", "ftp://x", "number", "MT"},
           {"--store", "redis://h:99999", "id"},
           {"--store", "embedded:", "number", "MT", "--zone", "Nowhere/Land"},
           {"lock", "x", "--wait", "soon", "--", "true"}}) {
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.status, 64) << ran.output;
    EXPECT_EQ(std::count(ran.output.begin(), ran.output.end(), '\n'), 1) << ran.output;
    EXPECT_TRUE(ran.output.starts_with("sluice: ")) << ran.output;
  }
}

TEST_F(Program, ARefusedPortExits69AndNamesIt) {
  const auto port = std::to_string(test::free_port());
  const Ran ran = run({"--store", "redis://127.0.0.1:" + port, "id"});
  EXPECT_EQ(ran.status, 69) << ran.output;
  EXPECT_NE(ran.output.find(port), std::string::npos) << ran.output;
}

TEST_F(Program, AWrongPasswordExits77AndIsNotShown) {
  const test::RedisServer guarded{{"requirepass right"}};
  const Ran ran =
      run({"--store", "redis://:wrong-secret@127.0.0.1:" + std::to_string(guarded.port()), "id"});
  EXPECT_EQ(ran.status, 77) << ran.output;
  EXPECT_EQ(ran.output.find("wrong-secret"), std::string::npos) << ran.output;
}

TEST_F(Program, AWrongTypeExits65) {
  test::PlainClient{server_.port()}.command({"SET", "sluice:id", "x"});
  const Ran ran = run_on_redis({"id"});
  EXPECT_EQ(ran.status, 65) << ran.output;
}

TEST_F(Program, NumbersComeInOrder) {
  const Ran ran = run_on_redis({"--json", "number", "MT", "--zone", "Asia/Shanghai", "-n", "3"});
  ASSERT_EQ(ran.status, 0) << ran.output;
  const auto numbers = ran.json().at("numbers");
  ASSERT_EQ(numbers.size(), 3U);
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(numbers[i].get<std::string>().ends_with("000" + std::to_string(i + 1)));
}

TEST_F(Program, AFullSeriesExits75) {
  EXPECT_EQ(run_on_redis({"number", "X", "--digits", "1", "-n", "9"}).status, 0);
  const Ran ran = run_on_redis({"number", "X", "--digits", "1"});
  EXPECT_EQ(ran.status, 75) << ran.output;
}

TEST_F(Program, AnIdExplainsItself) {
  const Ran drawn = run_on_redis({"id"});
  ASSERT_EQ(drawn.status, 0) << drawn.output;
  const Ran explained = run({"id", "--explain", drawn.last_line()});
  EXPECT_EQ(explained.status, 0);
  EXPECT_NE(explained.output.find("issued at 20"), std::string::npos) << explained.output;
}

TEST_F(Program, LockRunsACommandAndExitsWithItsStatus) {
  EXPECT_EQ(run_on_redis({"lock", "deploy", "--", "true"}).status, 0);
  EXPECT_EQ(run_on_redis({"lock", "deploy", "--", "sh", "-c", "exit 7"}).status, 7);
  EXPECT_EQ(run_on_redis({"lock", "deploy", "--", "sh", "-c", "kill -9 $$"}).status, 137);
  EXPECT_EQ(run_on_redis({"lock", "deploy", "--", "no-such-command-here"}).status, 127);
  const Ran token = run_on_redis({"lock", "deploy", "--", "sh", "-c", "echo token $SLUICE_TOKEN"});
  EXPECT_NE(token.output.find("token 1"), std::string::npos) << token.output;
  EXPECT_EQ(test::PlainClient{server_.port()}.command({"EXISTS", "deploy"}).as_integer(), 0);
}

TEST_F(Program, ABusyLockExits75) {
  test::PlainClient side{server_.port()};
  side.command({"HSET", "deploy", "8f14e45f-ceea-467f-9b5d-1c2b3a4d5e6f:42", "1"});
  side.command({"PEXPIRE", "deploy", "60000"});
  const Ran ran = run_on_redis({"lock", "deploy", "--wait", "50ms", "--", "true"});
  EXPECT_EQ(ran.status, 75) << ran.output;
  EXPECT_NE(ran.output.find("lock 'deploy' is held by "), std::string::npos);
}

TEST_F(Program, ALostLockEndsTheCommandAndExits76) {
  test::PlainClient side{server_.port()};
  auto holder =
      start({"--store", server_.url(), "lock", "deploy", "--lease", "900ms", "--", "sleep", "60"},
            "holder");
  wait_for_key("deploy");
  side.command({"DEL", "deploy"});
  EXPECT_EQ(holder.wait_for(std::chrono::seconds{20}), 76) << read_file(folder_ / "holder");
  EXPECT_NE(read_file(folder_ / "holder").find("lost"), std::string::npos);
}

TEST_F(Program, ALostLockKillsACommandThatIgnoresTerm) {
  test::PlainClient side{server_.port()};
  auto holder = start({"--store", server_.url(), "lock", "deploy", "--lease", "900ms", "--grace",
                       "100ms", "--", "sh", "-c", "trap '' TERM; while :; do sleep 1; done"},
                      "holder");
  wait_for_key("deploy");
  side.command({"DEL", "deploy"});
  EXPECT_EQ(holder.wait_for(std::chrono::seconds{20}), 76);
}

TEST_F(Program, ASignalIsPassedOnAndTheLockReleased) {
  test::PlainClient side{server_.port()};
  auto holder = start({"--store", server_.url(), "lock", "deploy", "--", "sh", "-c",
                       "trap 'exit 9' TERM; : > started; while :; do sleep 0.05; done"},
                      "holder");
  while (!std::filesystem::exists(folder_ / "started"))
    side.command({"BLPOP", "nothing-is-here", "0.01"});
  holder.terminate();
  EXPECT_EQ(holder.wait_for(std::chrono::seconds{20}), 9);
  EXPECT_EQ(side.command({"EXISTS", "deploy"}).as_integer(), 0);
}

TEST_F(Program, DoctorFindsWhatIsDangerous) {
  const Ran careless = run_on_redis({"--json", "doctor"});
  EXPECT_EQ(careless.status, 1) << careless.output;  // the test's server keeps nothing on disk
  test::PlainClient side{server_.port()};
  side.command({"CONFIG", "SET", "appendonly", "yes"});
  const Ran sound = run_on_redis({"doctor"});
  EXPECT_EQ(sound.status, 0) << sound.output;
  side.command({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});
  side.command({"CONFIG", "SET", "maxmemory", "100mb"});
  const Ran evicting = run_on_redis({"doctor"});
  EXPECT_EQ(evicting.status, 1) << evicting.output;
  EXPECT_NE(evicting.output.find("allkeys-lru"), std::string::npos);
  EXPECT_NE(evicting.output.find("noeviction"), std::string::npos);
}

TEST_F(Program, DoctorSeesReplicas) {
  const test::RedisServer replica{{"replicaof 127.0.0.1 " + std::to_string(server_.port())}};
  test::PlainClient side{server_.port()};
  side.command({"CONFIG", "SET", "appendonly", "yes"});
  while (side.command({"INFO", "replication"}).as_text().find("state=online") == std::string::npos)
    side.command({"BLPOP", "nothing-is-here", "0.01"});
  EXPECT_EQ(run_on_redis({"doctor"}).status, 1);
  side.command({"CONFIG", "SET", "min-replicas-to-write", "1"});
  EXPECT_EQ(run_on_redis({"doctor"}).status, 0);
  EXPECT_EQ(run({"doctor", replica.url()}).status, 1);  // a replica takes no writes
}

TEST_F(Program, TheDemoSellsEveryBottleOnceOnTheEmbeddedEngine) {
  const Ran ran = run({"--json", "demo", "--buyers", "2000", "--stock", "100"});
  ASSERT_EQ(ran.status, 0) << ran.output;
  const auto result = ran.json();
  EXPECT_TRUE(result.at("ok").get<bool>());
  EXPECT_EQ(result.at("figures").at("sold"), 100);
}

TEST_F(Program, TheDemoSellsEveryBottleOnceWithFourProcessesOnRedis) {
  const Ran ran =
      run_on_redis({"--json", "demo", "--buyers", "2000", "--stock", "100", "--instances", "4"});
  ASSERT_EQ(ran.status, 0) << ran.output;
  EXPECT_EQ(ran.json().at("figures").at("sold"), 100);
  // It tidies up. What stays is the id of the store, and the count of sales ever made here, so that
  // no id is given twice.
  const auto left = test::PlainClient{server_.port()}.command({"KEYS", "*"}).as_items();
  EXPECT_EQ(left.size(), 2U);
  for (const auto& key : left)
    EXPECT_TRUE(key.as_text() == "sluice:sales" || key.as_text() == "sluice:sales:store");
}

TEST_F(Program, TheDemoRefusesSeveralProcessesOnOneFolder) {
  const Ran ran = run({"demo", "--instances", "4"});
  EXPECT_EQ(ran.status, 64) << ran.output;
  EXPECT_NE(ran.output.find("redis://"), std::string::npos) << ran.output;
}

}  // namespace
}  // namespace sluice
