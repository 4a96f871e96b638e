#include "floors_test/house_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "floors_test/floors.hpp"

namespace sluice::floors {
namespace {

bool has_word(std::string_view words, std::string_view word) {
  return (' ' + std::string{words} + ' ').find(' ' + std::string{word} + ' ') != std::string::npos;
}

template <class Row>
const Row* find_row(const auto& table, std::string_view name) {
  const auto found = std::ranges::find(table, name, &Row::name);
  return found == table.end() ? nullptr : &*found;
}

struct Include {
  std::string name;
  bool angled = false;
};

std::optional<Include> include_of(const std::string& line) {
  static const std::regex form{R"(^\s*#\s*include\s*([<"])([^>"]+)[>"])"};
  std::smatch match;
  if (!std::regex_search(line, match, form)) return std::nullopt;
  const std::string name = match[2];
  return Include{
      name,
      match[1] == "<" && !name.starts_with("sluice/")};  // examples write <sluice/...> as users do
}

/// Where a file stands: its folder in floors.hpp, and what it is called there.
struct Place {
  std::string folder;  // "lock", "examples"; of a public header the folder of its noun
  std::string path;    // below src/, or from the root for programs
  bool is_public = false;
};

std::string first_part(std::string_view path) {
  return std::string{path.substr(0, path.find('/'))};
}

std::string noun_of(std::string_view header) {  // "sluice/lock.hpp" -> "lock"
  const auto name = header.substr(header.rfind('/') + 1);
  return std::string{name.substr(0, name.find('.'))};
}

/// Empty for tests and benchmarks, which may look everywhere.
std::optional<Place> place_of(std::string_view path) {
  if (path.starts_with("include/sluice/")) {
    const auto* const noun = find_row<Noun>(nouns, noun_of(path));
    return Place{noun ? std::string{noun->folder} : "", std::string{path}, true};
  }
  if (path.starts_with("src/"))
    return Place{first_part(path.substr(4)), std::string{path.substr(4)}, false};
  if (path.starts_with("examples/")) return Place{"examples", std::string{path}, false};
  return std::nullopt;
}

bool is_code(std::string_view path) { return path.ends_with(".hpp") || path.ends_with(".cpp"); }

void for_each_line(const std::string& text,
                   const std::function<void(int number, const std::string& line)>& visit) {
  std::istringstream lines{text};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) visit(number, line);
}

/// Visits the includes of all code that has a place.
void for_each_include(const SourceTree& tree,
                      const std::function<std::string(const Place&, const Include&)>& complaint,
                      Findings& findings) {
  for (const auto& [path, text] : tree) {
    const auto place = is_code(path) ? place_of(path) : std::nullopt;
    if (!place) continue;
    for_each_line(text, [&](int number, const std::string& line) {
      const auto include = include_of(line);
      if (!include) return;
      if (const auto said = complaint(*place, *include); !said.empty())
        findings.push_back(fmt::format("{}:{}: {}", path, number, said));
    });
  }
}

std::string floor_complaint(const Place& from, const Include& include) {
  if (include.angled) return {};
  const auto* const folder = find_row<Folder>(folders, from.folder);
  if (!folder) return fmt::format("'{}' has no place in floors.hpp", from.path);

  const bool to_public = include.name.starts_with("sluice/");
  const auto* const noun = to_public ? find_row<Noun>(nouns, noun_of(include.name)) : nullptr;
  if (to_public && !noun) return fmt::format("\"{}\" has no place in floors.hpp", include.name);
  const auto target = noun ? std::string{noun->folder} : first_part(include.name);

  if (from.is_public && !to_public)
    return fmt::format("a public header shows \"{}\"", include.name);
  if (noun && noun->name == "sluice" && from.folder != "examples")
    return "sluice/sluice.hpp is for users";
  if (target == from.folder || from.path == "include/sluice/sluice.hpp") return {};
  if (to_public && has_word(folder->may_include, "public")) return {};
  if (has_word(folder->may_include, target)) return {};
  return fmt::format("{} may not include {} (\"{}\")", from.folder, target, include.name);
}

/// The room of a file below src/, "engine/core"; without one, its folder.
std::string room_of(std::string_view path) {
  const auto slash = path.find('/', path.find('/') + 1);
  return std::string{slash == std::string_view::npos ? first_part(path) : path.substr(0, slash)};
}

std::string room_complaint(const Place& from, const Include& include) {
  const auto folder = first_part(from.path);
  const bool has_rooms =
      std::ranges::any_of(rooms, [&](const Room& room) { return first_part(room.path) == folder; });
  const auto room = room_of(from.path);
  const auto target = room_of(include.name);
  if (include.angled || !has_rooms || first_part(include.name) != folder || room == folder ||
      room == target)
    return {};
  const auto found = std::ranges::find(rooms, room, &Room::path);
  if (found == rooms.end()) return fmt::format("the room {} has no place in floors.hpp", room);
  if (target != folder && has_word(found->may_include, target.substr(folder.size() + 1))) return {};
  return fmt::format("{} may not include {} (\"{}\")", room, target, include.name);
}

std::string library_complaint(const Place& from, const Include& include) {
  if (!include.angled) return {};
  const auto rule = std::ranges::find_if(
      libraries, [&](const Library& library) { return include.name.starts_with(library.header); });
  if (rule == libraries.end()) {
    if (include.name.find('/') == std::string::npos)
      return {};  // the standard library, or the system's
    if (include.name.starts_with("bits/") && from.path.ends_with("standard.hpp"))
      return {};  // the one place that takes parts of the standard library
    return fmt::format("<{}> is of a library that floors.hpp does not list", include.name);
  }
  if (from.is_public) return fmt::format("a public header shows <{}>", include.name);
  if (rule->allowed == "*") return {};
  std::istringstream words{std::string{rule->allowed}};
  for (std::string word; words >> word;)
    if (from.path.starts_with(word)) return {};
  return fmt::format("<{}> belongs to {}", include.name, rule->allowed);
}

