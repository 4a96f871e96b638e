// Rights against those of a running redis-server: random users, what each may do by ACL DRYRUN, and
// the words of refusals. SLUICE_LONG=n makes it n times as long, SLUICE_SEED repeats it.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <set>

#include "front/rights.hpp"
#include "proxy/flow/request_stream.hpp"
#include "proxy/redis/taught_commands.hpp"
#include "proxy/support/asking.hpp"
#include "proxy/support/planning.hpp"
#include "resp/told_commands.hpp"
#include "sluice/error.hpp"
#include "support/plain_client.hpp"
#include "support/redis_server.hpp"

namespace sluice::proxy {
using front::Denied;
namespace {

using Texts = std::vector<std::string>;

WordList words_in(const Texts& texts) { return {texts.begin(), texts.end()}; }

std::string joined(const Texts& texts) {
  std::string all;
  for (const auto& text : texts) all += (all.empty() ? "" : " ") + text;
  return all;
}

/// Lines whose keys stand in no fixed place, or are used as their options say.
constexpr const char* forms[] = {
    "SET <key> v",
    "SET <key> v EX 10 GET",
    "BITFIELD <key> GET u8 0",
    "BITFIELD <key> SET u8 0 1",
    "BITFIELD <key> OVERFLOW FAIL GET u8 0 INCRBY u8 0 1",
    "COPY <key> <key>",
    "RENAME <key> <key>",
    "MSET <key> v <key> v",
    "BITOP AND <key> <key> <key>",
    "EVAL x 2 <key> <key> a",
    "EVAL x 0",
    "EVAL_RO x 1 <key>",
    "EVALSHA x 1 <key>",
    "FCALL f 2 <key> <key>",
    "XREAD COUNT 1 STREAMS <key> <key> 0 0",
    "XREADGROUP GROUP g c STREAMS <key> >",
    "XADD <key> * f v",
    "ZUNIONSTORE <key> 2 <key> <key>",
    "ZINTERSTORE <key> 1 <key> WEIGHTS 2",
    "ZDIFF 2 <key> <key>",
    "ZINTERCARD 2 <key> <key>",
    "ZMPOP 1 <key> MIN",
    "LMPOP 2 <key> <key> LEFT",
    "BLMPOP 0 1 <key> LEFT",
    "BLPOP <key> <key> 0",
    "LMOVE <key> <key> LEFT LEFT",
    "SMOVE <key> <key> m",
    "SINTERSTORE <key> <key> <key>",
    "PFMERGE <key> <key>",
    "PFCOUNT <key> <key>",
    "SORT <key>",
    "SORT <key> STORE <key>",
    "SORT <key> BY nosort STORE <key>",
    "GEORADIUS <key> 0 0 1 m",
    "GEORADIUS <key> 0 0 1 m STORE <key>",
    "GEORADIUS_RO <key> 0 0 1 m",
    "GEOSEARCHSTORE <key> <key> FROMLONLAT 0 0 BYRADIUS 1 m",
    "ZRANGESTORE <key> <key> 0 -1",
    "MIGRATE h 1 <key> 0 1",
    "EXISTS <key> <key>",
    "TOUCH <key>",
    "WATCH <key> <key>",
    "TYPE <key>",
    "STRLEN <key>",
    "OBJECT ENCODING <key>",
    "MEMORY USAGE <key>",
    "PUBLISH <channel> hello",
    "SPUBLISH <channel> hello",
    "SUBSCRIBE <channel> <channel>",
    "SSUBSCRIBE <channel>",
    "PSUBSCRIBE <channel> <channel>",
    "UNSUBSCRIBE <channel>",
    "PUNSUBSCRIBE <channel>",
    "PUBSUB NUMSUB <channel>",
    "SELECT 0",
    "SELECT 1",
    "CONFIG GET maxmemory",
    "CLIENT ID",
    "CLIENT KILL TYPE normal",
    "SCRIPT LOAD x",
    "PING",
    "HELLO 3",
    "COMMAND",
};

class RightsOfRedis : public testing::Test {
 protected:
  static constexpr std::size_t users = 150, lines_each = 60;

  void SetUp() override {
    RecordProperty("seed", std::to_string(seed));
    for (const auto& spec : resp::all_commands())
      if (told.contains(std::string{spec.name}) && spec.name != "wait")  // which newer ones moved
        known.push_back(&spec);
  }

