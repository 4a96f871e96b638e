// What the pages of the locks promise: each sentence names the tests that hold it, and these are
// there.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "docs_test/documents.hpp"
#include "support/paths.hpp"

namespace sluice::docs {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 15> pages{
    "bloom",     "buckets",      "cache",        "fair_mutex",   "fencing",
    "latch",     "lock",         "lock_watch",   "multi_lock",   "quorum_lock",
    "semaphore", "rate_limiter", "shared_bloom", "shared_mutex", "waiting_room"};

/// "Suite.Name" of every test in the repository, without the kind of parameter.
std::set<std::string> all_tests() {
  const std::regex test{R"(\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\))"};
  std::set<std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator{test::source_path("tests")}) {
    if (entry.path().extension() != ".cpp") continue;
    std::string text;
    for (const auto& line : read_lines(entry.path())) text += line + '\n';
    for (std::sregex_iterator it{text.begin(), text.end(), test}, end; it != end; ++it)
      all.insert((*it)[1].str() + '.' + (*it)[2].str());
  }
  return all;
}

/// The points of the list under "## Guarantee", each as one line.
Lines promises(const Lines& page) {
  Lines found;
  auto line = std::ranges::find(page, "## Guarantee");
  if (line == page.end()) return found;
  for (++line; line != page.end() && !line->starts_with("## "); ++line) {
    if (line->starts_with("- "))
      found.push_back(*line);
    else if (line->starts_with("  ") && !found.empty())
      found.back() += line->substr(1);
    else if (!line->empty())
      found.push_back(*line);  // a sentence outside of the list, which names no test
  }
  return found;
}

/// The tests that a promise names.
std::vector<std::string> tests_of(const std::string& promise) {
  const std::regex name{R"(^[A-Z]\w+\.\w+$)"};
  std::vector<std::string> tests;
  for (const auto& word : quoted_words(promise))
    if (std::regex_match(word, name)) tests.push_back(word);
  return tests;
}

TEST(Guarantees, EachNamesTheTestsThatHoldIt) {
  const auto known = all_tests();
  for (const std::string name : pages) {
    const auto list = promises(read_lines(test::source_path("docs/" + name + ".md")));
    EXPECT_FALSE(list.empty()) << name << ".md promises nothing";
    for (const auto& promise : list) {
      const auto tests = tests_of(promise);
      EXPECT_FALSE(tests.empty()) << name << ".md names no test: " << promise;
      for (const auto& test : tests)
        EXPECT_TRUE(known.contains(test)) << name << ".md names " << test << ", which is not there";
    }
  }
}

TEST(Guarantees, OfAHeaderNamesThePageWithTheTests) {
  const std::regex page{R"(docs/(\w+)\.md#guarantee)"};
  for (const std::string name :
       {"bloom_filter", "cache_guard", "fair_mutex", "fencing", "latch", "lock_watch", "multi_lock",
        "mutex", "permit_semaphore", "quorum_lock", "rate_limiter", "semaphore",
        "shared_bloom_filter", "shared_mutex", "waiting_room"}) {
    const auto text = read_text("include/sluice/" + name + ".hpp");
    std::smatch found;
    ASSERT_TRUE(std::regex_search(text, found, page)) << name << ".hpp";
    EXPECT_TRUE(std::ranges::find(pages, found[1].str()) != pages.end()) << name << ".hpp";
  }
}

/// K01 to K35: the attacks on locks that once succeeded.
TEST(Guarantees, AnAttackOnLocksHasATestOfItsNumber) {
  const auto known = all_tests();
  for (int number = 1; number <= 35; ++number) {
    const auto name = fmt::format("K{:02}_", number);
    EXPECT_TRUE(std::ranges::any_of(known, [&](const auto& test) { return test.contains(name); }))
        << name;
  }
}

TEST(GuaranteesRules, APromiseIsAPointWithAllItsLines) {
  const Lines page{
      "## Guarantee",      "",   "- One is in (`One.In`,", "  `No.Other`).", "And more.",
      "## Not guaranteed", "- x"};
  const auto list = promises(page);
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(tests_of(list[0]), (std::vector<std::string>{"No.Other", "One.In"}));
  EXPECT_TRUE(tests_of(list[1]).empty());
  EXPECT_TRUE(tests_of("`valid()` and `lock.md`").empty());
}

}  // namespace
}  // namespace sluice::docs
