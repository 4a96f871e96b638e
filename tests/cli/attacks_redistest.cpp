/// What attackers did to the program, each by its row: closed and full streams, errors midway,
/// names and URLs that are not what they seem.
#include <fmt/format.h>

#include <ctime>
#include <filesystem>

#include "cli/program.hpp"
#include "support/free_port.hpp"
#include "support/paths.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::PlainClient;
using test::Ran;
using test::read_file;
using CommandWords = std::vector<std::string>;

class Attacks : public test::Program {
 protected:
  /// A line of bash with $SLUICE, the program on the server, and $PROXY; stderr is in `said_`.
  int bash(const std::string& line) {
    const auto name = "said" + std::to_string(++runs_);
    test::Process process{{"bash", "-c", line},
                          {.directory = folder_.path(),
                           .environment = {{"SLUICE", test::built_path("sluice")},
                                           {"PROXY", test::built_path("sluice-proxy")},
                                           {"SLUICE_STORE", patient_url()}},
                           .output = folder_ / name}};
    const int status = process.wait();
    said_ = read_file(folder_ / name);
    return status;
  }
  bool says(std::string_view text) const { return said_.find(text) != std::string::npos; }
  std::int64_t taken(const std::string& key) {
    const Value value = PlainClient{server_.port()}.command({"HGET", key, "taken"});
    return value.is_null() ? 0 : value.as_integer();
  }
  bool exists(const std::string& key) {
    return PlainClient{server_.port()}.command({"EXISTS", key}).as_integer() == 1;
  }
  static bool has_ended(const std::string& pid) {
    const auto status = read_file("/proc/" + pid + "/stat");
    return status.empty() || status.find(") Z") != std::string::npos;
  }

  std::string said_;
};

TEST_F(Attacks, N01_TheProxyGivesNoStandardDescriptorAway) {
  const auto port = std::to_string(test::free_port());
  std::ofstream{folder_ / "pool.yml"}
      << "pool:\n  listen: 127.0.0.1:" << port
      << "\n  redis: true\n  servers:\n    - 127.0.0.1:" << server_.port() << ":1\n";
  test::Process proxy{{"bash", "-c",
                       fmt::format("exec {} -c pool.yml -s {} -a 127.0.0.1 <&- >&- 2>&-",
                                   test::built_path("sluice-proxy"), test::free_port())},
                      {.directory = folder_.path(), .environment = {}, .output = {}}};
  wait_until([&](PlainClient&) {
    try {
      return PlainClient{static_cast<std::uint16_t>(std::stoi(port))}
          .command({"GET", "x"})
          .is_null();
    } catch (const std::exception&) {
      return false;
    }
  });
  for (const char* const number : {"0", "1", "2"})
    EXPECT_EQ(std::filesystem::read_symlink(fmt::format("/proc/{}/fd/{}", proxy.pid(), number)),
              "/dev/null")
        << number;
  proxy.terminate();
}

TEST_F(Attacks, N02_NoStreamLeavesTheCommandBehind) {
  int run = 0;
  for (const char* const streams : {"2>/dev/full >/dev/full", "2>&- >&-", "2> >(true) > >(true)"})
    for (const char* const end : {"DEL", "restart"}) {
      const auto pid_file = fmt::format("pid{}", ++run);
      test::Process holder{
          {"bash", "-c",
           fmt::format("exec {} --json --store {} lock deploy --lease 900ms --grace 50ms -- sh -c "
                       "'echo $$ > {}; exec sleep 600' {}",
                       test::built_path("sluice"), server_.url(), pid_file, streams)},
          {.directory = folder_.path(), .environment = {}, .output = {}}};
      wait_until([&](PlainClient&) { return read_file(folder_ / pid_file).ends_with('\n'); });
      if (std::string{end} == "DEL") {
        PlainClient{server_.port()}.command({"DEL", "deploy"});
      } else {
        server_.kill();
        server_.start();
      }
      EXPECT_EQ(holder.wait_for(20s), 76) << streams << ' ' << end;
      std::string pid = read_file(folder_ / pid_file);
      pid.pop_back();
      EXPECT_TRUE(has_ended(pid)) << streams << ' ' << end;
    }
}

