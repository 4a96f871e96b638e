#include "floors_test/style_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string_view>

namespace sluice::floors {
namespace {

constexpr std::size_t widest_line = 100;
constexpr int longest_function = 60;

bool is_ours(std::string_view path) {
  return path.starts_with("src/") || path.starts_with("include/");
}

bool is_code(std::string_view path) { return path.ends_with(".hpp") || path.ends_with(".cpp"); }

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream{text};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::size_t columns_of(std::string_view line) {  // code points of UTF-8
  return static_cast<std::size_t>(
      std::ranges::count_if(line, [](char byte) { return (byte & 0xC0) != 0x80; }));
}

/// Without comments, and without what stands in string literals.
std::string code_of(const std::string& line) {
  static const std::regex literal{R"("(\\.|[^"\\])*"|'(\\.|[^'\\])')"};
  const auto bare = std::regex_replace(line, literal, "\"\"");
  return bare.substr(0, bare.find("//"));
}

/// A class as it is defined, with the namespaces around it.
struct Definition {
  std::string space;  // "sluice::lock"
  std::string name;
  std::string where;  // path:line
};

/// Definitions outside of anonymous namespaces. The formatter puts them, and the braces of
/// namespaces, into the first column.
std::vector<Definition> definitions_of(const std::string& path, const std::string& text) {
  static const std::regex opens{R"(^namespace ?([\w:]*) \{)"};
  static const std::regex closes{R"(^\}  // namespace)"};
  static const std::regex defines{
      R"(^(?:class|struct)(?: \[\[[^\]]*\]\]| alignas\(\w+\))* (\w+)(?: final)?)"
      R"((?: :[^:].*)?(?: \{.*)?$)"};
  std::vector<Definition> found;
  std::vector<std::string> spaces;
  int number = 0;
  for (const auto& line : lines_of(text)) {
    ++number;
    std::smatch match;
    if (std::regex_search(line, match, opens) && line.find('}') == std::string::npos) {
      spaces.push_back(match[1]);
    } else if (std::regex_search(line, closes) && !spaces.empty()) {
      spaces.pop_back();
    } else if (std::regex_match(line, match, defines) && !std::ranges::count(spaces, "")) {
      std::string space;
      for (const auto& part : spaces) space += (space.empty() ? "" : "::") + part;
      found.push_back({space, match[1], fmt::format("{}:{}", path, number)});
    }
  }
  return found;
}

bool are_related(const std::string& a, const std::string& b) {
  return a == b || a.starts_with(b + "::") || b.starts_with(a + "::");
}

/// What the standard library has, and the headers that may be counted on to have it.
struct Name {
  const char* pattern;
  std::string_view headers;  // words
};

constexpr std::array names{
    Name{R"(std::(basic_)?string\b(?!_view))", "string fmt/format.h sstream"},
    Name{R"(std::string_view\b)", "string_view string fmt/format.h"},
    Name{R"(std::to_string\b)", "string"},
    Name{R"(std::vector\b)", "vector"},
    Name{R"(std::array\b)", "array"},
    Name{R"(std::deque\b)", "deque"},
    Name{R"(std::list\b)", "list"},
    Name{R"(std::map\b)", "map"},
    Name{R"(std::set\b)", "set"},
    Name{R"(std::unordered_map\b)", "unordered_map"},
    Name{R"(std::unordered_set\b)", "unordered_set"},
    Name{R"(std::span\b)", "span"},
    Name{R"(std::optional\b|std::nullopt\b)", "optional"},
    Name{R"(std::variant\b|std::visit\b|std::get_if\b)", "variant"},
    Name{R"(std::(unique|shared|weak)_ptr\b|std::make_(unique|shared)\b)", "memory"},
    Name{R"(std::enable_shared_from_this\b)", "memory"},
    Name{R"(std::function\b)", "functional"},
    Name{R"(std::chrono::)", "chrono sluice/clock.hpp"},
    Name{R"(std::atomic\b|std::memory_order)", "atomic"},
    Name{R"(std::(recursive_|timed_)?mutex\b|std::(lock_guard|unique_lock|scoped_lock)\b)",
         "mutex shared_mutex condition_variable"},
    Name{R"(std::call_once\b|std::once_flag\b)", "mutex"},
    Name{R"(std::condition_variable\b)", "condition_variable"},
    Name{R"(std::j?thread\b|std::this_thread\b)", "thread"},
    Name{R"(std::stop_(token|source|callback)\b)", "stop_token thread"},
    Name{R"(std::coroutine_handle\b|std::suspend_(always|never)\b)", "coroutine"},
    Name{R"(std::(u?int(8|16|32|64)_t)\b)", "cstdint"},
    Name{R"(std::(from|to)_chars\b)", "charconv"},
    Name{R"(std::filesystem\b)", "filesystem"},
    Name{R"(std::[io]?fstream\b)", "fstream"},
    Name{R"(std::[io]?stringstream\b)", "sstream"},
    Name{R"(std::(exception_ptr|current_exception|rethrow_exception)\b)", "exception stdexcept"},
    Name{R"(std::(runtime_error|logic_error|invalid_argument|out_of_range)\b)", "stdexcept"},
    Name{R"(std::system_error\b|std::error_code\b)", "system_error"},
    Name{R"(std::errc\b)", "system_error charconv"},
    Name{R"(std::numeric_limits\b)", "limits"},
    Name{R"(std::tuple\b|std::tie\b)", "tuple"},
    Name{R"(std::initializer_list\b)", "initializer_list string vector"},
    Name{R"(std::(exchange|pair|in_place)\b)", "utility map memory vector string optional"},
    Name{R"(std::(move|forward|swap)\()",
         "utility memory string vector map functional algorithm optional chrono thread deque span "
         "array variant set list mutex fmt/format.h"},
    Name{R"(std::ranges::(find|sort|any_of|all_of|none_of|count|copy|max|min|lower_bound)\w*\b)",
         "algorithm"},
    Name{R"(std::(sort|find_if|any_of|all_of|max_element|lower_bound|clamp|fill_n?)\()",
         "algorithm"},
    Name{R"(std::(m?t?19937(_64)?|random_device|uniform_int_distribution)\b)", "random"},
    Name{R"(std::(snprintf|fputs|fflush|fprintf|fopen|FILE)\b)", "cstdio"},
    Name{R"(std::(strlen|memcpy|memcmp|strerror|memset|memchr)\b)", "cstring"},
    Name{R"(std::(getenv|strtoull?|strtod|abort|exit|quick_exit)\b)", "cstdlib"},
    Name{R"(std::(bit_cast|popcount|countl_zero|countr_zero|rotl|endian|bit_ceil)\b)", "bit"},
    Name{R"(std::(accumulate|gcd|iota)\b)", "numeric"},
    Name{R"(std::regex\b)", "regex"},
    Name{R"(fmt::(format|print|format_to|join)\b)", "fmt/format.h fmt/ranges.h fmt/chrono.h"},
};

/// Every header that a file includes, those of the repository followed.
class Included {
 public:
  explicit Included(const SourceTree& tree) : tree_{tree} {}

  const std::set<std::string>& of(const std::string& path) {
    const auto [entry, is_new] = known_.try_emplace(path);
    if (!is_new) return entry->second;
    std::set<std::string> all;
    static const std::regex form{R"(^#include [<"]([^>"]+)[>"])"};
    for (const auto& line : lines_of(tree_.at(path))) {
      std::smatch match;
      if (!std::regex_search(line, match, form)) continue;
      all.insert(match[1]);
      if (const auto ours = find(match[1])) all.insert(of(*ours).begin(), of(*ours).end());
    }
    return known_[path] = std::move(all);
  }

 private:
  std::optional<std::string> find(const std::string& name) const {
    for (const auto* const root : {"src/", "include/", "tests/", "bench/"})
      if (tree_.contains(root + name)) return root + name;
    return std::nullopt;
  }

  const SourceTree& tree_;
  std::map<std::string, std::set<std::string>> known_;
};

bool has_any(const std::set<std::string>& included, std::string_view headers) {
  std::istringstream words{std::string{headers}};
  for (std::string word; words >> word;)
    if (included.contains(word)) return true;
  return false;
}

}  // namespace

Findings check_lines(const SourceTree& tree) {
  Findings findings;
  for (const auto& [path, text] : tree) {
    if (path.ends_with(".txt")) continue;
    int number = 0;
    for (const auto& line : lines_of(text)) {
      ++number;
      if (columns_of(line) > widest_line)
        findings.push_back(fmt::format("{}:{}: {} columns", path, number, columns_of(line)));
    }
  }
  return findings;
}

Findings check_functions(const SourceTree& tree) {
  // The formatter puts a function's first line and its closing brace into one column: the first, or
  // the third in a class.
  static const std::regex none{R"(^\s*(namespace|class|struct|enum|union|extern|#|/|\}|\)))"};
  Findings findings;
  for (const auto& [path, text] : tree) {
    if (!is_ours(path) || !is_code(path)) continue;
    for (const std::string indent : {"", "  "}) {
      int number = 0;
      int began = 0;
      for (const auto& line : lines_of(text)) {
        ++number;
        const bool here = line.starts_with(indent) && line.size() > indent.size() &&
                          !std::isspace(static_cast<unsigned char>(line[indent.size()]));
        if (!here) continue;
        if (line.starts_with(indent + "}")) {
          if (began != 0 && number - began + 1 > longest_function && line == indent + "}")
            findings.push_back(
                fmt::format("{}:{}: a function of {} lines", path, began, number - began + 1));
          began = 0;
        } else if (!std::regex_search(line, none) && line.find('(') != std::string::npos) {
          began = number;
        }
      }
    }
  }
  return findings;
}

Findings check_class_names(const SourceTree& tree) {
  std::map<std::string, std::vector<Definition>> by_name;
  Findings findings;
  for (const auto& [path, text] : tree) {
    if (!is_ours(path) || !is_code(path)) continue;
    for (const auto& definition : definitions_of(path, text)) {
      auto& others = by_name[definition.name];
      for (const auto& other : others)
        if (are_related(other.space, definition.space))
          findings.push_back(fmt::format("{}: {}::{} is also {}::{} ({})", definition.where,
                                         definition.space, definition.name, other.space, other.name,
                                         other.where));
      others.push_back(definition);
    }
  }
  return findings;
}

Findings check_formatting(const SourceTree& tree) {
  Findings findings;
  for (const auto& [path, text] : tree) {
    if (!is_ours(path) || !is_code(path)) continue;
    int number = 0;
    for (const auto& line : lines_of(text)) {
      ++number;
      if (code_of(line).find("format_to") != std::string::npos)
        findings.push_back(fmt::format("{}:{}: append fmt::format()", path, number));
    }
  }
  return findings;
}

Findings check_standard_headers(const SourceTree& tree) {
  static const auto patterns = [] {
    std::vector<std::regex> compiled;
    for (const auto& name : names) compiled.emplace_back(name.pattern, std::regex::optimize);
    return compiled;
  }();
  Included included{tree};
  Findings findings;
  for (const auto& [path, text] : tree) {
    if (!is_code(path)) continue;
    std::set<std::size_t> told;
    int number = 0;
    for (const auto& line : lines_of(text)) {
      ++number;
      const auto code = code_of(line);
      if (code.find("std::") == std::string::npos && code.find("fmt::") == std::string::npos)
        continue;
      for (std::size_t i = 0; i < names.size(); ++i)
        if (!told.contains(i) && !has_any(included.of(path), names[i].headers) &&
            std::regex_search(code, patterns[i]) && told.insert(i).second)
          findings.push_back(fmt::format("{}:{}: wants <{}>", path, number,
                                         names[i].headers.substr(0, names[i].headers.find(' '))));
    }
  }
  return findings;
}

}  // namespace sluice::floors
