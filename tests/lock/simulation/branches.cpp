#include "lock/simulation/branches.hpp"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "support/paths.hpp"

namespace sluice::simulation {
namespace {

/// Holds that hang on no process have no party in the simulation; their tests are LeasedLockSim.
constexpr std::string_view not_played = "lock/mutex/leased_lock.lua";

struct Word {
  std::string_view text;
  std::size_t end;  ///< where it ends
};

/// The words and brackets of a script, without its comments and texts.
class WordReader {
 public:
  explicit WordReader(std::string_view text) : text_(text) {}

  /// Empty at the end.
  Word next() {
    while (at_ < text_.size()) {
      if (skip_comment() || skip_text()) continue;
      const auto from = at_++;
      if (is_letter(text_[from])) {
        while (at_ < text_.size() && is_letter(text_[at_])) ++at_;
        return {text_.substr(from, at_ - from), at_};
      }
      if (text_[from] == '(' || text_[from] == ')') return {text_.substr(from, 1), at_};
    }
    return {{}, at_};
  }

 private:
  static bool is_letter(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  }
  bool skip_comment() {
    if (!text_.substr(at_).starts_with("--")) return false;
    at_ = std::min(text_.find('\n', at_), text_.size());
    return true;
  }
  bool skip_text() {
    const char quote = text_[at_];
    if (quote != '\'' && quote != '"') return false;
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_)
      if (text_[at_] == '\\') ++at_;
    ++at_;
    return true;
  }

  const std::string_view text_;
  std::size_t at_ = 0;
};

struct Block {
  enum class Kind { condition, loop, function, other };
  Kind kind;
  std::size_t line = 0;  ///< where it begins
  bool has_else = false;
};

std::string trimmed(std::string_view text) {
  const auto from = text.find_first_not_of(' ');
  return from == std::string_view::npos ? std::string{} : std::string{text.substr(from)};
}

}  // namespace

Branches::Branches() {
  const std::filesystem::path root = test::source_path("src");
  for (const char* const room : {"lock", "store"})  // what the scripts of locks consist of
    for (const auto& entry : std::filesystem::recursive_directory_iterator{root / room})
      if (entry.path().extension() == ".lua")
        files_[std::filesystem::relative(entry.path(), root).string()];
  for (auto& [file, lines] : files_) {
    std::ifstream stream{root / file};
    std::string text;
    for (std::size_t number = 1; std::getline(stream, text); ++number)
      lines.push_back({file, number, text});
  }
  for (const auto& [file, lines] : files_)
    if (file.starts_with("lock/") && file != not_played) add_file(file);
}

/// The scripts of a file.
void Branches::add_file(const std::string& file) {
  const auto folder = file.substr(0, file.rfind('/') + 1);
  bool is_sectioned = false;
  for (const auto& line : files_.at(file)) {
    const bool is_script = line.text.starts_with("-- script ");
    is_sectioned |= is_script || line.text.starts_with("-- part ");
    if (is_script)
      marked_[folder + line.text.substr(10)] = mark(with_includes(lines_of(file, line.text)));
  }
  if (is_sectioned || !file.ends_with(".lua")) return;
  marked_[file.substr(0, file.size() - 4)] = mark(with_includes(files_.at(file)));
}

Branches::Lines Branches::lines_of(const std::string& file, std::string_view heading) const {
  Lines lines;
  bool inside = false;
  for (const auto& line : files_.at(file)) {
    if (line.text.starts_with("-- script ") || line.text.starts_with("-- part ")) {
      inside = line.text == heading;
    } else if (inside) {
      lines.push_back(line);
    }
  }
  while (!lines.empty() && lines.back().text.empty()) lines.pop_back();
  return lines;
}

