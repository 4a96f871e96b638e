#include "proxy/storm/redis_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "proxy/storm/mutation.hpp"
#include "resp/command_table.hpp"
#include "resp/letters.hpp"
#include "resp/writer.hpp"

namespace sluice::test {
namespace {

using Words = std::vector<std::string>;

constexpr std::string_view keys[] = {"h:s0", "h:s1", "h:l0",  "h:l1",    "h:z0", "h:e0", "h:m0",
                                     "h:x0", "h:x1", "h:x0",  "streams", "",     "keys", "{t}a",
                                     "{t}b", "h:n",  "block", "get",     "*",    "h:new"};
constexpr std::string_view strange_words[] = {
    "BLOCK", "0",        "STREAMS", "streams", "COUNT",    "GROUP",  "NOACK", ">",     "$",
    "h:s0",  "h:x0",     "h:l0",    "",        "KEYS",     "STORE",  "BY",    "GET",   "LIMIT",
    "EX",    "NX",       "XX",      "MATCH",   "LEFT",     "ASC",    "*",     "REPLY", "OFF",
    "block", "g",        "SKIP",    "ON",      "FLUSHALL", "CONFIG", "1",     "-1",    "WITHSCORES",
    "get",   "FUNCTION", "SETINFO", "ALPHA",   "\r\n",     "MAXLEN", "~",     "3",     "TYPE"};
/// Commands whose words have an order that the table of commands does not tell.
constexpr std::string_view patterns[] = {
    "XREADGROUP GROUP <group> <group> BLOCK <n> STREAMS <stream> >",
    "XREADGROUP GROUP <group> <group> COUNT <n> STREAMS <stream> >",
    "XREADGROUP GROUP <group> <group> NOACK BLOCK <n> STREAMS <stream..> <strange..>",
    "XREAD BLOCK <n> STREAMS <stream> $",
    "XREAD COUNT <n> BLOCK <n> STREAMS <stream> <n>",
    "XGROUP CREATE <stream> <group> $ MKSTREAM",
    "XADD <stream> MAXLEN 3 * <word+word>",
    "BLPOP <key..> <n>",
    "BLMOVE <key> <key> LEFT RIGHT <n>",
    "BLMPOP <n> <n> <key..> LEFT",
    "BZMPOP <n> <n> <key..> MIN",
    "LMPOP <n> <key..> LEFT",
    "SET <key> <word> <strange> <n>",
    "SET <key> <word>",
    "GET <key>",
    "MGET <key..>",
    "MSET <key+word..>",
    "DEL <key..>",
    "EVAL <script> <n> <key..>",
    "EVALSHA <sha> <n> <key..>",
    "FCALL f <n> <key..>",
    "SCRIPT LOAD <script>",
    "SORT <key> BY <word> GET <word> STORE <key>",
    "ZUNIONSTORE <key> <n> <key..>",
    "ZADD <key> <n> <word>",
    "GEORADIUS <key> 1 1 1 km STORE <key>",
    "RPUSH <key> <word..>",
    "HSET <key> <word+word>",
    "SUBSCRIBE <word..>",
    "PSUBSCRIBE <word..>",
    "SSUBSCRIBE <word>",
    "UNSUBSCRIBE",
    "PUBLISH <word> <word>",
    "MULTI",
    "MULTI",
    "EXEC",
    "WATCH <key>",
    "SELECT <n>",
    "HELLO <n>",
    "HELLO 3",
    "RESET",
    "CLIENT REPLY <strange>",
    "CLIENT SETNAME <word>",
    "CLIENT TRACKING ON",
    "SCAN <n> COUNT <n>",
    "KEYS <word>",
    "PING <word>",
    "OBJECT ENCODING <key>",
    "CONFIG <strange> <word>",
    "FLUSHALL",
    "DEBUG SLEEP 100",
    "MIGRATE 127.0.0.1 1 <key> 0 1 KEYS <key..>"};
constexpr std::string_view scripts[] = {"return 1",
                                        "return KEYS",
                                        "return redis.call('get', KEYS[1])",
                                        "return redis.status_reply('x')",
                                        "return redis.error_reply('x\\r\\n+x')",
                                        "return",
                                        "return {1, {2}, 'x\\r\\n'}",
                                        "syntax error"};

std::string number(Random& random) {
  if (one_in(random, 5)) return odd_number(random);
  return one_in(random, 2) ? "0" : fmt::format("{}", up_to(random, 4));
}

std::string word(Random& random) {
  static constexpr std::size_t sizes[] = {100, 2048, 16384, 40000, 65536, 70000};
  if (one_in(random, 60)) return std::string(one_of(sizes, random), 'w');
  if (one_in(random, 8)) return random_value(random).substr(0, 40);
  return std::string{one_in(random, 2) ? one_of(strange_words, random) : one_of(keys, random)};
}

std::string any_of(std::span<const std::string_view> words, Random& random) {
  return std::string{one_of(words, random)};
}

const Vocabulary& vocabulary() {
  static const Vocabulary all{
      {"key", [](Random& random) { return any_of(keys, random); }},
      {"stream", [](Random& random) { return one_in(random, 2) ? "h:x0" : "h:x1"; }},
      {"group", [](Random& random) { return any_of(group_names, random); }},
      {"strange", [](Random& random) { return any_of(strange_words, random); }},
      {"script", [](Random& random) { return any_of(scripts, random); }},
      {"sha", [](Random&) { return std::string{"e0e1f9fabfc9d4800c877a703b823ac0578ff8db"}; }},
      {"word", word},
      {"n", number}};
  return all;
}

/// As many words as the command wants, with keys where it looks for them.
Words words_by_table(Random& random) {
  const auto& spec = one_of(resp::all_commands(), random);
  const auto bar = spec.name.find('|');
  Words words{std::string{spec.name.substr(0, bar)}};
  if (bar != std::string_view::npos) words.emplace_back(spec.name.substr(bar + 1));
  auto size = static_cast<std::size_t>(std::abs(spec.arity));
  if (spec.arity < 0) size += up_to(random, 4);
  while (words.size() < size) {
    const auto at = static_cast<int>(words.size());
    const bool is_last = spec.last_key < 0 || at <= spec.last_key;
    const bool is_key = spec.first_key != 0 && at >= spec.first_key && is_last &&
                        (at - spec.first_key) % std::max(spec.key_step, 1) == 0;
    const bool is_count = spec.rule == resp::KeyRule::counted && at == spec.rule_at;
    if (is_key || (spec.rule != resp::KeyRule::none && !is_count && one_in(random, 2)))
      words.push_back(any_of(keys, random));
    else
      words.push_back(is_count || one_in(random, 3) ? number(random) : word(random));
  }
  return words;
}

/// A count of elements below zero makes Redis draw so many, for minutes.
bool takes_for_ever(const Words& words) {
  constexpr std::size_t longest = 4;
  return std::ranges::any_of(words, [](const std::string& text) {
    return (text.starts_with('-') || text.find(" -") != std::string::npos) && text.size() > longest;
  });
}

bool is_drawn(const Words& words) {
  return std::ranges::any_of(words, [](const std::string& text) {
    std::string name = text.substr(0, 40);
    std::ranges::transform(name, name.begin(), resp::lower);
    return name.find("randmember") != std::string::npos ||
           name.find("randfield") != std::string::npos;
  });
}

std::string encoded(const Words& words, Random& random) {
  if (one_in(random, 3)) {
    std::string line;
    for (const auto& each : words) line += (line.empty() ? "" : " ") + each;
    return line + "\r\n";
  }
  std::string bytes;
  const std::vector<std::string_view> views{words.begin(), words.end()};
  resp::append_command(bytes, views);
  return bytes;
}

}  // namespace

std::string redis_request(Random& random) {
  for (;;) {
    auto words = one_in(random, 2) ? words_by_table(random)
                                   : fill(one_of(patterns, random), vocabulary(), random, 3);
    if (one_in(random, 2)) mutate_words(words, strange_words, random);
    if (words.empty() || (is_drawn(words) && takes_for_ever(words))) continue;
    auto bytes = encoded(words, random);
    if (one_in(random, 4)) mutate_bytes(bytes, random);
    return bytes;
  }
}

}  // namespace sluice::test