TEST_F(Attacks, N02_NoFailureEndsByASignal) {
  const auto nobody = "redis://127.0.0.1:" + std::to_string(test::free_port());
  for (const char* const streams :
       {"2>/dev/full", "2>&-", "2> >(true)", ">/dev/full 2>/dev/full", ">&- 2>&-"}) {
    EXPECT_EQ(bash("sleep 0; exec $SLUICE nonsense " + std::string{streams}), 64) << streams;
    EXPECT_EQ(bash("exec $SLUICE --store " + nobody + " id " + streams), 69) << streams;
    EXPECT_EQ(bash("exec $SLUICE --store " + nobody + " lock x -n -- true " + streams), 69)
        << streams;
    EXPECT_EQ(bash("exec $SLUICE lock x -- nosuchcommand " + std::string{streams}), 127) << streams;
    EXPECT_EQ(bash("exec $SLUICE --json lock x -- sh -c 'exit 9' " + std::string{streams}), 9)
        << streams;
    EXPECT_LT(bash("exec $PROXY -c /nowhere.yml " + std::string{streams}), 128) << streams;
    EXPECT_LT(bash("exec $PROXY check -c /nowhere.yml " + std::string{streams}), 128) << streams;
  }
  EXPECT_EQ(bash("ulimit -f 0; exec $SLUICE --json lock x -- true > out"), 74) << "no SIGXFSZ";
  EXPECT_EQ(bash("exec $SLUICE lock x -- sh -c 'kill -PIPE $$' 2>&-"), 128 + SIGPIPE)
      << "the command has its own signals";
}

/// The lines of a file that are whole.
std::vector<std::string> whole_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
    lines.push_back(text.substr(at, end - at));
  return lines;
}

TEST_F(Attacks, N06_WhatWasTakenIsInTheOutputOrNamed) {
  EXPECT_EQ(bash("ulimit -f 1; exec $SLUICE number N -n 200 > numbers"), 74) << said_;
  const auto numbers = whole_lines(read_file(folder_ / "numbers"));
  ASSERT_EQ(static_cast<std::int64_t>(numbers.size()) + 1, taken("{N}:s"));
  EXPECT_EQ(numbers.front().substr(9), "0001");
  EXPECT_TRUE(
      says(fmt::format("{}{:04} was taken", numbers.back().substr(0, 9), numbers.size() + 1)))
      << said_;
  EXPECT_TRUE(says("File too large")) << said_;

  EXPECT_EQ(bash("exec $SLUICE number F >/dev/full"), 74);
  EXPECT_TRUE(says("0001 was taken, and is not in the output")) << said_;
  EXPECT_EQ(bash("exec $SLUICE id F >/dev/full"), 74);
  EXPECT_TRUE(says(" was taken, and is not in the output")) << said_;
  EXPECT_EQ(bash("$SLUICE sale create S --stock 5 --type S; exec $SLUICE sale buy S --buyer ann "
                 ">/dev/full"),
            74);
  EXPECT_TRUE(says("not written: admitted: order S")) << said_;
}

TEST_F(Attacks, N06_WhereNothingCanBeWrittenNothingIsTaken) {
  for (const char* const line :
       {"number Q >&-", "number Q <&- >&- 2>&-", "--json number Q >&-",
        "--json number Q >/dev/full", "id Q >&-", "--json id Q >/dev/full", "number Q 1</dev/null"})
    EXPECT_EQ(bash(std::string{"exec $SLUICE "} + line), 74) << line;
  EXPECT_FALSE(exists("{Q}:s"));
  EXPECT_FALSE(exists("Q"));
}

TEST_F(Attacks, N10_WhatWasTakenBeforeAFailureIsTold) {
  auto drawing =
      start_on_redis({"--json", "number", "M", "--digits", "9", "-n", "1000000"}, "drawn");
  wait_until([&](PlainClient&) { return taken("{M}:s") > 50; });
  PlainClient{server_.port()}.command(
      {"EVAL", "redis.call('rename', KEYS[1], KEYS[2]) return redis.call('set', KEYS[1], 'other')",
       "2", "{M}:s", "{M}:was"});
  EXPECT_EQ(drawing.wait_for(20s), 65) << read_file(folder_ / "drawn").substr(0, 200);
  const auto lines = whole_lines(read_file(folder_ / "drawn"));
  ASSERT_EQ(lines.size(), 2U);
  const bool first = lines[0].starts_with('{');
  const auto said = nlohmann::json::parse(lines[first ? 0 : 1]);
  EXPECT_FALSE(said.at("ok").get<bool>());
  EXPECT_NE(said.at("error").get<std::string>().find("WRONGTYPE"), std::string::npos);
  ASSERT_EQ(static_cast<std::int64_t>(said.at("numbers").size()), taken("{M}:was"));
  EXPECT_TRUE(said.at("numbers").back().get<std::string>().ends_with(
      fmt::format("{:09}", said.at("numbers").size())));
}

