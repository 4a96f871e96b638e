// What a folder of the embedded Store survives: torn tails, damage, power cuts, a disk that fails
// at any operation.
#include "engine/log/append_log.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>

#include "engine/embedded_store.hpp"
#include "engine/log/dump.hpp"
#include "engine/log/memory_disk.hpp"
#include "engine/types/random.hpp"
#include "sluice/metrics.hpp"

namespace sluice::engine {
namespace {

using test::Dump;
using test::MemoryDisk;

constexpr const char* increment = "appendonly.aof.1.incr.aof";

std::unique_ptr<EmbeddedStore> open_on(MemoryDisk& disk, EmbeddedOptions options = {}) {
  return open_embedded(options, disk.folder());
}

/// A value that reads as the end of a log does, with a checksum and a key.
const std::string like_a_log =
    "v\r\n*2\r\n$3\r\nDEL\r\n$4\r\nhash\r\n#SUM:0123456789abcdef\r\n*1\r\n$8\r\nFLUSHALL\r\n"
    "#SUM-KEY:0123456789abcdef0123456789abcdef\r\n#TS:1700000000\r\n*3\r\n$3\r\nSET\r\n$1\r\n";

/// One execution after another, each of which changes something.
void run_step(Store& store, int step) {
  const auto text = std::to_string(step);
  switch (step % 7) {
    case 0: store.run({"SET", "k" + text, like_a_log}).get(); break;
    case 1:
      store
          .run({"EVAL", "redis.call('INCR', KEYS[1]) redis.call('RPUSH', KEYS[2], ARGV[1])", "2",
                "n", "list", text})
          .get();
      break;
    case 2: store.run({"HSET", "hash", "f" + text, text}).get(); break;
    case 3: store.run({"ZADD", "zset", text, "m" + text}).get(); break;
    case 4: store.run({"SADD", "set", text}).get(); break;
    case 5: store.run({"SET", "lease" + text, "x", "PX", "100000000"}).get(); break;
    case 6: store.run({"APPEND", "k", text}).get(); break;
  }
}

std::string message_of(const std::function<void()>& act, Errc expected) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), expected) << error.what();
    return error.message();
  }
  ADD_FAILURE() << "no error";
  return {};
}

TEST(AppendLog, BringsEverythingBack) {
  MemoryDisk disk;
  Dump before;
  {
    const auto store = open_on(disk);
    for (int step = 0; step < 60; ++step) run_step(*store, step);
    before = test::dump(*store);
  }
  const auto store = open_on(disk);
  EXPECT_EQ(test::difference(test::dump(*store), before), "");
  EXPECT_GT(store->open_report().commands, 60U);
  EXPECT_EQ(store->open_report().cut_file, "");
}

TEST(AppendLog, LoadsAPrefixOfWholeExecutionsWhereverTheFileIsCut) {
  MemoryDisk disk;
  std::vector<Dump> states;
  {
    const auto store = open_on(disk);
    states.push_back(test::dump(*store));
    for (int step = 0; step < 18; ++step) {
      run_step(*store, step);
      states.push_back(test::dump(*store));
    }
  }
  const auto whole = disk.content(increment);
  std::size_t at_least = 0;
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    disk.put(increment, whole.substr(0, size));
    const auto store = open_on(disk);
    const auto loaded = test::dump(*store);
    const auto found = std::ranges::find(states, loaded);
    ASSERT_NE(found, states.end()) << "cut at byte " << size;
    const auto number = static_cast<std::size_t>(found - states.begin());
    EXPECT_GE(number, at_least) << "cut at byte " << size;
    at_least = number;
    EXPECT_EQ(store->open_report().cut_bytes, size - disk.content(increment).size());
  }
  EXPECT_EQ(at_least, states.size() - 1);
}

/// A log of a few executions, and what it holds.
struct Written {
  Written() {
    MemoryDisk disk;
    const auto store = open_on(disk);
    for (int step = 0; step < 16; ++step) run_step(*store, step);
    content = disk.content(increment);
    state = test::dump(*store);
  }
  std::string content;
  Dump state;
};

