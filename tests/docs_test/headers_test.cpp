// Which header has what: the tables of README.md and docs/README.md are compared with the headers.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "docs_test/documents.hpp"
#include "support/paths.hpp"

namespace sluice::docs {
namespace {

namespace fs = std::filesystem;

struct HeaderRow {
  std::set<std::string> headers;
  std::set<std::string> names;
};

/// The rows below `head`: the cell `headers` names the headers, and `names` what they have.
std::vector<HeaderRow> header_rows(const char* page, const std::string& head, std::size_t headers,
                                   std::size_t names) {
  std::vector<HeaderRow> rows;
  bool inside = false;
  for (const auto& line : read_lines(test::source_path(page))) {
    if (line == head) inside = true;
    const auto cells = cells_of(line);
    if (cells.empty()) inside = false;
    if (inside && cells.size() == 3 && cells[headers].ends_with(".hpp`"))
      rows.push_back({quoted_words(cells[headers]), quoted_words(cells[names])});
  }
  EXPECT_GT(rows.size(), 15U) << page;
  return rows;
}

std::vector<HeaderRow> all_rows() {
  auto rows = header_rows("README.md", "| | header | |", 1, 0);
  for (auto& row : header_rows("docs/README.md", "| header | has | |", 0, 1))
    rows.push_back(std::move(row));
  return rows;
}

bool declares(const std::string& text, const std::string& name) {
  if (name.contains(' ')) return true;  // `sluice locks`, a command
  const auto word = name.substr(0, name.find('('));
  const std::regex type{R"((^|\n)(class|struct|enum class|namespace)( \[\[\w+\]\])? )" + word +
                        R"(\b[^;]*\{)"};
  const std::regex function{R"((^|\n)[^\n/]*\b)" + word + R"(\()"};
  return std::regex_search(text, type) || std::regex_search(text, function);
}

TEST(DocsHeaders, HaveWhatTheTablesSay) {
  for (const auto& row : all_rows()) {
    std::string text;
    for (const auto& header : row.headers) text += read_text("include/sluice/" + header);
    for (const auto& name : row.names)
      EXPECT_TRUE(declares(text, name)) << *row.headers.begin() << " does not declare " << name;
  }
}

TEST(DocsHeaders, EachStandsInATable) {
  std::set<std::string> named;
  for (auto& row : all_rows()) named.merge(row.headers);
  for (const auto& entry : fs::directory_iterator{test::source_path("include/sluice")})
    EXPECT_TRUE(named.contains(entry.path().filename().string())) << entry.path().filename();
}

// The rule itself.
TEST(DocsHeadersRules, ADeclarationIsFound) {
  EXPECT_TRUE(declares("class [[nodiscard]] Held {\n", "Held"));
  EXPECT_TRUE(declares("std::string prometheus_text(Labels labels = {});\n", "prometheus_text()"));
  EXPECT_FALSE(declares("class Store;\n", "Store"));
  EXPECT_FALSE(declares("/// see open()\n", "open()"));
}

}  // namespace
}  // namespace sluice::docs