TEST_F(Attacks, N10_AFullDayTellsWhatItGave) {
  const Ran ran = run_on_redis({"--json", "number", "X", "--digits", "1", "-n", "12"});
  EXPECT_EQ(ran.status, 75) << ran.output;
  const auto said = nlohmann::json::parse(ran.output.substr(0, ran.output.find('\n')));
  EXPECT_EQ(said.at("numbers").size(), 9U);
  EXPECT_EQ(said.at("full").get<std::string>().size(), 8U);
}

TEST_F(Attacks, N10_ANameThatIsNoTextBurnsNoNumber) {
  EXPECT_EQ(bash("exec $SLUICE --json number $'\\xff'"), 64) << said_;
  EXPECT_EQ(bash("exec $SLUICE --json number MT --prefix $'\\xff'"), 64) << said_;
  const Value keys = PlainClient{server_.port()}.command({"KEYS", "*"});
  EXPECT_TRUE(keys.as_items().empty());
  EXPECT_EQ(bash("exec $SLUICE number $'\\xff'"), 0) << said_;
  EXPECT_TRUE(said_.starts_with('\xff')) << said_;
}

TEST_F(Attacks, N11_NoPasswordIsShown) {
  for (const CommandWords& words :
       {CommandWords{"--store", "redis://user:pa/hush@h", "id"},
        CommandWords{"--store", "redis://u:63/hush@h", "id"},
        CommandWords{"doctor", "redis://u:hush/x@h"},
        CommandWords{"doctor", "redis://u:hush@127.0.0.1:1"}, CommandWords{"doctor", "u:hush@h"},
        CommandWords{"redis://u:hush@h", "id"},
        CommandWords{"lock", "x", "--quorum", "redis://u:a/hush@h,redis://u:hush@h:x", "--",
                     "true"},
        CommandWords{"id", "x", "redis://u:hush@h"}}) {
    const Ran ran = run(words);
    EXPECT_NE(ran.status, 0);
    EXPECT_FALSE(ran.says("hush")) << ran.output;
  }
}

TEST_F(Attacks, N12_WhatIsWrongIsSaid) {
  const auto port = std::to_string(server_.port());
  const Ran evil = run({"--store", "redis://127.0.0.1%00evil:" + port, "id"});
  EXPECT_EQ(evil.status, 64) << evil.output;
  const Ran name = run({"--store", server_.url() + "?name=a%20b", "id"});
  EXPECT_EQ(name.status, 64) << name.output;
  EXPECT_TRUE(name.says("no blanks")) << name.output;
  ASSERT_EQ(run_on_redis({"sale", "create", "s", "--stock", "1", "--type", "S"}).status, 0);
  for (const char* const id : {"x", "1", "-", "1-", "99999999999999999999-1", "1-1"}) {
    const Ran dead = run_on_redis({"sale", "dead", "s", "--revive", id});
    EXPECT_EQ(dead.status, 75) << id << dead.output;
  }
}

TEST_F(Attacks, N12_ADemoThatFailsLeavesNoKeys) {
  for (const char* const orders : {"sqlite:/dev/full", "sqlite:/nowhere/orders.db"}) {
    const Ran ran = run_on_redis({"demo", "--buyers", "5", "--stock", "2", "--orders", orders});
    EXPECT_NE(ran.status, 0) << ran.output;
    EXPECT_LT(ran.status, 128) << ran.output;
  }
  const Value keys = PlainClient{server_.port()}.command({"KEYS", "*-demo-*"});
  EXPECT_TRUE(keys.as_items().empty()) << to_string(keys);
}

