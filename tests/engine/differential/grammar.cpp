#include "engine/differential/grammar.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>

namespace sluice::test {
namespace {

using Words = std::span<const std::string_view>;

struct Kind {
  std::string_view name;
  Words words;
};

using namespace std::string_view_literals;
constexpr std::array keys{"s1"sv, "s2"sv, "s3"sv, "h1"sv, "h2"sv, "l1"sv, "l2"sv, "t1"sv,
                          "t2"sv, "t3"sv, "z1"sv, "z2"sv, "z3"sv, "x1"sv, "x2"sv, "none"sv};
constexpr std::array strings{"s1"sv, "s2"sv, "s3"sv};
constexpr std::array hashes{"h1"sv, "h2"sv};
constexpr std::array lists{"l1"sv, "l2"sv};
constexpr std::array sets{"t1"sv, "t2"sv, "t3"sv};
constexpr std::array sorted_sets{"z1"sv, "z2"sv, "z3"sv};
constexpr std::array lex_sets{"y1"sv, "y2"sv};  // all scores are 0
constexpr std::array streams{"x1"sv, "x2"sv};
constexpr std::array groups{"g1"sv, "g2"sv};
constexpr std::array consumers{"c1"sv, "c2"sv};
constexpr std::array members{"a"sv,  "b"sv,  "c"sv, "d"sv,   "e"sv,          "aa"sv,          "ab"sv,
                             "1"sv,  "2"sv,  "3"sv, "10"sv,  "-7"sv,         ""sv,            "\0\xff\r\n"sv,
                             "AA"sv, "7"sv,  "8"sv, "foo"sv, "foobarbaz"sv,  "longer than sixty-four bytes, so that no compact form of a "
                                                                             "collection may hold it any more"sv};
constexpr std::array values{"0"sv, "1"sv, "-1"sv, "42"sv, "9223372036854775807"sv, "-9223372036854775808"sv, "abc"sv, ""sv,
                            "1.5"sv, "-0.25"sv, "3.0"sv, "1e3"sv, " 1"sv, "007"sv, "hello world"sv, "\0\x01\xff"sv, "foobar"sv};
constexpr std::array integers{"0"sv, "1"sv, "2"sv, "-1"sv, "5"sv, "-3"sv, "100"sv, "9223372036854775807"sv, "-9223372036854775807"sv};
constexpr std::array small{"0"sv, "1"sv, "2"sv, "3"sv, "5"sv};
constexpr std::array positive{"1"sv, "2"sv, "3"sv, "10"sv};
constexpr std::array indexes{"0"sv, "1"sv, "2"sv, "3"sv, "5"sv, "-1"sv, "-2"sv, "-3"sv, "-100"sv, "100"sv};
constexpr std::array bits{"0"sv, "1"sv, "5"sv, "7"sv, "8"sv, "9"sv, "23"sv, "64"sv, "100"sv};
constexpr std::array floats{"0"sv, "1"sv, "-1"sv, "0.5"sv, "2.25"sv, "-3.75"sv, "10"sv, "1e2"sv, "5.0e3"sv, "100000"sv};
constexpr std::array weights{"1"sv, "2"sv, "-1"sv, "0.5"sv, "10"sv};  // not 0: Redis is at odds with itself about 0 * inf
constexpr std::array scores{"0"sv, "1"sv, "2"sv, "3"sv, "-1"sv, "1.5"sv, "-2.25"sv, "10"sv, "inf"sv, "-inf"sv, "1e3"sv};
constexpr std::array limits{"0"sv, "1"sv, "(1"sv, "2"sv, "(2"sv, "-inf"sv, "+inf"sv, "inf"sv, "(1.5"sv, "10"sv, "-1"sv};
constexpr std::array lex_limits{"-"sv, "+"sv, "[a"sv, "(a"sv, "[b"sv, "(c"sv, "[aa"sv, "[foo"sv, "["sv};
constexpr std::array patterns{"*"sv, "a*"sv, "?"sv, "[a-c]"sv, "[^a]*"sv, "s?"sv, "\\*"sv, "*o*"sv, "f*[rz]"sv, "nothing"sv};
constexpr std::array seconds{"100"sv, "1000"sv, "100000"sv, "0"sv, "-1"sv};
constexpr std::array milliseconds{"100000"sv, "5000000"sv, "0"sv, "-5"sv};
constexpr std::array junk{""sv,       "abc"sv, "-1"sv, "0"sv, "9223372036854775808"sv, "-9223372036854775808"sv, "1.5"sv, "nan"sv,
                          "infinity"sv, "+1"sv,  "0x10"sv, "NX"sv, "COUNT"sv, "WITHSCORES"sv, "LIMIT"sv, "*"sv, "$"sv, "1-1"sv, "-"sv, "("sv};
constexpr std::array bitfield_types{"u8"sv, "i8"sv, "u1"sv, "i5"sv, "u63"sv, "i64"sv, "u64"sv, "i65"sv, "u16"sv};
constexpr std::array bitfield_offsets{"0"sv, "1"sv, "#0"sv, "#1"sv, "#2"sv, "7"sv, "100"sv, "-1"sv};

constexpr std::array kinds{
    Kind{"key", keys},          Kind{"str", strings},          Kind{"hash", hashes},
    Kind{"list", lists},        Kind{"set", sets},             Kind{"zset", sorted_sets},
    Kind{"lexset", lex_sets},
    Kind{"stream", streams},    Kind{"group", groups},         Kind{"consumer", consumers},
    Kind{"member", members},    Kind{"value", values},         Kind{"int", integers},
    Kind{"small", small},       Kind{"positive", positive},    Kind{"index", indexes},
    Kind{"bit", bits},          Kind{"float", floats},         Kind{"score", scores},
    Kind{"limit", limits},      Kind{"lex", lex_limits},       Kind{"pattern", patterns},
    Kind{"seconds", seconds},   Kind{"ms", milliseconds},      Kind{"junk", junk},
    Kind{"weight", weights},
    Kind{"bftype", bitfield_types}, Kind{"bfoffset", bitfield_offsets},
};

constexpr std::array typed_keys{"str"sv, "hash"sv, "list"sv, "set"sv, "zset"sv, "stream"sv};

std::vector<std::string_view> tokens_of(std::string_view text) {
  std::vector<std::string_view> tokens;
  while (!text.empty()) {
    const auto end = std::min(text.find(' '), text.size());
    if (end > 0) tokens.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return tokens;
}

/// How many tokens the group takes that begins at tokens[0], with both its brackets.
std::size_t group_size(std::span<const std::string_view> tokens) {
  int depth = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] == "[" || tokens[i] == "(" || tokens[i] == "{") ++depth;
    if (tokens[i] == "]" || tokens[i] == ")" || tokens[i] == "}") --depth;
    if (depth == 0) return i + 1;
  }
  throw std::logic_error{"a template with an open bracket"};
}

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