/// As a redis-server or an older version would have written it.
std::string without_checksums(std::string content) {
  for (auto at = content.find("#SUM"); at != content.npos; at = content.find("#SUM", at))
    if (content.compare(content.find(':', at) + 1, 16, "0123456789abcdef") == 0)
      ++at;  // within the value
    else
      content.erase(at, content.find('\n', at) + 1 - at);
  return content;
}

/// Opens one log after another.
class Opener {
 public:
  Opener() { open_on(disk_); }
  /// What it holds; nothing: it was refused, see error().
  std::optional<Dump> load(const std::string& content) {
    disk_.put(increment, content);
    try {
      return test::dump(*open_on(disk_));
    } catch (const Error& error) {
      EXPECT_EQ(disk_.content(increment), content) << "a refused file is not touched";
      error_ = error.message();
      return std::nullopt;
    }
  }
  const std::string& error() const { return error_; }

 private:
  MemoryDisk disk_;
  std::string error_;
};

TEST(AppendLog, E09_EachChangedByteIsFound) {
  const Written written;
  Opener opener;
  for (std::size_t at = 0; at < written.content.size(); ++at)
    for (const char mask : {'\x01', '\x20'}) {
      auto changed = written.content;
      changed[at] = static_cast<char>(changed[at] ^ mask);
      EXPECT_FALSE(opener.load(changed)) << "byte " << at << " " << int{mask};
      EXPECT_NE(opener.error().find(" at byte "), std::string::npos) << opener.error();
    }
}

/// The last write of a log: where it and its checksum begin.
struct LastWrite {
  explicit LastWrite(const std::string& content)
      : sum(content.rfind("#SUM:")),
        begin(content.find('\n', content.rfind("#SUM", sum - 1)) + 1) {}
  std::size_t sum;
  std::size_t begin;
};

TEST(AppendLog, E09_TheLastChecksumIsProtectedAsTheOthersAre) {
  const Written written;
  const LastWrite last{written.content};
  Opener opener;
  const auto value = last.sum - 3;  // the last byte of the last value
  for (const bool value_too : {false, true})
    for (auto at = last.sum; at < written.content.size(); ++at)
      for (int bit = 0; bit < 8; ++bit) {
        auto changed = written.content;
        if (value_too) changed[value] ^= '\x02';
        changed[at] ^= static_cast<char>(1 << bit);
        EXPECT_FALSE(opener.load(changed)) << "byte " << at - last.sum << " bit " << bit;
      }
}

TEST(AppendLog, E09_ALastWriteWithoutItsChecksumIsTornAndCut) {
  MemoryDisk disk;
  {
    const auto store = open_on(disk);
    store->run({"SET", "n", "1"}).get();
    store->run({"INCR", "n"}).get();
  }
  const auto whole = disk.content(increment);
  const LastWrite last{whole};
  enum class Then { nothing, another_value, zeros };
  for (auto size = last.begin; size < whole.size(); ++size)
    for (const auto then : {Then::nothing, Then::another_value, Then::zeros}) {
      auto torn = whole.substr(0, size);
      if (then == Then::another_value && size >= last.sum) torn[last.sum - 3] ^= '\x07';
      if (then == Then::zeros) torn += std::string(2000, '\0');
      disk.put(increment, torn);
      const auto store = open_on(disk);
      EXPECT_EQ(store->run({"GET", "n"}).get(), Value::bulk_string("1")) << size;
      EXPECT_EQ(disk.content(increment), whole.substr(0, last.begin)) << size;
      EXPECT_EQ(store->open_report().cut_bytes, torn.size() - last.begin) << size;
    }
}

TEST(AppendLog, E09_AWriteWithoutItsChecksumIsRefusedWhereOthersFollow) {
  MemoryDisk disk;
  for (int i = 0; i < 2; ++i) open_on(disk)->run({"INCR", "n"}).get();
  auto content = disk.content(increment);
  const auto sum = content.find("#SUM:");
  content.erase(sum, content.find('\n', sum) + 1 - sum);
  Opener opener;
  EXPECT_FALSE(opener.load(content));
  EXPECT_NE(opener.error().find("has no checksum"), std::string::npos) << opener.error();
}

