#include "engine/differential/grammar.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <stdexcept>

namespace sluice::test {
namespace {

using namespace std::string_view_literals;

struct Kind {
  std::string_view name;
  std::string_view words;                       ///< between blanks
  std::span<const std::string_view> more = {};  ///< those with blanks in them, or nothing
};

constexpr std::array long_member{
    "longer than sixty-four bytes, so that no compact form of a "
    "collection may hold it any more"sv};
// No NUL comes first: to SORT ALPHA of Redis that is an empty text.
constexpr std::array odd_members{""sv, "\x01\0\xff\r\n"sv, long_member[0]};
constexpr std::array odd_values{""sv,
                                " 1"sv,
                                "hello world"sv,
                                "\0\x01\xff"sv,
                                "\rtwo\r\nlines\r\n"sv,
                                "-A \n\0line\n"sv,
                                "A \r\nb \r\n"sv};
constexpr std::array odd_ids{""sv, " 7"sv, "- 7"sv, " -1"sv, "7 "sv, "8-\t1"sv, "\n9"sv};
constexpr std::array nothing{""sv};
// All but the last ones are damaged so that no element can be added.
constexpr std::array hll_values{
    "HYLL\2\0\0\0\0\0\0\0\0\0\0\x80"sv,       "HYLL\0\0\0\0\0\0\0\0\0\0\0\x80"sv,
    "HYLL\1\0\0\0\0\0\0\0\0\0\0\x80"sv,       "HYLX\1\0\0\0\0\0\0\0\0\0\0\x80"sv,
    "HYLL\1\0\0\0\7\0\0\0\0\0\0\0\x7f\xff"sv, "HYLL\1\0\0\0\0\0\0\0\0\0\0\x80\x7f\xfc\x80\xfd"sv};
constexpr std::array libraries{
    "#!lua name=one\nredis.register_function('get', function(keys, args) return redis.call('GET', "
    "keys[1]) end)"sv,
    "#!lua name=one\nlocal n = 0 redis.register_function{function_name='count', "
    "description='counts', callback=function(keys, args) n = n + 1 redis.call('SET', 's1', n) "
    "return {n, #keys, args[1]} end}"sv,
    "#!lua name=two\nredis.register_function{function_name='get', flags={'no-writes', "
    "'allow-oom'}, callback=function(keys, args) return redis.call('GET', keys[1]) end}\n"
    "redis.register_function('set', function(keys, args) redis.call('SET', keys[1], args[1]) "
    "return {ok='set'} end)"sv,
    "#!lua name=three\nredis.register_function{function_name='ro', flags={'no-writes'}, "
    "callback=function(keys) return redis.pcall('SET', keys[1] or 'x', 1) end}"sv,
    "#!lua name=four\nredis.register_function('fails', function(keys) redis.call('SET', keys[1], "
    "7)\nerror('thrown') end)\nredis.register_function('wrong', function(keys) return "
    "redis.call('LPUSH', keys[1], 1) end)\nredis.register_function('tables', function(k, a) return "
    "{type(KEYS), 1} end)"sv,
    "#!lua name=four\nredis.register_function('sets', function(keys) redis.setresp(3) return "
    "{double=1.5} end)\nredis.register_function('global', function() x = 1 end)"sv,
    "#!lua name=five\nreturn 1"sv,
    "#!lua name=five\nredis.call('GET', 'x')"sv,
    "#!lua name=five\nerror('at load')"sv,
    "#!lua name=five\nredis.register_function('a', function() end, 1)"sv,
    "#!lua name=five\nredis.register_function('a')"sv,
    "#!lua name=five\nredis.register_function{function_name='a'}"sv,
    "#!lua name=five\nredis.register_function{callback=function() end}"sv,
    "#!lua name=five\nredis.register_function{function_name='a', callback=function() end, "
    "flags={'odd'}}"sv,
    "#!lua name=five\nredis.register_function{function_name='a', callback=function() end, x=1}"sv,
    "#!lua name=five\nredis.register_function('a b', function() end)"sv,
    "#!lua name=five\nredis.register_function('a', function() end) redis.register_function('a', "
    "function() end)"sv,
    "#!lua name=five\nredis.register_function(1, function() end)"sv,
    "#!lua name=five\nredis.register_function('a', 1)"sv,
    "#!lua name=five\nx = 1"sv,
    "#!lua name=five\nreturn nosuch"sv,
    "#!lua name=five\nlocal t = redis.nosuch"sv,
    "#!lua name=five\nthis is no Lua"sv,
    "#!lua name=fi-ve\nreturn 1"sv,
    "#!lua name=five name=six\nreturn 1"sv,
    "#!lua nome=five\nreturn 1"sv,
    "#!lua\nreturn 1"sv,
    "#!js name=five\nreturn 1"sv,
    "#!lua name=five"sv,
    "return 1"sv,
    "#!LUA name=five\nredis.register_function('Cased', function() return redis.REDIS_VERSION_NUM > "
    "1 end) redis.log(redis.LOG_DEBUG, 'loaded')"sv};
constexpr std::array lua_texts{
    "return redis.register_function"sv, "return redis.register_function('a', function() end)"sv,
    "return redis.call('FCALL', 'get', 1, KEYS[1])"sv, "return redis.call('FUNCTION', 'LIST')"sv};
constexpr std::array odd_limits{""sv, " 1"sv, "( 2"sv};

constexpr Kind kinds[] = {
    {"key", "s1 s2 s3 h1 h2 l1 l2 t1 t2 t3 z1 z2 z3 x1 x2 none"},
    {"any", "k0 k1 k2 k3 k4 k5"},
    {"str", "s1 s2 s3"},
    {"hash", "h1 h2"},
    {"list", "l1 l2"},
    {"set", "t1 t2 t3"},
    {"zset", "z1 z2 z3"},
    {"lexset", "y1 y2"},  // all scores are 0
    {"stream", "x1 x2"},
    {"group", "g1 g2"},
    {"consumer", "c1 c2"},
    {"member", "a b c d e aa ab AA foo foobarbaz 1 2 3 7 8 10 -7", odd_members},
    {"few", "a b 1 2", long_member},
    {"oldid", "1-1 1-2 2-1 3-1"},
    {"ids",
     "+6 7 007 5-+6 8-007 0x9 -0 -1 1- 1-1-1 +6-* 9-+ + - 18446744073709551616 "
     "18446744073709551615-18446744073709551615 00000000000000000000000000000000000000000011",
     odd_ids},
    {"edge",
     "9223372036854775807 9223372036854775806 9223372036854775 9223372036854776 "
     "9223372036854774808 9223370000000000000 9223370000000000 -9223372036854775808 0"},
    {"value", "0 1 -1 42 9223372036854775807 -9223372036854775808 abc 1.5 -0.25 3.0 1e3 007 foobar",
     odd_values},
    {"int", "0 1 2 -1 5 -3 100 9223372036854775807 -9223372036854775807"},
    {"small", "0 1 2 3 5"},
    {"positive", "1 2 3 10"},
    {"index", "0 1 2 3 5 -1 -2 -3 -100 100"},
    {"bit", "0 1 5 7 8 9 23 64 100"},
    {"float", "0 1 -1 0.5 2.25 -3.75 10 1e2 5.0e3 100000 1e30 -1e308 1e4000 5e-324 1e-320"},
    {"weight", "1 2 -1 0.5 10"},  // not 0: Redis is at odds with itself about 0 * inf
    {"score", "0 1 2 3 -1 1.5 -2.25 10 inf -inf 1e3"},
    {"limit", "0 1 (1 2 (2 -inf +inf inf (1.5 10 -1 1e400", odd_limits},
    {"lex", "- + [a (a [b (c [aa [foo ["},
    {"pattern", "* a* ? [a-c] [^a]* s? \\* *o* f*[rz] nothing"},
    {"seconds", "100 1000 100000 0 -1"},
    {"ms", "100000 5000000 0 -5"},
    {"bftype", "u8 i8 u1 i5 u63 i64 u64 i65 u16"},
    {"bfoffset", "0 1 #0 #1 #2 7 100 -1"},
    {"geo", "v1 v2 v3"},
    {"lonedge",
     "13.361389 15.087269 -122.4194 0 180 -180 179.9999 -179.9999 2.3522 13.5833 14.25 "
     "180.5 1e-7"},
    {"latedge",
     "38.115556 37.502669 37.7749 0 85.05112878 -85.05112878 85 -84.5 48.8566 37.3167 38 "
     "86 -1e-7 66.5 81"},
    {"radius", "0 1 10 56.4413 100 200 1000 2500.5 10000 100000 21000000 50000000 -1 1e10"},
    {"unit", "m km mi ft km km M"},
    {"hash52",
     "3479099956230698 3479447370796909 4503599627370495 4503599627370496 1 "
     "9223372036854775807 1e19 2e19 -5"},
    {"count", "p1 p2 p3 p4"},
    {"fewer", "q1 q2"},
    {"hllvalue", "HYLL", hll_values},
    {"library", "", libraries},
    {"luatext", "", lua_texts},
    {"libname", "one two three four five nothing"},
    {"funname", "get get count set ro fails wrong tables sets global cased nothing"},
    {"junk",
     "abc -1 0 9223372036854775808 -9223372036854775808 1.5 nan infinity 0x10 NX COUNT "
     "WITHSCORES LIMIT * $ 1-1 - (",
     nothing},
};

constexpr std::array typed_keys{"str"sv, "hash"sv, "list"sv, "set"sv, "zset"sv, "stream"sv};

/// Of streams the ids are made for their own keys.
constexpr std::array mixed_keys{"key"sv, "str"sv, "hash"sv, "list"sv, "set"sv, "zset"sv};

std::vector<std::string_view> tokens_of(std::string_view text) {
  std::vector<std::string_view> tokens;
  while (!text.empty()) {
    const auto end = std::min(text.find(' '), text.size());
    if (end > 0) tokens.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return tokens;
}

std::map<std::string_view, std::vector<std::string_view>> words_by_kind() {
  std::map<std::string_view, std::vector<std::string_view>> all;
  for (const auto& kind : kinds) {
    auto words = tokens_of(kind.words);
    words.insert(words.end(), kind.more.begin(), kind.more.end());
    all.emplace(kind.name, std::move(words));
  }
  return all;
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

/// A SCAN without its COUNT may end anywhere, a draw without its count is one, a set that is not
/// sorted has an order only where the result is stored, and the sets that are read by name need
/// equal scores.
bool may_be_spoilt(const Command& command) {
  static constexpr std::array parts{"SCAN"sv, "RAND"sv, "SPOP"sv};
  const bool scores = command[0] == "ZADD" && command[1].starts_with('y');
  const bool unsorted = std::ranges::count(command, "nosort") != 0;
  return !scores && !unsorted && std::ranges::none_of(parts, [&](std::string_view part) {
    return command[0].find(part) != std::string::npos;
  });
}

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Grammar::Grammar(std::uint64_t seed, std::span<const std::string_view> templates, Keys keys)
    : random_(seed), keys_(keys) {
  add(templates);
}

void Grammar::add(std::span<const std::string_view> templates) {
  for (const auto text : templates) templates_.push_back(tokens_of(text));
}

Command Grammar::next() {
  ++step_;
  Command command;
  expand(templates_[below(templates_.size())], command);
  if (one_in(25) && may_be_spoilt(command)) spoil(command);
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
  switch (below(4)) {
    case 0: command.resize(at); break;
    case 3:
      command.insert(command.begin() + static_cast<std::ptrdiff_t>(at), command[at - 1]);
      break;
    case 1: command.insert(command.begin() + static_cast<std::ptrdiff_t>(at), word("junk")); break;
    default:
      if (at < command.size()) command[at] = word("junk");
  }
}

std::string Grammar::word(std::string_view kind) {
  if (kind == "newid")
    return fmt::format("{}-{}", step_, one_in(4) ? "*" : std::to_string(below(3)));
  if (kind == "id")
    return one_in(3) ? std::to_string(below(step_ + 1))
                     : fmt::format("{}-{}", below(step_ + 1), below(3));
  if (kind == "future")
    return std::to_string(now_ms() / 1000 + 1000 * static_cast<std::int64_t>(1 + below(9)));
  if (kind == "future_ms")
    return std::to_string(now_ms() + 1'000'000 * static_cast<std::int64_t>(1 + below(9)));
  if (kind == "lon" || kind == "lat") {
    const auto near = kind == "lon" ? 13 : 37;  // places near each other, and anywhere
    if (one_in(6)) return word(kind == "lon" ? "lonedge" : "latedge");
    if (one_in(4))
      return fmt::format("{:.6f}", (kind == "lon" ? 360. : 170.) *
                                       (static_cast<double>(below(1000000)) / 1e6 - 0.5));
    return fmt::format("{}.{:06}", near + below(3), below(1000000));
  }
  if (kind == "number") return std::to_string(below(600));
  if (keys_ == Keys::mixed && std::ranges::count(mixed_keys, kind) != 0) kind = "any";
  if (std::ranges::count(typed_keys, kind) != 0 && one_in(15))
    kind = "key";  // the wrong type, sometimes
  static const auto words = words_by_kind();
  const auto found = words.find(kind);
  if (found == words.end()) throw std::logic_error{fmt::format("no such kind: <{}>", kind)};
  return std::string{found->second[below(found->second.size())]};
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
