#include "floors_test/comment_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <regex>
#include <sstream>
#include <string_view>

namespace sluice::floors {
namespace {

constexpr std::size_t widest_line = 100;
constexpr std::size_t inset_of_code = 5;
constexpr std::ptrdiff_t most_blanks = 5;  // in what is left over of a line

struct Comment {
  std::string mark;  // with the indentation before it
  std::size_t inset;
  std::string text;
};

std::optional<Comment> comment_of(const std::string& line) {
  static const std::regex form{R"(^( *(?:///?|--))( +)(\S.*)$)"};
  std::smatch match;
  if (!std::regex_match(line, match, form)) return std::nullopt;
  return Comment{match[1], static_cast<std::size_t>(match[2].length()), match[3]};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream{text};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

bool is_left_over(const std::string& before, const std::string& line, const std::string& after) {
  const auto rest = comment_of(line);
  const auto blanks = rest ? std::ranges::count(rest->text, ' ') : most_blanks + 1;
  if (blanks > most_blanks) return false;
  const bool is_end = rest->text.ends_with('.') || rest->text.ends_with(':');
  if (blanks > 0 && is_end) return false;
  const auto word = rest->text.find(' ');
  const auto above = comment_of(before);
  const auto below = comment_of(after);
  return above && below && above->mark == rest->mark && below->mark == rest->mark &&
         before.size() + 1 + std::min(word, rest->text.size()) > widest_line &&
         below->inset > rest->inset && below->inset < inset_of_code;
}

/// Without literals, and without the comment at its end.
std::string code_in(const std::string& line) {
  static const std::regex literal{R"("(\\.|[^"\\])*")"};
  const auto bare = std::regex_replace(line, literal, "\"\"");
  return bare.substr(0, bare.find(" //"));
}

bool is_broken(const std::string& line) {
  auto code = code_in(line);
  code.erase(code.find_last_not_of(' ') + 1);
  int depth = 0;
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (std::string_view{"([{"}.find(code[i]) != std::string_view::npos) ++depth;
    if (std::string_view{")]}"}.find(code[i]) != std::string_view::npos) --depth;
    if (code[i] == ';' && depth <= 0 && i + 1 < code.size()) return true;
  }
  return depth > 0 && code.ends_with(';');
}

}  // namespace

Findings check_paragraphs(const SourceTree& tree) {
  Findings findings;
  for (const auto& [path, text] : tree) {
    const auto lines = lines_of(text);
    for (std::size_t i = 1; i + 1 < lines.size(); ++i)
      if (is_left_over(lines[i - 1], lines[i], lines[i + 1]))
        findings.push_back(fmt::format("{}:{}: left over of the line before", path, i + 1));
  }
  return findings;
}

Findings check_examples(const SourceTree& tree) {
  Findings findings;
  for (const auto& [path, text] : tree) {
    if (!path.starts_with("include/")) continue;
    int number = 0;
    bool is_text = false;
    for (const auto& line : lines_of(text)) {
      ++number;
      const auto comment = comment_of(line);
      if (!comment) continue;
      if (comment->text.starts_with("```")) is_text = !is_text;
      if (!is_text && comment->inset >= inset_of_code && is_broken(comment->text))
        findings.push_back(fmt::format("{}:{}: a broken line of an example", path, number));
    }
  }
  return findings;
}

}  // namespace sluice::floors