TEST(AppendLog, E09_BytesThatAreMissingOrTooManyAreFound) {
  const Written written;
  Opener opener;
  SeededRandom rng{5};
  for (int i = 0; i < 500; ++i) {
    auto changed = written.content;
    const auto at = rng.below(changed.size() - 100);
    const auto size = 1 + rng.below(64);
    if (i % 3 == 0)
      changed.erase(at, size);
    else if (i % 3 == 1)
      changed.insert(at, changed.substr(rng.below(changed.size() - 64), size));
    else
      std::swap(changed[at], changed[at + size]);
    if (changed == written.content) continue;
    EXPECT_FALSE(opener.load(changed)) << i << " at " << at << " size " << size;
  }
}

TEST(AppendLog, E09_ATornTailOfALogWithoutChecksumsIsCutAsRedisDoes) {
  const Written written;
  const auto plain = without_checksums(written.content);
  Opener opener;
  EXPECT_EQ(opener.load(plain), written.state);
  for (std::size_t size = 0; size < plain.size(); ++size)
    EXPECT_TRUE(opener.load(plain.substr(0, size))) << "cut at byte " << size;
}

TEST(AppendLog, E09_WhatWasWrittenWithoutChecksumsGoesOnWithThem) {
  MemoryDisk disk;
  open_on(disk);
  const Written written;
  disk.put(increment, without_checksums(written.content));
  open_on(disk)->run({"SET", "with", "1"}).get();
  disk.put(increment, disk.content(increment) +
                          "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n"  // by a server
                          "*3\r\n$3\r\nSET\r\n$7\r\nwithout\r\n$1\r\n2\r\n");
  open_on(disk)->run({"SET", "again", "3"}).get();
  auto content = disk.content(increment);
  EXPECT_EQ(
      open_on(disk)->run({"MGET", "with", "without", "again"}).get(),
      Value::array({Value::bulk_string("1"), Value::bulk_string("2"), Value::bulk_string("3")}));
  content[content.find("again")] = 'A';
  EXPECT_FALSE(Opener{}.load(content));
}

TEST(AppendLog, GoesOnWhereATornTailWasCut) {
  MemoryDisk disk;
  open_on(disk)->run({"SET", "a", "1"}).get();
  disk.put(increment, disk.content(increment) + "*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$1");
  {
    const auto store = open_on(disk);
    EXPECT_EQ(store->open_report().cut_bytes, 22U);
    EXPECT_EQ(store->open_report().cut_file, std::string{"disk/"} + increment);
    store->run({"SET", "c", "3"}).get();
  }
  const auto store = open_on(disk);
  EXPECT_EQ(store->open_report().cut_file, "");
  EXPECT_EQ(store->run({"DBSIZE"}).get(), Value::integer(2));
}

TEST(AppendLog, RefusesDamageInTheMiddleAndSaysWhere) {
  MemoryDisk disk;
  {
    const auto store = open_on(disk);
    store->run({"SET", "a", "1"}).get();
    store->run({"SET", "b", "2"}).get();
  }
  const auto whole = disk.content(increment);
  auto damaged = whole;
  const auto place = damaged.find("$3\r\nSET");
  damaged[place] = '!';
  disk.put(increment, damaged);
  const auto message = message_of([&] { open_on(disk); }, Errc::corrupt);
  EXPECT_NE(message.find(increment), std::string::npos) << message;
  EXPECT_NE(message.find("byte " + std::to_string(place)), std::string::npos) << message;
  EXPECT_EQ(disk.content(increment), damaged) << "a refused file is not touched";

  damaged = whole;
  damaged.replace(damaged.find("$1\r\na"), 2, "$9999");  // a length that swallows what follows
  disk.put(increment, damaged);
  message_of([&] { open_on(disk); }, Errc::corrupt);
}

