// Commands of `sluice` that are programs of their own: each is found, and is used as the others
// are.
#include "cli/programs.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/comes_true.hpp"
#include "support/paths.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;
using Environment = std::vector<std::pair<std::string, std::string>>;

std::string text_of(const fs::path& path) {
  std::ifstream file{path};
  return {std::istreambuf_iterator<char>{file}, {}};
}

struct Ran {
  int status;
  std::string output;  ///< stdout and stderr

  bool says(std::string_view text) const { return output.contains(text); }
};

class Programs : public testing::Test {
 protected:
  Ran run_program(const Words& words, const Environment& environment = {}) {
    const auto output = folder_ / fmt::format("output{}", ++runs_);
    const int status = test::Process{
        words,
        {.directory = folder_.path(),
         .environment = environment,
         .output = output}}.wait();
    return {status, text_of(output)};
  }
  Ran run(Words words) {
    words.insert(words.begin(), test::built_path("sluice"));
    return run_program(words);
  }
  static bool knows_the_line(const OtherProgram& other) {
    return other.line == OtherProgram::Line::as_it_stands;
  }

  test::TempDir folder_;
  int runs_ = 0;
};

TEST_F(Programs, EachExplainsItself) {
  EXPECT_EQ(other_programs().size(), 8U);
  for (const auto& other : other_programs()) {
    const std::string name{other.command};
    for (const auto& words :
         {Words{name, "--help"}, Words{"help", name}, Words{"--json", name, "--help"}}) {
      const auto ran = run(words);
      EXPECT_EQ(ran.status, 0) << ran.output;
      EXPECT_TRUE(ran.output.starts_with("Usage: sluice " + name)) << ran.output;
    }
    EXPECT_TRUE(run({"help", "--man", name}).says(fmt::format("sluice\\-{}", name)));
    EXPECT_TRUE(run({"--help"}).says(fmt::format("\n  {} ", name)));
    const auto section = run({"help", "--markdown", name});
    EXPECT_EQ(section.status, 0);
    EXPECT_TRUE(section.says(fmt::format("# sluice {}\n", name)) ||
                section.says(fmt::format("`sluice {}`\n", name)))
        << section.output;
  }
}

TEST_F(Programs, EachCompletesItsLines) {
  for (const auto& [command, option] : {std::pair{"proxy", "--json"},
                                        {"serve", "--sales"},
                                        {"demo", "--buyers"},
                                        {"bench", "--threads"},
                                        {"loadtest", "--sale"},
                                        {"doctor", "--store"},
                                        {"explain", "--verbose"}}) {
    EXPECT_TRUE(run({"__complete", command}).output.starts_with(fmt::format("{}\t", command)));
    EXPECT_TRUE(run({"__complete", command, "--"}).says(fmt::format("{}\t", option))) << command;
    EXPECT_TRUE(run({"__complete", "--json", command, option}).says(fmt::format("{}\t", option)));
  }
}

TEST_F(Programs, OptionsOfSluiceStandBeforeTheCommandOrBehindIt) {
  const auto found = run({"--store", "embedded:", "--json", "explain", "K"});
  EXPECT_EQ(found.status, 0) << found.output;
  EXPECT_TRUE(found.says(R"("key":"K")")) << found.output;
  for (const auto& words : {Words{"explain", "K", "--json", "--store", "embedded:"},
                            Words{"--json", "-v", "--store=embedded:", "explain", "K"},
                            Words{"--stor", "embedded:", "--js", "explain", "K"}})
    EXPECT_EQ(run(words).output, found.output);
  EXPECT_TRUE(run({"--store", "embedded:", "explain", "help"}).says("help"))
      << "a key may have any name";
}

TEST_F(Programs, WhatIsWrongIsSaidAsEverywhere) {
  for (const auto& other : other_programs()) {
    if (!knows_the_line(other)) continue;
    const std::string name{other.command};
    const auto ran = run({name, "--nonsense"});
    EXPECT_EQ(ran.status, 64);
    EXPECT_EQ(ran.output,
              fmt::format("sluice: unknown option '--nonsense' (see 'sluice {} --help')\n", name));
    EXPECT_EQ(run({"--nonsense", name}).status, 64);
  }
  EXPECT_EQ(run({"--verb", "proxy"}).status, 64) << "not nothing, and 0";
}

TEST_F(Programs, TheDemoKeepsItsOrdersInSqlite) {
  const auto ran = run({"demo", "--orders", "postgresql://shop@127.0.0.1/shop"});
  EXPECT_EQ(ran.status, 64) << ran.output;
  EXPECT_TRUE(ran.says("sqlite:/path")) << ran.output;
}

