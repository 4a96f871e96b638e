/// `sluice proxy` becomes the program sluice-proxy, wherever it lies.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "proxy/support/listening.hpp"
#include "support/paths.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace sluice::test {
namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;
using Environment = std::vector<std::pair<std::string, std::string>>;

class SluiceProxyTest : public testing::Test {
 protected:
  SluiceProxyTest() {
    std::ofstream{folder_ / "good.yml"} << "alpha:\n  listen: 127.0.0.1:1\n  timeout: 400\n"
                                           "  servers:\n   - 127.0.0.1:2:1\n";
    std::ofstream{folder_ / "bad.yml"} << "alpha:\n  lisen: 127.0.0.1:1\n";
  }
  std::pair<int, std::string> run(const Lines& words, const Environment& environment = {}) {
    fs::remove(output());
    Process process{words,
                    {.directory = folder_.path(), .environment = environment, .output = output()}};
    const int code = process.wait();
    return {code, text_of(output())};
  }
  fs::path output() const { return folder_ / "output"; }

  TempDir folder_;
};

TEST_F(SluiceProxyTest, ItsCommandsAreThoseOfSluice) {
  const auto sluice = built_path("sluice"), proxy = built_path("sluice-proxy");
  const auto markdown = run({proxy, "describe", "--markdown"});
  EXPECT_EQ(markdown.first, 0);
  EXPECT_EQ(run({sluice, "proxy", "describe", "--markdown"}), markdown);
  EXPECT_EQ(run({sluice, "proxy", "explain", "--nonsense"}).first, 64);
}

TEST_F(SluiceProxyTest, TheReferenceOfItsCommandsIsCurrent) {
  EXPECT_EQ(text_of(source_path("docs/proxy_commands.md")),
            run({built_path("sluice-proxy"), "help", "--markdown"}).second)
      << "write it anew: build/release/sluice-proxy help --markdown > docs/proxy_commands.md";
}

TEST_F(SluiceProxyTest, JsonIsUnderstoodBeforeAndBehindIt) {
  const auto sluice = built_path("sluice");
  const auto before = run({sluice, "--json", "proxy", "explain", "-c", "good.yml", "key"});
  EXPECT_EQ(before.first, 0) << before.second;
  EXPECT_EQ(nlohmann::json::parse(before.second).at(0).at("server"), "127.0.0.1:2");
  EXPECT_EQ(run({sluice, "proxy", "explain", "-c", "good.yml", "key", "--json"}), before);
}

TEST_F(SluiceProxyTest, U34_ACheckThatFailsExitsWith1) {
  const auto sluice = built_path("sluice");
  EXPECT_EQ(run({sluice, "proxy", "check", "-c", "good.yml"}).first, 0);
  const auto [code, text] = run({sluice, "proxy", "check", "-c", "bad.yml"});
  EXPECT_EQ(code, 1);
  EXPECT_NE(text.find("did you mean 'listen'?"), std::string::npos) << text;
  EXPECT_EQ(run({sluice, "proxy", "lint", "-c", "good.yml"}).first, 0);
}

TEST_F(SluiceProxyTest, X15_CheckAndLintRefuseWhatLetsNobodyIn) {
  const std::string pool =
      "alpha:\n  listen: 127.0.0.1:1\n  redis: true\n  servers:\n   - 127.0.0.1:2:1\n";
  const struct {
    std::string lines, said;
  } rows[] = {{"  compat: strict\n  users: [{name: u, password: p}]\n", "AUTH takes one password"},
              {"  allow: [flushal]\n", "'flushal' in allow"},
              {"  allow: [shutdown]\n", "'shutdown' in allow"}};
  for (const auto& row : rows) {
    std::ofstream{folder_ / "vain.yml"} << pool << row.lines;
    for (const auto* const verb : {"check", "lint"}) {
      const auto [code, text] = run({built_path("sluice"), "proxy", verb, "-c", "vain.yml"});
      EXPECT_NE(code, 0) << verb;
      EXPECT_NE(text.find(row.said), std::string::npos) << verb << ": " << text;
    }
  }
}

TEST_F(SluiceProxyTest, ALinkNamedNutcrackerIsOne) {
  const auto link = folder_ / "nutcracker";
  for (const auto* const program : {"sluice", "sluice-proxy"}) {
    fs::remove(link);
    fs::create_symlink(built_path(program), link);
    const auto [code, text] = run({link.string(), "-t", "-c", "good.yml"});
    EXPECT_EQ(code, 0) << program;
    EXPECT_EQ(text, "nutcracker: configuration file 'good.yml' syntax is ok\n") << program;
  }
}

TEST_F(SluiceProxyTest, IsFoundInLibexecOrOnPathAndElseItSaysWhatToDo) {
  const Environment nowhere{{"PATH", "/nonexistent"}};
  fs::create_directories(folder_ / "bin");
  const auto sluice = (folder_ / "bin" / "sluice").string();
  fs::copy_file(built_path("sluice"), sluice);
  const auto [code, text] = run({sluice, "proxy", "-V"}, nowhere);
  EXPECT_EQ(code, 69);
  EXPECT_NE(text.find("install it, or build it with `./run proxy`"), std::string::npos) << text;

  const auto on_path = run({sluice, "proxy", "-V"}, {{"PATH", built_path()}});
  EXPECT_EQ(on_path.first, 0) << on_path.second;
  fs::create_directories(folder_ / "libexec" / "sluice");
  fs::create_symlink(built_path("sluice-proxy"), folder_ / "libexec" / "sluice" / "sluice-proxy");
  EXPECT_EQ(run({sluice, "proxy", "-V"}, nowhere), on_path);
}

}  // namespace
}  // namespace sluice::test