TEST(AppendLog, E09_ACommandThatItDoesNotHaveIsNamedWithItsPlace) {
  const std::string before = "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n";
  const std::string multi = "*1\r\n$5\r\nMULTI\r\n";
  struct Row {
    std::string command;
    std::string_view name;
  };
  const Row rows[] = {{"*3\r\n$7\r\nPFDEBUG\r\n$1\r\nh\r\n$1\r\nx\r\n", "'PFDEBUG'"},
                      {"*3\r\n$6\r\nMODULE\r\n$4\r\nLOAD\r\n$1\r\nx\r\n", "'MODULE LOAD'"},
                      {"*1\r\n$7\r\nNOTHING\r\n", "'NOTHING'"}};
  for (const auto& [command, name] : rows)
    for (const bool together : {false, true}) {
      const auto head = before + (together ? multi + before : "");
      const auto tail = before + (together ? "*1\r\n$4\r\nEXEC\r\n" : "") + before;
      MemoryDisk disk;
      open_on(disk);
      disk.put(increment, head + command + tail);
      const auto message = message_of([&] { open_on(disk); }, Errc::bad_argument);
      EXPECT_NE(message.find(name), std::string::npos) << message;
      EXPECT_NE(message.find("at byte " + std::to_string(head.size()) + ","), std::string::npos)
          << message;
      EXPECT_EQ(message.find("--fix"), std::string::npos) << "nothing is to be cut: " << message;
    }
}

TEST(AppendLog, E09_AChangedNameIsDamageAndNotACommandOfAnotherServer) {
  MemoryDisk disk;
  open_on(disk)->run({"SET", "a", "1"}).get();
  auto content = disk.content(increment);
  content[content.find("SET")] = 'G';
  disk.put(increment, content);
  message_of([&] { open_on(disk); }, Errc::corrupt);
}

TEST(AppendLog, SkipsCommentsAndCutsBlankTails) {
  MemoryDisk disk;
  open_on(disk);
  const std::string set = "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n";
  disk.put(increment, "#TS:1700000000\r\n" + set + "#TS:1700000001\r\n" + std::string(300, '\0'));
  const auto store = open_on(disk);
  EXPECT_EQ(store->run({"GET", "a"}).get(), Value::bulk_string("1"));
  EXPECT_EQ(store->open_report().cut_bytes, 300U);
}

TEST(AppendLog, RefusesATornFileThatIsNotTheLast) {
  MemoryDisk disk;
  open_on(disk);
  disk.put(
      "appendonly.aof.manifest",
      "file appendonly.aof.1.incr.aof seq 1 type i\nfile appendonly.aof.2.incr.aof seq 2 type i\n");
  disk.put(increment, "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1");
  disk.put("appendonly.aof.2.incr.aof", "");
  message_of([&] { open_on(disk); }, Errc::corrupt);
}

TEST(AppendLog, ASnapshotIsNeverTornAsALogMayBe) {
  MemoryDisk disk;
  open_on(disk);
  disk.put(increment, "REDIS0010\xfa\x09redis-ver");
  EXPECT_NE(message_of([&] { open_on(disk); }, Errc::corrupt).find("within the snapshot"),
            std::string::npos);
}

TEST(AppendLog, RefusesAFolderThatHasLostFiles) {
  MemoryDisk disk;
  open_on(disk)->run({"SET", "a", "1"}).get();
  const auto content = disk.content(increment);
  auto folder = disk.folder();
  folder->remove(increment);
  EXPECT_NE(message_of([&] { open_on(disk); }, Errc::corrupt).find(increment), std::string::npos);
  disk.put(increment, content);
  folder->remove("appendonly.aof.manifest");
  message_of([&] { open_on(disk); }, Errc::corrupt);
}

// --- rewriting ---

TEST(AppendLog, IsSmallerAndTheSameAfterARewrite) {
  MemoryDisk disk;
  Dump before;
  {
    const auto store = open_on(disk);
    for (int i = 0; i < 300; ++i) run_step(*store, i);
    for (int i = 0; i < 1000; ++i) store->run({"INCR", "counter"}).get();
    for (int i = 0; i < 500; ++i) store->run({"RPUSH", "long", "item" + std::to_string(i)}).get();
    before = test::dump(*store);
    store->rewrite();
    EXPECT_EQ(test::difference(test::dump(*store), before), "");
  }
  EXPECT_FALSE(disk.has(increment));
  EXPECT_LT(disk.content("appendonly.aof.1.base.aof").size(), 20000U);
  EXPECT_EQ(disk.content("appendonly.aof.2.incr.aof"), "");
  EXPECT_EQ(test::difference(test::dump(*open_on(disk)), before), "");
}

