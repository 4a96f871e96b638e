/// The documents of the repository as lines: README.md and its neighbours, and all of docs/.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::docs {

using Lines = std::vector<std::string>;

std::vector<std::filesystem::path> documents();
Lines read_lines(const std::filesystem::path& path);
/// A file of the repository, whole. Fails the test where it is missing.
std::string read_text(std::string_view path);

/// The row of a Markdown table, without the spaces around its cells. Empty: the line is no row.
std::vector<std::string> cells_of(const std::string& line);
/// The words between backquotes, those of a text like `SLOWLOG GET` together.
std::set<std::string> quoted_words(std::string_view text);
/// The rows of `page` whose first cell is a word in backquotes that begins with `prefix`.
std::vector<std::vector<std::string>> rows_of(std::string_view page, std::string_view prefix);

}  // namespace sluice::docs
