// `sluice engine` as a user runs it, beside a redis-server.
#include <fmt/format.h>

#include <optional>
#include <regex>

#include "cli/program.hpp"

namespace sluice::test {
namespace {

class EngineProgram : public Program {
 protected:
  /// Serves until it is told to end; its port.
  std::uint16_t serve(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"engine", "serve"});
    arguments.insert(arguments.end(), {"--listen", "127.0.0.1:0"});
    served_ = start(arguments, "served");
    const std::regex ready{R"(ready at 127\.0\.0\.1:(\d+))"};
    std::smatch found;
    std::string text;
    wait_until([&](PlainClient&) {
      text = read_file(folder_ / "served");
      return std::regex_search(text, found, ready);
    });
    return static_cast<std::uint16_t>(std::stoi(found[1]));
  }
  int end() {
    served_->signal(SIGTERM);
    const int status = served_->wait();
    served_.reset();
    return status;
  }
  std::string data() const { return (folder_ / "data").string(); }

  std::optional<Process> served_;
};

TEST_F(EngineProgram, AFolderIsServedCheckedDumpedAndLoaded) {
  const auto port = serve({data()});
  {
    PlainClient client{port};
    EXPECT_EQ(client.command({"SET", "a", "1"}).as_text(), "OK");
    EXPECT_EQ(client.command({"HSET", "h", "f", "v", "g", "w"}).as_integer(), 2);
    EXPECT_EQ(client.command({"RPUSH", "l", "x", "y"}).as_integer(), 2);
    EXPECT_EQ(client.command({"SET", "t", "1", "EX", "1000"}).as_text(), "OK");
    EXPECT_EQ(client.command({"SELECT", "3"}).as_text(), "OK");
    EXPECT_EQ(client.command({"INCR", "n"}).as_integer(), 1);
  }
  const auto taken = run({"engine", "check", data()});
  EXPECT_EQ(taken.status, 73) << taken.output;
  EXPECT_TRUE(taken.says("is in use by process")) << taken.output;
  EXPECT_EQ(run({"--store", "embedded:" + data(), "id", "x"}).status, 73);
  EXPECT_EQ(run({"--store", "embedded:" + data() + "?share=1", "number", "N"}).status, 0);
  EXPECT_EQ(end(), 0);

  const auto checked = run({"engine", "check", data(), "--json"});
  EXPECT_EQ(checked.status, 0) << checked.output;
  EXPECT_EQ(checked.json()["keys"], 6) << checked.output;
  const auto dumped = run({"engine", "dump", data()});
  std::ofstream{folder_ / "commands"} << dumped.output;
  const auto copy = (folder_ / "copy").string();
  const auto loaded = run({"engine", "load", copy, (folder_ / "commands").string()});
  EXPECT_EQ(loaded.status, 0) << loaded.output;
  EXPECT_EQ(run({"engine", "dump", copy}).output.size(), dumped.output.size());
  EXPECT_EQ(run({"engine", "compact", copy}).status, 0);
  EXPECT_EQ(run({"engine", "check", copy, "--json"}).json()["keys"], 6);

  // The same commands make the same keys of a real server.
  PlainClient{server_.port()}.command({"FLUSHALL"});
  PlainClient real{server_.port()};
  real.send(dumped.output);
  wait_until([](PlainClient& side) {
    side.command({"SELECT", "3"});
    const auto there = side.command({"EXISTS", "n"}).as_integer() == 1;
    side.command({"SELECT", "0"});
    return there;
  });
  wait_until([](PlainClient& side) { return side.command({"DBSIZE"}).as_integer() == 5; });
}

TEST_F(EngineProgram, WhatIsWrongIsSaid) {
  struct Row {
    std::vector<std::string> words;
    int status;
    std::string_view says;
  };
  std::ofstream{folder_ / "bad.conf"} << "port 7000\nsave 60 1\n";
  std::ofstream{folder_ / "torn"} << "*2\r\n$3\r\nDEL\r\n$1\r\nx";
  std::ofstream{folder_ / "none"} << "*1\r\n$x\r\n";
  std::ofstream{folder_ / "refused"} << "SET a\r\nSET a 1\r\n";
  const auto file = [this](std::string_view name) { return (folder_ / name).string(); };
  for (const auto& [words, status, says] : std::vector<Row>{
           {{"engine", "serve"}, 64, "--memory"},
           {{"engine", "serve", data(), "--memory"}, 64, "contradict"},
           {{"engine", "serve", "--config", file("bad.conf")}, 64, "bad.conf:2: "},
           {{"engine", "serve", "--config", file("nowhere")}, 64, "cannot be read"},
           {{"engine", "serve", data(), "--fsync", "later"}, 64, "always, everysec, never"},
           {{"engine", "serve", data(), "--listen", "nowhere"}, 64, "is no address"},
           {{"engine", "check", file("nowhere")}, 64, "there is no folder"},
           {{"engine", "load", data(), file("torn")}, 65, "not whole"},
           {{"engine", "load", data(), file("none")}, 65, "behind 0 commands"},
           {{"engine", "load", data(), file("refused")}, 65, "1 refused"}}) {
    const auto ran = run(words);
    EXPECT_EQ(ran.status, status) << ran.output;
    EXPECT_TRUE(ran.says(says)) << ran.output;
  }
}

}  // namespace
}  // namespace sluice::test