TEST(AppendLog, RewritesWhenItHasGrown) {
  MemoryDisk disk;
  const auto rewrites = metrics().engine_rewrites.load();
  int counted = 0;
  {
    const auto store = open_on(disk, {.rewrite_above_bytes = 2000, .rewrite_growth_percent = 100});
    // It is rewritten in the background, beside us.
    while (metrics().engine_rewrites.load() == rewrites && counted < 1'000'000)
      counted = static_cast<int>(store->run({"INCR", "counter"}).get().as_integer());
  }
  EXPECT_GT(metrics().engine_rewrites.load(), rewrites);
  EXPECT_EQ(open_on(disk)->run({"GET", "counter"}).get(),
            Value::bulk_string(std::to_string(counted)));
}

TEST(AppendLog, KeepsEveryWriteThatComesDuringARewrite) {
  MemoryDisk disk;
  Dump before;
  {
    const auto store = open_on(disk);
    for (int i = 0; i < 3000; ++i)
      store->run({"RPUSH", "list" + std::to_string(i), "a", "b"}).get();
    const auto library = [](int number) {
      return "#!lua name=changed\nredis.register_function('f', function() return " +
             std::to_string(number) + " end)";
    };
    store
        ->run({"FUNCTION", "LOAD", "#!lua name=kept\nredis.register_function('g', function() end)"})
        .get();
    store->run({"FUNCTION", "LOAD", library(0)}).get();
    std::atomic<bool> stop{false};
    std::thread writer{[&] {
      for (int i = 0; !stop; i = (i + 7) % 3000) {
        const auto key = "list" + std::to_string(i);
        store->run({"RPUSH", key, "c"}).get();
        store->run({"RENAME", key, "moved" + key}).get();
        store->run({"LMOVE", "moved" + key, key, "LEFT", "RIGHT"}).get();
        store->run({"RPUSH", "new" + key, "d"}).get();
        store->run({"FUNCTION", "LOAD", "REPLACE", library(i)}).get();
      }
    }};
    for (int i = 0; i < 5; ++i) store->rewrite();
    stop = true;
    writer.join();
    before = test::dump(*store);
  }
  EXPECT_EQ(test::difference(test::dump(*open_on(disk)), before), "");
}

// --- failures ---

/// Runs steps with the disk failing from operation `at` on; gives how many were acknowledged.
int run_until_failure(MemoryDisk& disk, int steps) {
  int acknowledged = 0;
  try {
    const auto store = open_on(disk);
    for (int step = 0; step < steps; ++step) {
      if (step == steps / 2) store->rewrite();
      run_step(*store, step);
      acknowledged = step + 1;
    }
  } catch (const std::system_error&) {
  }
  return acknowledged;
}

/// States after each step, on a disk that works.
std::vector<Dump> states_of(int steps) {
  MemoryDisk disk;
  const auto store = open_on(disk);
  std::vector<Dump> states{test::dump(*store)};
  for (int step = 0; step < steps; ++step) {
    run_step(*store, step);
    states.push_back(test::dump(*store));
  }
  return states;
}

/// Leases end at a time of the wall clock, which no two runs share.
Dump without_times(Dump dump) {
  for (auto& [key, text] : dump)
    if (key.starts_with("lease")) text = "lease";
  return dump;
}

class AppendLogCrash : public testing::TestWithParam<bool> {};

TEST_P(AppendLogCrash, AtAnyOperationLosesNothingAcknowledged) {
  const bool power_cut = GetParam();
  constexpr int steps = 12;
  auto states = states_of(steps);
  for (auto& state : states) state = without_times(std::move(state));
  for (std::size_t at = 0;; ++at) {
    MemoryDisk disk;
    disk.fail(at, EIO, true);
    const int acknowledged = run_until_failure(disk, steps);
    if (disk.operations() <= at) break;  // nothing failed any more
    disk.heal();
    if (power_cut) disk.cut_power();
    const auto store = open_on(disk);
    const auto loaded = without_times(test::dump(*store));
    const auto found = std::ranges::find(states, loaded);
    ASSERT_NE(found, states.end()) << "crash at operation " << at;
    EXPECT_GE(found - states.begin(), acknowledged) << "crash at operation " << at;
    EXPECT_EQ(store->run({"SET", "after", "1"}).get(), Value::simple_string("OK"));
  }
}