Branches::Lines Branches::with_includes(const Lines& lines) const {
  constexpr std::string_view include = "-- include ";
  Lines all;
  for (const auto& line : lines) {
    if (!line.text.starts_with(include)) {
      all.push_back(line);
      continue;
    }
    const auto what = line.text.substr(include.size());
    const auto space = what.find(' ');
    const auto file = what.substr(0, space);
    const auto part = space == std::string::npos
                          ? files_.at(file)
                          : lines_of(file, "-- part " + what.substr(space + 1));
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

std::size_t Branches::branch_of(const Line& line, std::string_view kind, std::size_t which) {
  const auto name =
      fmt::format("{}:{} {}{}: {}", line.file, line.number, kind,
                  which > 0 ? fmt::format(" {}", which + 1) : std::string{}, trimmed(line.text));
  const auto [found, is_new] = numbers_.emplace(name, branches_.size());
  if (is_new) {
    branches_.push_back({.name = name});
    ++missed_;
  }
  return found->second;
}

std::string Branches::mark(const Lines& lines) {
  std::string text;
  std::vector<std::size_t> begins;
  for (const auto& line : lines) {
    begins.push_back(text.size());
    text += line.text + '\n';
  }
  std::map<std::pair<std::size_t, std::string_view>, std::size_t> in_line;
  std::string marked;
  std::size_t copied = 0;
  const auto line_at = [&](std::size_t at) {
    return static_cast<std::size_t>(std::ranges::upper_bound(begins, at) - begins.begin()) - 1;
  };
  const auto put = [&](std::size_t at, std::size_t line, std::string_view kind, bool as_else) {
    const auto number = branch_of(lines[line], kind, in_line[{line, kind}]++);
    marked += text.substr(copied, at - copied);
    marked += fmt::format("{} redis.call('PUBLISH', '{}', '{}'); ", as_else ? " else" : "", channel,
                          number);
    copied = at;
  };
  std::vector<Block> blocks;
  WordReader words{text};
  bool in_head = false;  // of a function
  for (Word word = words.next(); !word.text.empty(); word = words.next()) {
    const auto line = line_at(word.end - 1);
    if (word.text == ")") {
      if (in_head) {
        in_head = false;
        put(word.end, line, "function", false);
      }
    } else if (word.text == "if") {
      blocks.push_back({Block::Kind::condition, line});
    } else if (word.text == "for" || word.text == "while") {
      blocks.push_back({Block::Kind::loop, line});
    } else if (word.text == "function") {
      blocks.push_back({Block::Kind::function, line});
      in_head = true;
    } else if (word.text == "repeat") {
      blocks.push_back({Block::Kind::other, line});
    } else if (word.text == "then") {
      put(word.end, line, "then", false);
    } else if (word.text == "else") {
      blocks.back().has_else = true;
      put(word.end, line, "else", false);
    } else if (word.text == "do") {
      const bool of_loop = !blocks.empty() && blocks.back().kind == Block::Kind::loop;
      if (of_loop) {
        blocks.back().kind = Block::Kind::other;  // the next `do` is another's
        put(word.end, line, "loop", false);
      } else {
        blocks.push_back({Block::Kind::other, line});
      }
    } else if (word.text == "end" || word.text == "until") {
      const Block block = blocks.back();
      blocks.pop_back();
      if (block.kind == Block::Kind::condition && !block.has_else)
        put(word.end - word.text.size(), block.line, "past", true);
    }
  }
  if (!blocks.empty()) throw std::logic_error{"a block of a script has no end"};
  return marked + text.substr(copied);
}

std::string Branches::mark(const Script& script) {
  const auto found = marked_.find(std::string{script.name});
  if (found == marked_.end())
    throw std::logic_error{fmt::format("script {} is in no file of src/lock", script.name)};
  return found->second;
}

void Branches::reached(std::string_view number) {
  std::size_t place = 0;
  std::from_chars(number.data(), number.data() + number.size(), place);
  Branch& branch = branches_.at(place);
  if (branch.count++ == 0) --missed_;
}

std::map<std::string, std::uint64_t> Branches::counts() const {
  std::map<std::string, std::uint64_t> counts;
  for (const auto& branch : branches_) counts[branch.name] = branch.count;
  return counts;
}

}  // namespace sluice::simulation
