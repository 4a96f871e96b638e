/// `sluice bloom` on a real server.
#include <fstream>

#include "cli/program.hpp"

namespace sluice {
namespace {

using test::Ran;

class BloomCommand : public test::Program {
 protected:
  /// With these lines at its standard input.
  Ran run_with(const std::string& lines, const std::string& arguments) {
    std::ofstream{folder_ / "lines", std::ios::binary} << lines;
    const auto output = folder_ / ("piped" + std::to_string(++runs_));
    const std::string line = test::built_path("sluice") + " --store '" + patient_url() + "' " +
                             arguments + " < " + (folder_ / "lines").string();
    const int status = test::Process{
        {"/bin/sh", "-c", line},
        {.directory = folder_.path(),
         .environment = {},
         .output = output}}.wait();
    return {status, test::read_file(output)};
  }
};

TEST_F(BloomCommand, IsMadeFilledAndAsked) {
  const Ran none = run_on_redis({"bloom", "contains", "users", "anna"});
  EXPECT_EQ(none.status, 69) << none.output;
  EXPECT_TRUE(none.says("sluice bloom create")) << none.output;

  const Ran made =
      run_on_redis({"bloom", "create", "users", "--expected", "100", "--error-rate", "0.03"});
  EXPECT_EQ(made.status, 0) << made.output;
  EXPECT_TRUE(made.says("729 bits, 5 hashes")) << made.output;
  EXPECT_EQ(run_on_redis({"bloom", "create", "users", "-n", "100"}).status, 0);
  EXPECT_EQ(run_on_redis({"bloom", "create", "users", "-n", "200"}).status, 78);

  const auto added =
      run_on_redis({"--json", "bloom", "add", "users", "anna", "bert", "anna"}).json();
  EXPECT_EQ(added.at("keys"), 3);
  EXPECT_EQ(added.at("new"), 2);
  EXPECT_EQ(run_on_redis({"bloom", "contains", "users", "anna"}).status, 0);
  const Ran absent = run_on_redis({"bloom", "contains", "users", "zoe"});
  EXPECT_EQ(absent.status, 1);
  EXPECT_FALSE(absent.says("zoe")) << absent.output;
  const auto info = run_on_redis({"--json", "bloom", "info", "users"}).json();
  EXPECT_EQ(info.at("keys"), 2);
  EXPECT_EQ(info.at("links").at(0).at("bits"), 729);
}

TEST_F(BloomCommand, ReadsKeysFromStandardInputInBulk) {
  run_on_redis({"bloom", "create", "users", "-n", "50000", "--error-rate", "0.0001"});
  std::string lines;
  for (int i = 0; i < 25'000; ++i) lines += std::to_string(i) + '\n';
  lines += "last";  // without its end
  const Ran added = run_with(lines, "--json bloom add users");
  EXPECT_EQ(added.status, 0) << added.output;
  EXPECT_EQ(added.json().at("keys"), 25'001);
  EXPECT_GT(added.json().at("new"), 24'990);
  const Ran asked = run_with("7\nnobody\nlast\n", "--json bloom contains users");
  EXPECT_EQ(asked.json().at("keys"), (std::vector<std::string>{"7", "last"}));
  EXPECT_EQ(asked.json().at("asked"), 3);
  const Ran absent = run_with("7\nnobody\nlast\n", "bloom contains users --absent");
  EXPECT_EQ(absent.status, 0);
  EXPECT_TRUE(absent.says("nobody\n")) << absent.output;
  EXPECT_FALSE(absent.says("last")) << absent.output;
  const Ran wrong = run_with("1\nx\n", "bloom add users --codec kryo5 --type int");
  EXPECT_EQ(wrong.status, 64) << wrong.output;
  EXPECT_TRUE(wrong.says("key 2: 'x' is no int")) << wrong.output;
}

/// The output of a command, its errors with it, is what it was asked for: a line that moves is for
/// those who wait.
TEST_F(BloomCommand, ShowsProgressForManyKeysOfStandardInputAlone) {
  run_on_redis({"bloom", "create", "users", "-n", "20000"});
  run_on_redis({"bloom", "add", "users", "anna"});
  EXPECT_EQ(run_on_redis({"bloom", "contains", "users", "anna"}).output, "anna\n");
  EXPECT_EQ(run_with("anna\n", "bloom contains users").output, "anna\n");
  std::string lines;
  for (int i = 0; i < 10'001; ++i) lines += "anna\n";
  const Ran many = run_with(lines, "bloom contains users");
  EXPECT_TRUE(many.says("asked for 10000 keys, ")) << many.output.substr(0, 1000);
}

TEST_F(BloomCommand, IsRebuiltSavedAndLoaded) {
  run_on_redis({"bloom", "create", "users", "-n", "100"});
  run_on_redis({"bloom", "add", "users", "old"});
  const Ran rebuilt = run_with("new\n", "bloom rebuild users --expected 1000");
  EXPECT_EQ(rebuilt.status, 0) << rebuilt.output;
  EXPECT_EQ(run_on_redis({"bloom", "contains", "users", "new"}).status, 0);
  EXPECT_EQ(run_on_redis({"bloom", "contains", "users", "old"}).status, 1);
  const std::string file = (folder_ / "users.bloom").string();
  EXPECT_EQ(run_on_redis({"bloom", "save", "users", file}).status, 0);
  EXPECT_EQ(run_on_redis({"bloom", "load", "copy", file}).status, 0);
  EXPECT_EQ(run_on_redis({"bloom", "contains", "copy", "new"}).status, 0);
  std::ofstream{file, std::ios::binary | std::ios::app} << "x";
  EXPECT_EQ(run_on_redis({"bloom", "load", "copy", file}).status, 65);
}

TEST_F(BloomCommand, IsNotReplacedByTheKeysOfASourceThatFailed) {
  run_on_redis({"bloom", "create", "users", "-n", "100"});
  run_on_redis({"bloom", "add", "users", "anna"});
  const Ran empty = run_with("", "bloom rebuild users --expected 100");
  EXPECT_EQ(empty.status, 65) << empty.output;
  EXPECT_TRUE(empty.says("0 keys came")) << empty.output;
  const Ran half = run_with("bert\n", "bloom rebuild users --expected 100 --at-least 2");
  EXPECT_EQ(half.status, 65) << half.output;
  EXPECT_TRUE(half.says("stays as it was")) << half.output;
  EXPECT_EQ(run_on_redis({"bloom", "contains", "users", "anna"}).status, 0);

  EXPECT_EQ(run_with("bert\nzoe\n", "bloom rebuild users --expected 100 --at-least 2").status, 0);
  EXPECT_EQ(run_on_redis({"bloom", "contains", "users", "zoe"}).status, 0);
  EXPECT_EQ(run_with("", "bloom rebuild users --expected 100 --at-least 0").status, 0);
  EXPECT_EQ(run_on_redis({"bloom", "contains", "users", "zoe"}).status, 1);
}

}  // namespace
}  // namespace sluice