/// A tz database in which Europe/Berlin is so far from UTC, always.
void make_zone(const std::filesystem::path& folder, std::int32_t seconds) {
  std::filesystem::create_directories(folder / "Europe");
  std::string file = "TZif" + std::string(16, '\0');
  const auto number = [&file](std::int32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8)
      file += static_cast<char>((static_cast<std::uint32_t>(value) >> shift) & 0xff);
  };
  for (const std::int32_t count : {0, 0, 0, 0, 1, 4}) number(count);
  number(seconds);
  file += std::string(2, '\0') + std::string{"LMT\0", 4};
  std::ofstream{folder / "Europe/Berlin", std::ios::binary} << file;
}

TEST_F(Attacks, N05_TwoTzDatabasesAroundMidnightGiveNoSmallerNumber) {
  const auto today = static_cast<std::int32_t>(std::time(nullptr) % 86'400);
  const std::int32_t day = today < 43'200 ? 0 : 86'400;
  make_zone(folder_ / "early", day - today + 3600);  // an hour after midnight
  make_zone(folder_ / "late", day - today - 3600);   // an hour before
  const auto draw = [&](const char* tz_database) {
    const auto file = folder_ / fmt::format("drawn{}", ++runs_);
    test::Process process{
        {test::built_path("sluice"), "--store", patient_url(), "number", "MT", "--zone",
         "Europe/Berlin"},
        {.directory = {}, .environment = {{"TZDIR", folder_ / tz_database}}, .output = file}};
    EXPECT_EQ(process.wait(), 0) << read_file(file);
    return read_file(file);
  };
  const std::string before = draw("late");
  EXPECT_TRUE(before.ends_with("0001\n")) << before;
  std::string last = draw("early");
  EXPECT_GT(last, before);
  EXPECT_TRUE(last.ends_with("0001\n")) << "a new day";
  for (const char* const tz_database : {"late", "early", "late", "late", "early"}) {
    const std::string next = draw(tz_database);
    EXPECT_GT(next, last) << tz_database;
    last = next;
  }
  EXPECT_TRUE(last.ends_with("0006\n")) << last;
}

TEST_F(Attacks, E08_ASeriesThatAGlitchHasThrownIntoTheFutureIsRepaired) {
  std::string number = run_on_redis({"number", "MT", "-n", "2"}).last_line();
  const std::string today = number.substr(2, 8);
  const Ran sound = run_on_redis({"number", "MT", "repair"});
  EXPECT_EQ(sound.status, 0) << sound.output;
  EXPECT_TRUE(sound.says("needs no repair")) << sound.output;
  PlainClient side{server_.port()};
  side.command(
      {"HSET", "{MT}:s", "last", "4102358400000000", "day", "20991231", "taken", "7", today, "2"});
  EXPECT_EQ(run_on_redis({"number", "MT"}).last_line(), "MT209912310008");

  const Ran look = run_on_redis({"number", "MT", "repair", "--dry-run"});
  EXPECT_EQ(look.status, 0) << look.output;
  EXPECT_TRUE(look.says("would go back to " + today + "; the next number is MT" + today + "0003"))
      << look.output;
  const Ran fewer = run_on_redis({"number", "MT", "repair", "--given", "1"});
  EXPECT_EQ(fewer.status, 75) << fewer.output;
  EXPECT_EQ(side.command({"EXISTS", "{MT}:repairs"}).as_integer(), 0);
  const Ran done = run_on_redis({"--json", "number", "MT", "repair", "--why", "NTP of db1"});
  EXPECT_EQ(done.status, 0) << done.output;
  EXPECT_EQ(done.json().at("outcome"), "repaired");
  EXPECT_EQ(done.json().at("last_day"), "20991231");
  EXPECT_EQ(done.json().at("given"), 2);
  EXPECT_EQ(run_on_redis({"number", "MT"}).last_line(), "MT" + today + "0003");
  const auto journal = to_string(side.command({"XRANGE", "{MT}:repairs", "-", "+"}));
  EXPECT_NE(journal.find("NTP of db1"), std::string::npos) << journal;
  const Ran nobody = run_on_redis({"number", "nobody", "repair"});
  EXPECT_EQ(nobody.status, 75) << nobody.output;

  const Ran full = run_on_redis({"number", "MT", "repair", "--given", "9999"});
  EXPECT_EQ(full.status, 0) << full.output;
  EXPECT_TRUE(full.says("It counts 9999 numbers of " + today + "; " + today + " is full"))
      << full.output;
  EXPECT_FALSE(full.says("went back")) << full.output;
}

}  // namespace
}  // namespace sluice
