// What users read of the program: a name with an underscore in a sentence is one that they can look
// up.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "docs_test/documents.hpp"
#include "support/paths.hpp"

namespace sluice::docs {
namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;

/// Names that no page and no public header has, and why they stand in a sentence.
const std::map<std::string, std::string> others{
    {"aof_rewrite_in_progress", "a line of redis-server's INFO persistence, in a step to take"},
    {"application_name", "a setting of PostgreSQL's connections, in one line with others"},
    {"client_encoding", "the same"},
    {"cluster_state", "a field of Redis's CLUSTER INFO"},
    {"entries_added", "an error of Redis's XSETID, word for word"},
    {"max_deleted_entry_id", "the same"},
    {"mp_decode_to_lua_type", "an error of Redis's cmsgpack, word for word"},
    {"mp_encode_lua_table", "the same"},
    {"mp_unpack_full", "the same"},
};

/// Names with underscores, none of which is a part of a longer word, a path or a member.
Names names_in(const std::string& text) {
  static const std::regex name{R"((^|[^\w./:{-])([a-z]+(?:_[a-z0-9]+)+)\b)"};
  Names found;
  for (std::sregex_iterator it{text.begin(), text.end(), name}, end; it != end; ++it)
    found.insert((*it)[2]);
  return found;
}

/// Of the sentences among the string literals of a line: at least two words in a row.
Names names_in_sentences(const std::string& line) {
  static const std::regex literal{R"re("((?:\\.|[^"\\])*)")re"};
  static const std::regex sentence{R"(\b[a-z]{2,} [a-z]{2,})"};
  Names found;
  const auto first = line.find_first_not_of(' ');
  if (line.find('_') == std::string::npos || line.compare(first, 2, "//") == 0) return found;
  for (std::sregex_iterator it{line.begin(), line.end(), literal}, end; it != end; ++it)
    if (const std::string text = (*it)[1]; std::regex_search(text, sentence))
      found.merge(names_in(text));
  return found;
}

Names names_that_users_know() {
  Names known;
  for (const auto& document : documents())
    for (const auto& line : read_lines(document)) {
      static const std::regex word{R"(\w*_\w*)"};
      for (std::sregex_iterator it{line.begin(), line.end(), word}, end; it != end; ++it)
        known.insert(it->str());
    }
  for (const auto& entry : fs::directory_iterator{test::source_path("include/sluice")})
    for (const auto& line : read_lines(entry.path())) known.merge(names_in(line));
  return known;
}

TEST(Messages, NamesInSentencesStandInAPageOrAPublicHeader) {
  const auto known = names_that_users_know();
  std::size_t names = 0;
  for (const auto& entry : fs::recursive_directory_iterator{test::source_path("src")}) {
    const auto kind = entry.path().extension();
    if (kind != ".cpp" && kind != ".hpp" && kind != ".def") continue;
    int number = 0;
    for (const auto& line : read_lines(entry.path())) {
      ++number;
      for (const auto& name : names_in_sentences(line)) {
        ++names;
        EXPECT_TRUE(known.contains(name) || others.contains(name))
            << entry.path().string() << ':' << number << ": a user cannot look up '" << name << "'";
      }
    }
  }
  EXPECT_GT(names, 50U);
}

// The rule itself.
TEST(MessagesRules, ANameInASentenceIsFound) {
  EXPECT_EQ(names_in_sentences(R"(  "'audit {}' names what is damaged_record, and ")"),
            (Names{"damaged_record"}));
  EXPECT_EQ(names_in_sentences(R"(  // "names what is damaged_record")"), Names{});
  EXPECT_EQ(names_in_sentences(R"(  store.run({"HMGET", state_key, "last_seen"}))"), Names{});
  EXPECT_EQ(names_in_sentences(R"(  "see docs/rate_limiter.md of {rate_limit} there")"), Names{});
}

}  // namespace
}  // namespace sluice::docs