std::string directory_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

/// The words of a CMakeLists.txt, without comments.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for_each_line(text, [&](int, const std::string& line) {
    auto code = line.substr(0, line.find('#'));
    for (char& c : code)
      if (c == '(' || c == ')' || c == '"') c = ' ';
    std::istringstream stream{code};
    for (std::string word; stream >> word;) words.push_back(word);
  });
  return words;
}

bool is_named_by_cmake(const SourceTree& tree, const std::string& path) {
  for (auto folder = directory_of(path); !folder.empty(); folder = directory_of(folder)) {
    const auto list = tree.find(folder + "/CMakeLists.txt");
    if (list == tree.end()) continue;
    const auto words = words_of(list->second);
    const auto name = path.substr(folder.size() + 1);
    // Scripts are named from src/, sources from their folder.
    const auto script = path.starts_with("src/") ? path.substr(4) : path;
    return std::ranges::any_of(
        words, [&](const std::string& word) { return word == name || word == script; });
  }
  return false;
}

/// Scripts may include a file, or a part of one: `-- include lock/hold/parts.lua server_time`.
bool is_included_by_a_script(const SourceTree& tree, const std::string& path) {
  return std::ranges::any_of(tree, [&](const auto& file) {
    bool includes = false;
    if (file.first.ends_with(".lua"))
      for_each_line(file.second, [&](int, const std::string& line) {
        constexpr std::string_view word = "-- include ";
        if (!line.starts_with(word)) return;
        const auto included = line.substr(word.size());
        includes |= path.ends_with('/' + included.substr(0, included.find(' ')));
      });
    return includes;
  });
}

}  // namespace

Findings check_floors(const SourceTree& tree) {
  Findings findings;
  const auto complaint = [](const Place& from, const Include& include) {
    const auto said = floor_complaint(from, include);
    return said.empty() ? room_complaint(from, include) : said;
  };
  for_each_include(tree, complaint, findings);
  return findings;
}

Findings check_libraries(const SourceTree& tree) {
  Findings findings;
  for_each_include(tree, library_complaint, findings);
  return findings;
}

Findings check_clocks(const SourceTree& tree) {
  // AnyClock is the caller's, in a template that std::timed_mutex has too.
  static const std::regex reads{
      R"(\b(?!AnyClock)\w+::now\s*\(|\b(clock_gettime|gettimeofday|timespec_get)\s*\()"
      R"(|\btime\s*\(\s*(nullptr|NULL|0)\s*\))"};
  Findings findings;
  for (const auto& [path, text] : tree) {
    if (!is_code(path) || !place_of(path) || path == clock_reader) continue;
    for_each_line(text, [&](int number, const std::string& line) {
      const auto code = line.substr(0, line.find("//"));
      if (std::regex_search(code, reads))
        findings.push_back(
            fmt::format("{}:{}: reads a clock itself; take sluice::Clock", path, number));
    });
  }
  return findings;
}

Findings check_threads(const SourceTree& tree) {
  static const std::regex starts{R"(std::(j?thread\s*(\w+\s*)?[{(]|async\s*\()|pthread_create)"};
  Findings findings;
  for (const auto& [path, text] : tree) {
    if (!is_code(path) || !path.starts_with("src/") || path.starts_with("src/cli/") ||
        path == thread_starter)
      continue;
    for_each_line(text, [&](int number, const std::string& line) {
      if (std::regex_search(line.substr(0, line.find("//")), starts))
        findings.push_back(fmt::format(
            "{}:{}: starts a thread that takes signals; take start_thread", path, number));
    });
  }
  return findings;
}

Findings check_headers(const SourceTree& tree) {
  Findings findings;
  for (const auto& [path, text] : tree)
    if (path.ends_with(".hpp") && text.find("\n#pragma once\n") == std::string::npos &&
        !text.starts_with("#pragma once\n"))
      findings.push_back(path + ":1: has no #pragma once");
  return findings;
}

Findings check_header_of_all(const SourceTree& tree) {
  std::set<std::string> reached;
  std::vector<std::string> next{"include/sluice/sluice.hpp"};
  while (!next.empty()) {
    const auto path = std::move(next.back());
    next.pop_back();
    if (!tree.contains(path) || !reached.insert(path).second) continue;
    std::istringstream lines{tree.at(path)};
    for (std::string line; std::getline(lines, line);)
      if (const auto include = include_of(line)) next.push_back("include/" + include->name);
  }
  Findings findings;
  for (const auto& [path, text] : tree)
    if (path.starts_with("include/sluice/") && !reached.contains(path))
      if (const auto place = place_of(path); place->folder != "sale")
        findings.push_back(
            fmt::format("include/sluice/sluice.hpp:1: lacks sluice/{}.hpp", noun_of(path)));
  return findings;
}

Findings check_sources_are_built(const SourceTree& tree) {
  Findings findings;
  for (const auto& [path, text] : tree)
    if ((path.ends_with(".cpp") || path.ends_with(".lua")) && !is_named_by_cmake(tree, path) &&
        !is_included_by_a_script(tree, path))
      findings.push_back(path + ":1: is named by no CMakeLists.txt");
  return findings;
}

}  // namespace sluice::floors