INSTANTIATE_TEST_SUITE_P(OfTheProcess, AppendLogCrash, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(OfThePower, AppendLogCrash, testing::Values(true));

TEST(AppendLogFailure, OfOneOperationLosesNothingAcknowledged) {
  constexpr int steps = 12;
  for (const int error : {EIO, ENOSPC}) {
    for (std::size_t at = 0;; ++at) {
      MemoryDisk disk;
      disk.fail(at, error, false);
      std::map<std::string, bool> acknowledged;
      try {
        const auto store = open_on(disk);
        for (int step = 0; step < steps; ++step) {
          if (step == steps / 2) try {
              store->rewrite();
            } catch (const std::system_error&) {
            }
          const auto key = "k" + std::to_string(step);
          try {
            store->run({"SET", key, "v"}).get();
            acknowledged[key] = true;
          } catch (const Error&) {
          }
        }
      } catch (const std::system_error&) {
      }
      if (disk.operations() <= at) break;
      disk.heal();
      disk.cut_power();
      const auto store = open_on(disk);
      for (const auto& [key, yes] : acknowledged)
        EXPECT_EQ(store->run({"EXISTS", key}).get(), Value::integer(1))
            << key << ", operation " << at << " failed";
    }
  }
}

std::optional<Effect> effect_of_failure(Store& store,
                                        std::initializer_list<std::string_view> call) {
  try {
    store.run(call).get();
    return std::nullopt;
  } catch (const Error& error) {
    return error.effect();
  }
}

TEST(AppendLogFailure, OfSpaceRefusesCallsUntilARewrite) {
  MemoryDisk disk;
  const auto store = open_on(disk);
  store->run({"SET", "a", "1"}).get();
  disk.set_capacity(200);
  const std::string large(500, 'x');
  auto asked = store->run({"SET", "large", large});
  try {
    asked.get();
    FAIL() << "written to a full disk";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::out_of_space);
    EXPECT_EQ(error.effect(), Effect::unknown);
  }
  try {
    store->run({"SET", "b", "2"}).get();
    FAIL() << "written after a failure";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::out_of_space);
    EXPECT_EQ(error.effect(), Effect::none);
    EXPECT_NE(error.message().find("BGREWRITEAOF"), std::string::npos) << error.message();
  }
  EXPECT_EQ(effect_of_failure(*store, {"GET", "large"}), Effect::none) << "it is not on disk";
  auto script = store->run({"EVAL", "return redis.call('SET', KEYS[1], 1)", "1", "b"});
  EXPECT_THROW(script.get(), Error);
  EXPECT_THROW(store->rewrite(), std::system_error) << "still full";

  disk.heal();
  store->rewrite();
  EXPECT_EQ(store->run({"SET", "b", "2"}).get(), Value::simple_string("OK"));
  disk.cut_power();
  const auto again = open_on(disk);
  EXPECT_EQ(again->run({"MGET", "a", "b"}).get(),
            Value::array({Value::bulk_string("1"), Value::bulk_string("2")}));
  EXPECT_EQ(again->run({"STRLEN", "large"}).get(), Value::integer(500))
      << "what reads showed is on disk now";
}

TEST(AppendLogFailure, LeavesNoPartOfAFailedWrite) {
  MemoryDisk disk;
  const auto store = open_on(disk);
  store->run({"SET", "a", "1"}).get();
  const auto before = disk.content(increment);
  disk.set_capacity(150);
  auto asked = store->run({"SET", "large", std::string(500, 'x')});
  EXPECT_THROW(asked.get(), Error);
  EXPECT_EQ(disk.content(increment), before);
}

TEST(AppendLogFailure, OfASyncIsNeverTriedAgain) {
  MemoryDisk disk;
  const auto store = open_on(disk);
  store->run({"SET", "a", "1"}).get();
  disk.fail(disk.operations() + 1, EIO, false);  // the append goes well, the sync does not
  auto asked = store->run({"SET", "b", "1"});
  EXPECT_THROW(asked.get(), Error);
  const auto syncs = disk.syncs();
  EXPECT_THROW(store->run({"SET", "c", "1"}).get(), Error);
  EXPECT_EQ(effect_of_failure(*store, {"GET", "b"}), Effect::none);
  EXPECT_EQ(disk.syncs(), syncs);
}

}  // namespace
}  // namespace sluice::engine
