// What the pages tell operators to do to a store is done to a real one, and has the effect that the
// sentence beside it promises.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "docs_test/documents.hpp"
#include "docs_test/recipes.hpp"
#include "resp/command_table.hpp"
#include "support/paths.hpp"
#include "support/process.hpp"
#include "support/redis_server.hpp"
#include "support/temp_dir.hpp"

namespace sluice::docs {
namespace {

namespace fs = std::filesystem;

/// Pages that are written by the program, and those that tell what tests did.
bool is_left_out(const std::string& page) {
  static const std::regex others{R"((/decisions/|_commands|command_line|attacks|performance))"};
  return !page.contains("/docs/") || std::regex_search(page, others);
}

/// Whether it is to be tried: redis-cli with its words, a command that writes or sets up a server,
/// or one of the program's that changes something.
bool is_recipe(const std::string& text) {
  static const std::regex ours{
      R"(sluice (--store \S+ )?((number|id|lock|semaphore|latch) |(sale|room|bloom) \S+ )\S)"
      R"(|sluice engine move \S)"};
  if (text.contains("redis-cli ") ||
      std::regex_search(text, ours, std::regex_constants::match_continuous))
    return true;
  std::istringstream in{text};
  const std::vector<std::string> words{std::istream_iterator<std::string>{in}, {}};
  if (words.size() < 2 ||
      !std::ranges::all_of(words[0], [](char c) { return c >= 'A' && c <= 'Z'; }))
    return false;
  const std::vector<std::string_view> views{words.begin(), words.end()};
  const auto* const command = resp::find_command(views);
  return command && (command->has(resp::flag_write) || command->has(resp::flag_admin)) &&
         words.size() > (command->name.contains('|') ? 2U : 1U);
}

/// Commands without the comment behind them: of blocks, of lines set in by four spaces, of words in
/// backquotes. A block with redis-cli is one command.
std::set<std::string> commands_on(const fs::path& page) {
  static const std::regex comment{R"( +# .*$)"};
  std::set<std::string> found;
  const auto lines = read_lines(page);
  const auto take = [&](std::string text) {
    if (text.starts_with("$ ")) text.erase(0, 2);
    text = std::regex_replace(text, comment, "");
    if (is_recipe(text)) found.insert(std::move(text));
  };
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].starts_with("```")) {
      if (lines[i].starts_with("    ")) take(lines[i].substr(lines[i].find_first_not_of(' ')));
      for (const auto& text : quoted_words(lines[i])) take(text);
      continue;
    }
    std::string block;
    while (++i < lines.size() && !lines[i].starts_with("```"))
      block += (block.empty() ? "" : "\n") + lines[i];
    if (block.contains("redis-cli ")) {
      take(block);
    } else {
      std::istringstream text{block};
      for (std::string line; std::getline(text, line);) take(line);
    }
  }
  return found;
}

std::string with_words(std::string command, const std::string& words) {
  std::istringstream pairs{words};
  for (std::string pair; std::getline(pairs, pair, '|');) {
    const auto end = pair.find('=');
    const auto is_part = [&](std::size_t at) {  // of a longer word, as the N of INV
      return at < command.size() && std::isalnum(static_cast<unsigned char>(command[at])) &&
             std::isalnum(static_cast<unsigned char>(pair[0]));
    };
    auto at = command.find(pair.substr(0, end));
    while (at != command.npos && (is_part(at - 1) || is_part(at + end)))
      at = command.find(pair.substr(0, end), at + 1);
    if (at != command.npos) command.replace(at, end, pair.substr(end + 1));
  }
  return command;
}

/// As a line of shell: what is no program is told to redis-cli.
std::string shell_of(const Recipe& recipe) {
  const auto command = with_words(recipe.command, recipe.words);
  if (command.starts_with("sluice ") || command.starts_with("redis-cli ")) return command;
  return "redis-cli <<'END'\n" + command + "\nEND";
}

class Recipes : public testing::Test {
 protected:
  std::string shell(const std::string& script) {
    const auto output = folder_ / "output";
    fs::remove(output);
    const auto setting = fmt::format(
        "set -eu; PATH={}:$PATH PORT={}; export PORT SLUICE_STORE={}\n"
        "redis-cli() {{ command redis-cli -p $PORT \"$@\"; }}\n",
        test::built_path(), server_.port(), server_.url() + "'?timeout=30s&connect_timeout=30s'");
    test::Process bash{{"bash", "-c", setting + script},
                       {.directory = folder_.path(), .environment = {}, .output = output}};
    const int status = bash.wait();
    auto printed = fmt::format("{}", fmt::join(read_lines(output), "\n")) + "\n";
    EXPECT_EQ(status, 0) << script << '\n' << printed;
    return printed;
  }

