#include "proxy/process/options.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace sluice::proxy::process {
namespace {

using Words = std::vector<std::string>;

CommandLine parse(const Words& words) {
  std::vector<const char*> argv{"nutcracker"};
  for (const auto& word : words) argv.push_back(word.c_str());
  argv.push_back(nullptr);
  return parse_command_line(static_cast<int>(argv.size()) - 1, argv.data(), "9.9");
}

/// What the real one exits with and writes.
struct Real {
  int exit_code;
  std::string text;
};
Real run_nutcracker(Words words) {
  const test::TempDir directory;
  words.insert(words.begin(), "nutcracker");
  test::Process process{
      words, {.directory = directory.path(), .environment = {}, .output = directory / "out"}};
  const int code = process.wait();
  std::ifstream file{directory / "out", std::ios::binary};
  return {code, {std::istreambuf_iterator<char>{file}, {}}};
}

void replace(std::string& text, std::string_view what, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
}

/// As ours says it: the name and version, the defaults that Debian's build or we set otherwise, and
/// without the carriage returns of its usage.
std::string in_our_words(std::string text) {
  replace(text, "This is nutcracker-0.5.0", "This is nutcracker-0.5.0 as sluice-9.9");
  replace(text, "/var/log/nutcracker/nutcracker.log", "stderr");
  replace(text, "/etc/nutcracker/nutcracker.yml", "conf/nutcracker.yml");
  replace(text, "/run/nutcracker/nutcracker.pid", "off");
  replace(text, "0.0.0.0", "127.0.0.1");
  replace(text, "\r", "");
  return text;
}

/// Each ends at once, whether understood or refused.
const std::vector<Words> lines_that_end{
    {"-h"},
    {"-V"},
    {"--help"},
    {"--version"},
    {"-hV"},
    {"--vers"},
    {"-V", "extra"},
    {"-x"},
    {"-?"},
    {"--foo"},
    {"--foo=1"},
    {"--help=1"},
    {"--verbose"},
    {"--stats-p"},
    {"--stats"},
    {"-v"},
    {"-v", "abc"},
    {"-v", "-1"},
    {"-v", ""},
    {"-v", "5x"},
    {"-v12", "-V"},
    {"-v", "+5"},
    {"-s", "0"},
    {"-s", "65536"},
    {"-s", "abc"},
    {"-s", "65535", "-V"},
    {"-s"},
    {"-i"},
    {"-i", "abc"},
    {"-i", "-5"},
    {"-i", "0", "-V"},
    {"-m"},
    {"-m", "abc"},
    {"-m", "0"},
    {"-m", "511"},
    {"-m", "16777217"},
    {"-m", "16777216", "-V"},
    {"-a"},
    {"-o"},
    {"-c"},
    {"-p"},
    {"-V", "-x"},
    {"-h", "-s", "0"},
    {"--mbuf-size=511"},
    {"--conf-file"},
    {"-VtdD", "-q"},
    {"extra", "-V"},
    {"--", "-V", "-h"},
    {"-V", "--", "-x"},
};

TEST(Options, EndAsTheRealNutcrackerDoes) {
  for (const auto& words : lines_that_end) {
    if (words.front() == "--") continue;  // it would run
    std::string shown;
    for (const auto& word : words) shown += word + ' ';
    const auto real = run_nutcracker(words);
    const auto ours = parse(words);
    ASSERT_TRUE(ours.exit_code.has_value()) << shown;
    EXPECT_EQ(*ours.exit_code, real.exit_code) << shown;
    EXPECT_EQ(ours.text, in_our_words(real.text)) << shown;
  }
}

TEST(Options, DescribeStatsBeginsWithTheRealOnesText) {
  for (const Words& words :
       {Words{"-D"}, Words{"--describe-stats"}, Words{"-D", "-t"}, Words{"-hD"}}) {
    const auto real = run_nutcracker(words);
    const auto ours = parse(words);
    EXPECT_EQ(ours.exit_code, real.exit_code);
    EXPECT_TRUE(ours.text.starts_with(in_our_words(real.text))) << ours.text;
    EXPECT_NE(ours.text.find("late_replies"), std::string::npos);
  }
}

TEST(Options, TestConfAnswersAsTheRealOne) {
  const test::TempDir directory;
  const auto good = (directory / "good.yml").string();
  std::ofstream{good} << "a:\n  listen: 127.0.0.1:1\n  servers:\n   - 127.0.0.1:2:1\n";
  const auto bad = (directory / "no such.yml").string();
  for (const auto& [file, ok] : {std::pair{good, true}, std::pair{bad, false}}) {
    const auto real = run_nutcracker({"-t", "-c", file});
    EXPECT_EQ(real.exit_code, ok ? 0 : 1);
    EXPECT_EQ(test_conf_text(file, ok), real.text);
    const auto ours = parse({"-t", "-c", file});
    EXPECT_FALSE(ours.exit_code.has_value());
    EXPECT_TRUE(ours.options.test_conf);
    EXPECT_EQ(ours.options.conf_file, file);
  }
}

TEST(Options, DefaultsAreNutcrackersButForTheAddress) {
  const auto line = parse({});
  EXPECT_FALSE(line.exit_code.has_value());
  EXPECT_EQ(line.options.log_level, 5);
  EXPECT_EQ(line.options.stats_port, 22222);
  EXPECT_EQ(line.options.stats_addr, "127.0.0.1");
  EXPECT_EQ(line.options.stats_interval, std::chrono::seconds{30});
  EXPECT_EQ(line.options.log_file, "");
  EXPECT_EQ(line.options.pid_file, "");
  EXPECT_FALSE(line.options.daemonize);
}

TEST(Options, EveryFlagIsReadInBothForms) {
  const auto check = [](const Options& o) {
    EXPECT_TRUE(o.daemonize);
    EXPECT_EQ(o.log_level, 11);
    EXPECT_EQ(o.log_file, "l");
    EXPECT_EQ(o.conf_file, "c");
    EXPECT_EQ(o.stats_port, 7);
    EXPECT_EQ(o.stats_addr, "::1");
    EXPECT_EQ(o.stats_interval, std::chrono::milliseconds{9});
    EXPECT_EQ(o.pid_file, "p");
    EXPECT_EQ(o.mbuf_size, 512u);
  };
  check(parse({"-d", "-v", "99", "-o", "l", "-c", "c", "-s", "7", "-a", "::1", "-i", "9", "-p", "p",
               "-m", "512"})
            .options);
  check(parse({"--daemonize", "--verbose=11", "--output=l", "--conf-file=c", "--stats-port=7",
               "--stats-addr=::1", "--stats-interval=9", "--pid-file=p", "--mbuf-size=512"})
            .options);
}

}  // namespace
}  // namespace sluice::proxy::process
