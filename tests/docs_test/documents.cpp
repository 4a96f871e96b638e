#include "docs_test/documents.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "support/paths.hpp"

namespace sluice::docs {

namespace fs = std::filesystem;

std::vector<fs::path> documents() {
  const fs::path root{test::source_path()};
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator{root})
    if (entry.path().extension() == ".md") found.push_back(entry.path());
  for (const auto& entry : fs::recursive_directory_iterator{root / "docs"})
    if (entry.path().extension() == ".md") found.push_back(entry.path());
  return found;
}

Lines read_lines(const fs::path& path) {
  std::ifstream file{path};
  Lines lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::string read_text(std::string_view path) {
  std::ifstream file{test::source_path(path)};
  EXPECT_TRUE(file.is_open()) << path << " is missing";
  return {std::istreambuf_iterator<char>{file}, {}};
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  if (!line.starts_with('|')) return cells;
  std::istringstream rest{line.substr(1)};
  for (std::string cell; std::getline(rest, cell, '|');) {
    const auto first = cell.find_first_not_of(' ');
    cells.push_back(first == std::string::npos
                        ? ""
                        : cell.substr(first, cell.find_last_not_of(' ') + 1 - first));
  }
  return cells;
}

std::set<std::string> quoted_words(std::string_view text) {
  std::set<std::string> words;
  for (auto begin = text.find('`'); begin != std::string_view::npos; begin = text.find('`')) {
    const auto end = text.find('`', begin + 1);
    if (end == std::string_view::npos) break;
    words.emplace(text.substr(begin + 1, end - begin - 1));
    text.remove_prefix(end + 1);
  }
  return words;
}

std::vector<std::vector<std::string>> rows_of(std::string_view page, std::string_view prefix) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& line : read_lines(test::source_path(page)))
    if (auto cells = cells_of(line);
        !cells.empty() && cells.front().starts_with("`" + std::string{prefix}))
      rows.push_back(std::move(cells));
  return rows;
}

}  // namespace sluice::docs