  test::TempDir folder_;
  test::RedisServer server_;
};

TEST_F(Recipes, HaveTheEffectThatThePagePromises) {
  for (const auto& recipe : recipes) {
    const auto printed = shell(recipe.before + "\n" + shell_of(recipe) + "\n" + recipe.effect);
    EXPECT_TRUE(("\n" + printed).contains(recipe.shows)) << recipe.command << '\n' << printed;
  }
}

/// A zone in which it is about noon, so that no day begins during a test.
std::string zone_at_noon() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto hour = std::chrono::duration_cast<std::chrono::hours>(now).count() % 24;
  return hour == 12 ? "UTC" : fmt::format("Etc/GMT{:+}", hour - 12);
}

constexpr auto* books = "sluice number INV repair --given 57";

TEST_F(Recipes, NumbersGoOnBehindTheBooksAfterABackupOfRedisWasRestored) {
  const auto draw = "sluice number INV --zone " + zone_at_noon();
  shell(draw + " -n 3; redis-cli save");
  const auto dump = server_.directory() / "dump.rdb";
  fs::copy_file(dump, folder_ / "backup.rdb");
  EXPECT_TRUE(shell(draw + " -n 54").ends_with("0057\n"));
  server_.kill();
  fs::copy_file(folder_ / "backup.rdb", dump, fs::copy_options::overwrite_existing);
  server_.start();
  EXPECT_EQ(shell("redis-cli hget '{INV}:s' taken"), "3\n");
  EXPECT_TRUE(shell(std::string{books} + "; " + draw).ends_with("0058\n"));
}

TEST_F(Recipes, NumbersGoOnBehindTheBooksAfterACopyOfAFolderWasRestored) {
  const auto draw = "sluice number INV --zone " + zone_at_noon();
  const auto printed =
      shell("export SLUICE_STORE=embedded:$PWD/app\n" + draw + " -n 3; cp -r app backup; " + draw +
            " -n 54; rm -r app; mv backup app; " + books + "; " + draw);
  EXPECT_TRUE(printed.ends_with("0058\n")) << printed;
}

TEST_F(Recipes, LocksNeedNoBackup) {
  const std::string lock = "sluice lock deploy -- sh -c 'echo $SLUICE_TOKEN'; ";
  const auto tokens = shell(lock + "old=$(redis-cli get 'redisson_lock_token:{deploy}'); " + lock +
                            "redis-cli set 'redisson_lock_token:{deploy}' $old >/dev/null; " +
                            lock + "redis-cli flushall >/dev/null; " + lock);
  std::istringstream in{tokens};
  std::vector<long long> told{std::istream_iterator<long long>{in}, {}};
  EXPECT_EQ(told.size(), 4U) << tokens;
  EXPECT_TRUE(std::ranges::is_sorted(told, std::less_equal{})) << tokens;
}

TEST(RecipesOfPages, AreTriedOrItIsSaidWhyNot) {
  std::set<std::string> found;
  for (const auto& page : documents()) {
    if (is_left_out(page.string())) continue;
    for (const auto& command : commands_on(page)) {
      found.insert(command);
      EXPECT_TRUE(
          std::ranges::any_of(recipes, [&](const Recipe& row) { return row.command == command; }) ||
          std::ranges::any_of(untried,
                              [&](const Untried& row) { return command.starts_with(row.begins); }))
          << page.string() << ": try it in recipes, or say why not\n"
          << command;
    }
  }
  for (const auto& row : recipes)
    EXPECT_TRUE(found.contains(row.command)) << "on no page: " << row.command;
  for (const auto& row : untried)
    EXPECT_TRUE(std::ranges::any_of(
        found, [&](const auto& command) { return command.starts_with(row.begins); }))
        << "on no page: " << row.begins;
}

TEST(RecipesOfPages, PagesThatSpeakOfABackupLeadToWhatToDoAfterIt) {
  static const std::regex restore{
      R"([Rr]estore a backup|old backup|backup was restored|comes back from a backup)"};
  for (const auto& page : documents()) {
    if (is_left_out(page.string())) continue;
    const auto text = fmt::format("{}", fmt::join(read_lines(page), " "));
    if (std::regex_search(text, restore) && page.filename() != "operations.md")
      EXPECT_TRUE(text.contains("](operations.md#after-a-backup-was-restored)") ||
                  text.contains("](operations.md#numbers-after-a-restore)"))
          << page;
  }
}

}  // namespace
}  // namespace sluice::docs
