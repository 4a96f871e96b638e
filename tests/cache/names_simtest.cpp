// No two guards, and no two keys of one, share a key or a channel.
#include <map>
#include <set>
#include <utility>

#include "cache/entry.hpp"
#include "cache/guards.hpp"

namespace sluice {
namespace {

using namespace test;

std::vector<std::string> texts_of(std::string_view letters, std::size_t longest) {
  std::vector<std::string> texts{""};
  for (std::size_t from = 0; texts[from].size() < longest; ++from)
    for (const char next : letters) texts.push_back(texts[from] + next);
  return texts;
}

class GuardNames : public Guards {};

TEST_F(GuardNames, LK01_NoTwoShareAKeyOrAChannel) {
  std::vector<std::string> names = texts_of("a{}:", 4);
  for (const auto* const beside : {"sluice_cache:", "sluice_cache_lease:", "sluice_cache_absent:",
                                   "sluice_cache_again:", "sluice_cache_lease", "sluice"})
    for (const auto& text : texts_of("a{}:", 3)) names.push_back(beside + text);
  std::map<std::string, std::set<std::pair<std::string, std::string>>> users;
  std::size_t taken = 0;
  for (const auto& name : names) {
    try {
      const Cache guard{line_, name, plain()};
    } catch (const Error& error) {
      ASSERT_EQ(error.errc(), Errc::bad_argument) << error.what();
      continue;
    }
    ++taken;
    const cache::Names keys{name};
    for (const auto& key : texts_of("a{}:%", 2)) {
      const auto value = keys.value_of(key);
      users[value].emplace(name, key);
      users[cache::Names::lease_of(value)].emplace(name, "lease of " + key);
    }
    users[keys.channel()].emplace(name, "its channel");
    users[keys.absent_budget()].emplace(name, "its absences");
    users[keys.second_invalidations()].emplace(name, "its invalidations");
  }
  for (const auto& [key, its] : users)
    EXPECT_EQ(its.size(), 1U) << key << ": '" << its.begin()->first << "' " << its.begin()->second
                              << ", '" << its.rbegin()->first << "' " << its.rbegin()->second;
  EXPECT_GT(taken, 150U);
}

}  // namespace
}  // namespace sluice