  std::size_t below(std::size_t end) { return random() % end; }
  bool once_in(std::size_t n) { return below(n) == 0; }
  template <class Things>
  const auto& one_of(const Things& things) {
    return *(std::begin(things) + static_cast<std::ptrdiff_t>(below(std::size(things))));
  }

  std::string glob() {
    static constexpr const char* pieces[] = {"a", "b", "c", "*",     "?",   "[ab]", "[^a]",
                                             ":", "a", "b", "[a-b]", "\\a", "[",    "*a"};
    std::string pattern;
    for (auto left = below(4); left > 0; --left) pattern += one_of(pieces);
    return pattern;
  }
  std::string name() {
    std::string text;
    for (auto left = below(4); left > 0; --left) text += one_of(std::string_view{"aabbc:*["});
    return text.empty() ? "a" : text;
  }
  std::string command_name() { return std::string{one_of(known)->name}; }

  std::string word() {
    static constexpr const char* plain[] = {
        "allcommands",   "+@all",         "nocommands", "-@all",
        "allkeys",       "resetkeys",     "~*",         "&*",
        "allchannels",   "resetchannels", "+select|1",  "-select|1",
        "+config|get",   "-config",       "+client",    "-client|kill",
        "+debug|JMAP",   "%R~*",          "%W~*",       "+nonsense",
        "+@nonsense",    "%X~a",          "%~a",        "+config|nonsense",
        "+get|x",        "-get",          "%RR~a",      "%rw~a",
        "ALLKEYS",       "+GET",          "+@READ",     "+config|",
        "+config|get|x", "nonsense",      "+@",         "+",
    };
    // What is refused spoils the whole user, so it comes seldom.
    switch (below(9)) {
      case 0: return once_in(4) ? one_of(plain) : "resetkeys";
      case 1: return "+" + command_name();
      case 2: return "-" + command_name();
      case 3: return (once_in(3) ? "-@" : "+@") + std::string{one_of(resp::all_categories()).name};
      case 4: return "~" + glob();
      case 5: return "%R~" + glob();
      case 6: return "%W~" + glob();
      case 7: return "&" + glob();
      default: return once_in(2) ? "+@all" : "&" + name();
    }
  }
  Texts rights() {
    Texts words;
    for (auto left = 1 + below(12); left > 0; --left) {
      if (!once_in(8)) {
        words.push_back(word());
        continue;
      }
      std::string selector = "(";
      for (auto inside = below(4); inside > 0; --inside)
        selector += word() + (inside > 1 ? " " : "");
      words.push_back(selector + ")");
    }
    return words;
  }

  /// A request that fits its command.
  Texts line() {
    const auto a_name = [this](test::Random&) { return name(); };
    if (!once_in(3))
      return test::fill(one_of(forms), {{"key", a_name}, {"channel", a_name}}, random, 1);
    const resp::CommandSpec* spec = nullptr;
    while (!spec || spec->rule != resp::KeyRule::none || spec->has(resp::flag_container))
      spec = one_of(known);
    Texts words;
    for (const auto part : std::views::split(spec->name, '|'))
      words.emplace_back(part.begin(), part.end());
    const auto arity = told.at(std::string{spec->name}).as_items().at(1).as_integer();
    const auto needed = static_cast<std::size_t>(std::abs(arity));
    while (words.size() < needed) words.push_back(name());
    // With its destination alone Redis finds no keys, and checks none; we do.
    if (spec->name == "pfmerge") words.push_back(name());
    return words;
  }

  bool is_7_0() const { return !told.contains("waitaof"); }