Grammar::Grammar(std::uint64_t seed, std::span<const std::string_view> templates) : random_(seed) {
  for (const auto text : templates) templates_.push_back(tokens_of(text));
}

Command Grammar::next() {
  ++step_;
  Command command;
  expand(templates_[below(templates_.size())], command);
  // A SCAN without its COUNT may end anywhere.
  if (one_in(25) && command[0].find("SCAN") == std::string::npos) spoil(command);
  return command;
}

void Grammar::expand(Tokens tokens, Command& out) {
  while (!tokens.empty()) {
    const auto first = tokens.front();
    if (first != "[" && first != "(" && first != "{") {
      const auto kind = first.find('<');  // "(<id>" is a bracket and an id
      out.emplace_back(first.substr(0, kind));
      if (kind != first.npos) out.back() += word(first.substr(kind + 1, first.size() - kind - 2));
      tokens = tokens.subspan(1);
      continue;
    }
    const auto size = group_size(tokens);
    const auto inside = tokens.subspan(1, size - 2);
    if (first == "(" || (first == "[" && one_in(2))) choose(inside, out);
    if (first == "{")
      for (auto left = 1 + below(3); left > 0; --left) expand(inside, out);
    tokens = tokens.subspan(size);
  }
}

void Grammar::choose(Tokens alternatives, Command& out) {
  std::vector<Tokens> options;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= alternatives.size();) {
    if (i == alternatives.size() || alternatives[i] == "|") {
      options.push_back(alternatives.subspan(begin, i - begin));
      begin = ++i;
    } else {
      i += group_size(alternatives.subspan(i));
    }
  }
  expand(options[below(options.size())], out);
}

void Grammar::spoil(Command& command) {
  const auto at = 1 + below(command.size());
  switch (below(3)) {
    case 0: command.resize(at); break;
    case 1: command.insert(command.begin() + static_cast<std::ptrdiff_t>(at), word("junk")); break;
    default:
      if (at < command.size()) command[at] = word("junk");
  }
}

std::string Grammar::word(std::string_view kind) {
  if (kind == "newid") return fmt::format("{}-{}", step_, one_in(4) ? "*" : std::to_string(below(3)));
  if (kind == "id") return one_in(3) ? std::to_string(below(step_ + 1)) : fmt::format("{}-{}", below(step_ + 1), below(3));
  if (kind == "future") return std::to_string(now_ms() / 1000 + 1000 * static_cast<std::int64_t>(1 + below(9)));
  if (kind == "future_ms") return std::to_string(now_ms() + 1'000'000 * static_cast<std::int64_t>(1 + below(9)));
  if (std::ranges::count(typed_keys, kind) != 0 && one_in(15)) kind = "key";  // the wrong type, sometimes
  const auto* row = std::ranges::find(kinds, kind, &Kind::name);
  if (row == kinds.end()) throw std::logic_error{fmt::format("no such kind: <{}>", kind)};
  return std::string{row->words[below(row->words.size())]};
}

std::string to_line(const Command& command) {
  std::string line;
  for (const auto& word : command) {
    if (!line.empty()) line += ' ';
    const bool plain = !word.empty() && std::ranges::all_of(word, [](unsigned char c) {
      return c > 0x20 && c < 0x7f && c != '"' && c != '\'' && c != '\\';
    });
    if (plain) {
      line += word;
      continue;
    }
    line += '"';
    for (const unsigned char c : word)
      if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\')
        line += fmt::format("\\x{:02x}", c);
      else
        line += static_cast<char>(c);
    line += '"';
  }
  return line;
}

}  // namespace sluice::test
