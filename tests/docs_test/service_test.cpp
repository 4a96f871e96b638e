// What the pages say of a service and what its sources know: routes, and tables of the database.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "docs_test/documents.hpp"
#include "sale/order_life.hpp"
#include "sale/sql/failures.hpp"
#include "server/fault_matrix.hpp"
#include "server/readiness.hpp"
#include "support/paths.hpp"

namespace sluice::docs {
namespace {

namespace fs = std::filesystem;

/// What `pattern` finds in the sources of src/FOLDER, its first group.
std::vector<std::string> in_sources(std::string_view folder, const std::regex& pattern) {
  std::vector<std::string> found;
  for (const auto& entry :
       fs::recursive_directory_iterator{test::source_path(fmt::format("src/{}", folder))})
    for (const auto& line : read_lines(entry.path()))
      for (std::sregex_iterator it{line.begin(), line.end(), pattern}, end; it != end; ++it)
        found.push_back((*it)[1]);
  return found;
}

TEST(DocsService, RoutesThatAreNamedExist) {
  // Those of operators are put together of parts, and not looked at.
  static const std::regex of_source{R"re("(/v1/(?!operate/)[^" ]*)")re"};
  static const std::regex of_page{R"(\b(?:GET|POST|PUT|DELETE) (/v1/(?!operate/)[\w{}/-]+))"};
  static const std::regex variable{R"(\{\w*\})"};
  std::vector<std::regex> routes;
  for (const auto& path : in_sources("server", of_source))
    routes.emplace_back(std::regex_replace(path, variable, "[^/]+"));
  EXPECT_GT(routes.size(), 15U);
  for (const auto& document : documents())
    for (const auto& line : read_lines(document))
      for (std::sregex_iterator it{line.begin(), line.end(), of_page}, end; it != end; ++it)
        EXPECT_TRUE(std::ranges::any_of(
            routes, [&](const auto& route) { return std::regex_match((*it)[1].str(), route); }))
            << document << " names " << (*it)[1];
}

TEST(DocsService, TablesOfASalesDatabaseAreNamed) {
  static const std::regex table{R"(CREATE TABLE IF NOT EXISTS (\w+))"};
  const auto tables = in_sources("sale/sql", table);
  EXPECT_GT(tables.size(), 8U);
  const auto page = read_text("docs/sale.md");
  for (const auto& name : tables)
    EXPECT_TRUE(page.contains('`' + name + " (")) << "docs/sale.md does not name " << name;
}

TEST(DocsService, TheLifeOfAnOrderIsTheTableThatProgramsGoBy) {
  std::vector<std::string> rows;
  bool is_in_table = false;
  for (const auto& line : read_lines(test::source_path("docs/sale.md"))) {
    is_in_table = line.starts_with("| from |") || (is_in_table && line.starts_with('|'));
    if (is_in_table && line.starts_with("| `")) rows.push_back(line);
  }
  std::vector<std::string> table;
  for (const auto& step : sale::transitions()) table.push_back(sale::row_of_page(step));
  EXPECT_EQ(rows, table);
}

std::string codes(std::string_view words) {
  std::string text;
  for (const char c : words) text += c == ' ' ? "` `" : std::string{c};
  return text.empty() ? "-" : fmt::format("`{}`", text);
}

TEST(DocsService, WhatBecomesOfAFailureIsTheTableThatDatabasesGoBy) {
  constexpr std::string_view once_more[] = {"no", "as a whole", "elsewhere"};
  std::string rows;
  for (const auto& row : sale::failure_rows)
    rows +=
        fmt::format("| {} | {} | {} | {} | `{}` | {} | {} |\n", row.what, codes(row.sqlite),
                    codes(row.postgresql), codes(row.mariadb), make_error_code(row.code).message(),
                    once_more[static_cast<int>(row.once_more)], row.is_sure ? "none" : "unknown");
  EXPECT_TRUE(read_text("docs/sale.md").contains(rows)) << "docs/sale.md has to say:\n" << rows;
}

/// The rows of both tables below "Readiness, health and alerts".
TEST(DocsService, SV07_ReadinessIsAsTheTablesOfTheProgramAndOfTheTestsSay) {
  std::string troubles;
  for (const auto& row : server::trouble_rows)
    troubles += fmt::format("| `{}` | {} | {} | {} |\n", row.name, row.is_ready ? 200 : 503,
                            row.is_alert ? "yes" : "no", row.what);
  std::string faults;
  for (const auto& row : test::fault_matrix)
    faults += fmt::format("| {} | {} | {} | {} | {} | {} |\n", row.dependency, row.name, row.buyers,
                          row.operators, row.ready,
                          row.alert == "-" ? "-" : fmt::format("`{}`", row.alert));
  EXPECT_TRUE(read_text("docs/operations.md").contains(troubles)) << troubles;
  for (const auto* const page : {"docs/operations.md", "docs/service.md"})
    EXPECT_TRUE(read_text(page).contains(faults)) << page << " has to say:\n" << faults;
}

}  // namespace
}  // namespace sluice::docs