/// A `sluice` that has no other program beside it.
class MovedSluice : public Programs {
 protected:
  MovedSluice() {
    fs::create_directories(folder_ / "bin");
    fs::copy_file(test::built_path("sluice"), sluice());
  }
  std::string sluice() const { return (folder_ / "bin" / "sluice").string(); }
  Ran run_moved(std::string_view command, const std::string& path) {
    return run_program({sluice(), std::string{command}, "--help"}, {{"PATH", path}});
  }
};

TEST_F(MovedSluice, SaysOfEachWhatToDoWhereItIsNot) {
  for (const auto& other : other_programs()) {
    const auto ran = run_moved(other.command, "/nonexistent");
    EXPECT_EQ(ran.status, 69);
    for (const auto& said : {std::string{other.file}, fmt::format("`./run {}`", other.command),
                             fmt::format("`cmake --build BUILD --target {}`", other.target)})
      EXPECT_TRUE(ran.says(said)) << ran.output;
  }
}

TEST_F(MovedSluice, FindsEachOnPathAndInLibexec) {
  const auto libexec = folder_ / "libexec" / "sluice";
  fs::create_directories(libexec);
  for (const auto& other : other_programs()) {
    const auto on_path = run_moved(other.command, test::built_path());
    EXPECT_EQ(on_path.status, 0) << on_path.output;
    if (!fs::exists(libexec / other.file))
      fs::copy_file(test::built_path(other.file), libexec / other.file);
    EXPECT_EQ(run_moved(other.command, "/nonexistent").output, on_path.output);
  }
}

/// As they are installed: those that people start in bin, the others in libexec.
TEST_F(MovedSluice, TheDemoFindsWhatServesAndWhatBuys) {
  const auto libexec = folder_ / "libexec" / "sluice";
  fs::create_directories(libexec);
  const auto put = [&](const char* file, const fs::path& folder) {
    fs::copy_file(test::built_path(file), folder / file);
  };
  put("sluice-demo", libexec);
  const auto demo = [&] {
    return run_program({sluice(), "demo", "--http", "--buyers", "30", "--stock", "5"},
                       {{"PATH", "/nonexistent"}});
  };
  auto ran = demo();
  EXPECT_EQ(ran.status, 70) << ran.output;
  EXPECT_TRUE(ran.says("`./run serve`")) << ran.output;
  put("sluice-serve", folder_ / "bin");
  ran = demo();
  EXPECT_EQ(ran.status, 70) << ran.output;
  EXPECT_TRUE(ran.says("`./run loadtest`")) << ran.output;
  put("sluice-loadtest", libexec);
  ran = demo();
  EXPECT_EQ(ran.status, 0) << ran.output;
}

TEST_F(Programs, NU17_ADemoThatIsInterruptedLeavesNothingBehind) {
  const auto places = folder_ / "tmp";
  fs::create_directories(places);
  for (const int signal : {SIGINT, SIGTERM}) {
    test::Process demo{{test::built_path("sluice"), "demo", "--buyers", "300000"},
                       {.directory = folder_.path(),
                        .environment = {{"TMPDIR", places.string()}},
                        .output = folder_ / "output"}};
    ASSERT_TRUE(test::comes_true([&] {
      return text_of(folder_ / "output").find("clicks answered") != std::string::npos ||
             (!fs::is_empty(places) &&
              fs::exists(fs::directory_iterator { places } -> path() / "store"));
    }));
    demo.signal(signal);
    EXPECT_EQ(demo.wait(), 128 + signal) << text_of(folder_ / "output");
    EXPECT_TRUE(fs::is_empty(places));
  }
}

TEST_F(Programs, EachWritesThePagesOfItsCommandsAlone) {
  for (const auto& other : other_programs()) {
    if (!knows_the_line(other)) continue;
    const auto pages = folder_ / fmt::format("pages of {}", other.command);
    EXPECT_EQ(run_program({test::built_path(other.file), "__pages", pages.string()}).status, 0);
    EXPECT_TRUE(fs::exists(pages / "man/man1" / fmt::format("sluice-{}.1", other.command)));
    for (const auto& page : fs::recursive_directory_iterator{pages})
      if (page.is_regular_file())
        EXPECT_TRUE(std::ranges::any_of(other_programs(), [&](const OtherProgram& one) {
          return one.file == other.file &&
                 page.path().filename() == fmt::format("sluice-{}.1", one.command);
        })) << page.path();
  }
}

TEST_F(Programs, RunBuildsEach) {
  const auto script = text_of(test::source_path("run"));
  for (const auto& other : other_programs()) {
    const auto own = other.file.substr(other.file.find('-') + 1);
    EXPECT_EQ(other.target, fmt::format("sluice_{}_program", own));
    const bool is_its_own = script.contains(fmt::format(" {} |", other.command)) ||
                            script.contains(fmt::format("| {}) own=$command", other.command));
    EXPECT_TRUE(is_its_own || script.contains(fmt::format(" {}) own={} ", other.command, own)))
        << other.command;
  }
}

}  // namespace
}  // namespace sluice::cli
