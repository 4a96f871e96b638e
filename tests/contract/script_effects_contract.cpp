/// What the Error of a program's own script says of its effect: random scripts that write in
/// several ways, and end in every way, also with the words of servers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/sha1.hpp"
#include "contract/stores.hpp"
#include "support/sanitized.hpp"

namespace sluice {
namespace {

/// KEYS: a text, a list, a hash, and a number that the script may count its runs in.
constexpr std::array<std::string_view, 13> steps{
    "redis.call('SET', KEYS[1], ARGV[1])",
    "redis.call('RPUSH', KEYS[2], ARGV[1])",
    "redis.call('HINCRBY', KEYS[3], 'n', 1)",
    "redis.pcall('RPUSH', KEYS[2], 'x')",
    "local verb = redis.call; verb('APPEND', KEYS[1], 'y')",
    "redis['call']('SE' .. 'T', KEYS[1], 'z' .. ARGV[1])",
    "for i = 1, 2 do redis.call('RPUSH', KEYS[2], i) end",
    "(function() redis.call('HSET', KEYS[3], 'f', ARGV[1]) end)()",
    "local seen = redis.call('GET', KEYS[1])",
    "redis.pcall('INCR', KEYS[2])",
    "local first, second = redis.call('LLEN', KEYS[2]), redis.call('APPEND', KEYS[1], 'q')",
    "-- redis.call('GET', KEYS[1])\nredis.call('DEL', KEYS[1])",
    "pcall(function() redis.call('RPUSH', KEYS[2], 'p') error('lost') end)",
};
constexpr std::array<std::string_view, 14> ends{
    "redis.call('LPUSH', KEYS[3], 1)",
    "do return redis.call('INCR', KEYS[2]) end",
    "do return redis.pcall('GET', KEYS[3]) end",
    "do return redis.call('NOSUCH', KEYS[1]) end",
    "do return redis.call('SET', KEYS[1]) end",
    "error('WORD')",
    "error({err = 'WORD'})",
    "do return redis.error_reply('WORD') end",
    "do return {err = 'WORD'} end",
    "local none = nil; none.field = 1",
    "if redis.call('LLEN', KEYS[2]) > 0 then return redis.error_reply('WORD') end",
    "for i = 1, 3 do redis.call('APPEND', KEYS[1], i); if i == 2 then error('WORD') end end",
    "redis.call('SET', KEYS[1], redis.call('INCR', KEYS[4]), redis.call('INCR', KEYS[2]))",
    "do return 1 end",
};
constexpr std::string_view words_end = "do return redis.error_reply('WORD') end";
/// Of slots that are not the keys', and not to the letter a server's.
constexpr std::array<std::string_view, 22> words_of_scripts{
    "no",
    "ERR no",
    "WRONGTYPE mine",
    "READONLY mine",
    "MOVED 1 127.0.0.1:1",
    "ASK 1 127.0.0.1:1",
    "TRYAGAIN mine",
    "CLUSTERDOWN mine",
    "MASTERDOWN mine",
    "LOADING mine",
    "BUSY mine",
    "NOSCRIPT mine",
    "NOAUTH mine",
    "WRONGPASS mine",
    "NOPERM mine",
    "OOM mine",
    "MISCONF mine",
    "NOREPLICAS mine",
    "UNBLOCKED mine",
    "EXECABORT mine",
    "ERR unknown command",
    "ERR a node of the cluster was not reached: mine",
};

class ScriptOfChance {
 public:
  explicit ScriptOfChance(unsigned seed) : random_(seed) {}

  std::string make() {
    std::string text;
    if (chance(2)) add(text, "redis.call('INCR', KEYS[4])");
    for (auto left = random_() % 3; left > 0; --left) add(text, pick(steps));
    auto end = std::string{chance(2) ? words_end : pick(ends)};
    if (const auto at = end.find("WORD"); at != end.npos)
      end.replace(at, 4, pick(words_of_scripts));
    add(text, end);
    if (chance(3)) add(text, pick(steps));
    return text;
  }

 private:
  bool chance(unsigned of) { return random_() % of == 0; }
  template <std::size_t N>
  std::string_view pick(const std::array<std::string_view, N>& from) {
    return from[random_() % N];
  }
  void add(std::string& text, std::string_view step) {
    if (!text.empty()) text += chance(2) ? ";\n" : "; ";
    text += step;
  }

  std::mt19937 random_;
};

class ScriptEffects : public test::StoreContract {
 protected:
  void reset() {
    for (const auto key : keys) store().run({"DEL", key}).get();
    store().run({"SET", keys[0], "text"}).get();
    store().run({"RPUSH", keys[1], "one"}).get();
    store().run({"HSET", keys[2], "f", "1"}).get();
    store().run({"SET", keys[3], "0"}).get();
  }
  std::string holds() {
    return fmt::format("{} {} {} {}", to_string(store().run({"GET", keys[0]}).get()),
                       to_string(store().run({"LRANGE", keys[1], "0", "-1"}).get()),
                       to_string(store().run({"HGETALL", keys[2]}).get()), count());
  }
  std::string count() { return to_string(store().run({"GET", keys[3]}).get()); }

  void run_by(int way, const std::string& text, const std::string& sha1) {
    static constexpr std::string_view argument[] = {"given"};
    if (way == 0) {
      const Script script{"program", text, sha1};
      store().run(script, Words{keys}, Words{argument}).get();
      return;
    }
    if (way == 2) store().run({"SCRIPT", "LOAD", text}).get();
    std::vector<std::string_view> command{"EVAL", text, "4"};
    if (way == 2) command = {"EVALSHA", sha1, "4"};
    command.insert(command.end(), keys.begin(), keys.end());
    command.emplace_back(argument[0]);
    store().run(Words{command}).get();
  }

  const std::array<std::string_view, 4> keys{"{t}text", "{t}list", "{t}hash", "{t}count"};
};

SLUICE_EVERY_STORE(ScriptEffects);
SLUICE_SHARDED_STORE(ScriptEffects);

TEST_P(ScriptEffects, CO08_NoneIsSaidWhereNothingHasChangedAndNoScriptRunsTwice) {
  if (GetParam() == test::StoreKind::embedded_folder)
    GTEST_SKIP() << "its scripts are those of embedded_memory, and its disk is slow";
  ScriptOfChance scripts{1};
  int failed = 0, wrong = 0;
  for (int number = 0; number < test::rounds(500) && wrong < 5; ++number) {
    const auto text = scripts.make();
    const auto sha1 = sha1_hex(text);
    for (int way = 0; way < 3; ++way) {
      reset();
      const auto before = holds();
      std::optional<Error> error;
      try {
        run_by(way, text, sha1);
      } catch (const Error& thrown) {
        error = thrown;
      }
      failed += error.has_value();
      const bool is_lie = error && error->effect() == Effect::none && holds() != before;
      const bool runs_twice = count() > "\"1\"" && text.find("KEYS[4]), redis") == text.npos;
      if (!is_lie && !runs_twice) continue;
      ++wrong;
      ADD_FAILURE() << "script " << number << ", way " << way << ": " << text << "\nsays "
                    << (error ? error->message() : "nothing") << ", and leaves " << holds();
    }
  }
  EXPECT_GT(failed, 0);
}

}  // namespace
}  // namespace sluice