  const std::uint64_t seed = test::seed();
  test::Random random{seed};
  // What is off altogether Redis refuses before it asks who may run it.
  test::RedisServer server{{"save \"\"", "enable-debug-command yes", "enable-module-command yes"}};
  test::PlainClient admin{server.port()};
  test::ToldCommands told = test::told_commands(admin);
  std::vector<const resp::CommandSpec*> known;
  TaughtCommands taught{{}};
};

/// What ACL DRYRUN says.
Denied denied_of(std::string_view told) {
  if (told == "OK") return Denied::nothing;
  if (told.ends_with("command")) return Denied::command;
  if (told.ends_with("key")) return Denied::key;
  EXPECT_TRUE(told.ends_with("channel")) << told;
  return Denied::channel;
}

TEST_F(RightsOfRedis, ARandomUserMayDoWhatRedisLetsHimDo) {
  std::map<Denied, std::size_t> seen;
  std::size_t refused_users = 0;
  for (auto left = test::longer(users); left > 0; --left) {
    const auto words = rights();
    Texts question{"ACL", "SETUSER", "u", "reset", "on", ">p"};
    question.insert(question.end(), words.begin(), words.end());
    const auto answer = admin.command(question);
    std::optional<Rights> ours;
    std::string why;
    try {
      ours.emplace(joined(words), taught);
    } catch (const Error& wrong) {
      why = wrong.message();
    }
    ASSERT_EQ(answer.is_error(), !ours.has_value()) << joined(words) << "\n"
                                                    << to_string(answer) << "\n"
                                                    << why << "\nseed " << seed;
    if (!ours) {
      ++refused_users;
      continue;
    }
    test::PlainClient user{server.port()};
    ASSERT_EQ(test::ask(user, "AUTH u p"), "+OK");
    for (auto lines = lines_each; lines > 0; --lines) {
      const auto line = this->line();
      Texts dryrun{"ACL", "DRYRUN", "u"};
      dryrun.insert(dryrun.end(), line.begin(), line.end());
      const auto reply = admin.command(dryrun);
      ASSERT_FALSE(reply.is_error()) << joined(line) << ": " << to_string(reply);
      const auto request = words_in(line);
      const auto* const spec = resp::find_command(std::span{request});
      const auto denied = ours->check(*spec, request);
      ASSERT_EQ(denied, denied_of(reply.as_text())) << joined(words) << "\n"
                                                    << joined(line) << "\n"
                                                    << reply.as_text() << "\nseed " << seed;
      ++seen[denied];
      if (denied == Denied::nothing || !is_7_0()) continue;
      const auto refusal = user.command(line);
      ASSERT_EQ(test::text_of(refusal), "-" + front::refusal_of(denied, spec->name))
          << joined(line);
    }
  }
  EXPECT_GT(refused_users, 0U);
  for (const auto denied : {Denied::nothing, Denied::command, Denied::key, Denied::channel})
    EXPECT_GT(seen[denied], 0U) << static_cast<int>(denied);
}

TEST_F(RightsOfRedis, SortByAPatternWantsAllKeys) {
  constexpr const char* lines[] = {
      "SORT a BY w_*",       "SORT a BY nosort",       "SORT a GET #",
      "SORT a GET w_*",      "SORT_RO a BY w_*",       "SORT a LIMIT 0 1 GET #",
      "SORT a BY w_* GET #", "SORT a BY nosort GET #", "SORT a STORE b"};
  for (const auto* words : {"+@all ~a ~b", "+@all allkeys", "+@all %R~* ~b", "+@all %W~* %R~a",
                            "+@all ~a ~b (+@all allkeys)", "+@all ~a ~b (+get allkeys)"}) {
    Texts question{"ACL", "SETUSER", "u", "reset", "on", ">p"};
    const std::string_view text{words};
    const auto selector = text.substr(std::min(text.find('('), text.size()));
    for (const auto word : words_of(text.substr(0, text.size() - selector.size())))
      question.emplace_back(word);
    if (!selector.empty()) question.emplace_back(selector);
    ASSERT_EQ(to_string(admin.command(question)), "OK");
    Rights ours{words, taught};
    test::PlainClient user{server.port()};
    ASSERT_EQ(test::ask(user, "AUTH u p"), "+OK");
    for (const auto* line : lines) {
      const auto request = words_of(line);
      const auto denied = ours.check(*resp::find_command(std::span{request}), request);
      const auto reply = user.command(std::span<const std::string_view>{request});
      EXPECT_EQ(reply.is_error(), denied != Denied::nothing) << words << ": " << line;
      if (reply.is_error() && is_7_0()) {
        EXPECT_EQ(test::text_of(reply), "-" + front::refusal_of(denied, ""))
            << words << ": " << line;
      }
    }
  }
}

}  // namespace
}  // namespace sluice::proxy
