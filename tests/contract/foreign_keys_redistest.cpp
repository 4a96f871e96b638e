// Each primitive, each of its keys, each type: a key of something else was there before. The
// primitive says so by an Error that names the key, and the key stays as it is.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "resp/command_table.hpp"
#include "sluice/bucketed_sale.hpp"
#include "sluice/cache_guard.hpp"
#include "sluice/fair_mutex.hpp"
#include "sluice/fencing.hpp"
#include "sluice/id.hpp"
#include "sluice/latch.hpp"
#include "sluice/multi_lock.hpp"
#include "sluice/mutex.hpp"
#include "sluice/number.hpp"
#include "sluice/open.hpp"
#include "sluice/permit_semaphore.hpp"
#include "sluice/quorum_lock.hpp"
#include "sluice/rate_limiter.hpp"
#include "sluice/sale.hpp"
#include "sluice/semaphore.hpp"
#include "sluice/shared_bloom_filter.hpp"
#include "sluice/shared_mutex.hpp"
#include "sluice/waiting_room.hpp"
#include "support/collected_log.hpp"
#include "support/forwarding_store.hpp"
#include "support/plain_client.hpp"
#include "support/redis_server.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

/// A Store that notes the keys of what it is asked.
class KeyNotes final : public test::WatchedStore {
 public:
  using ForwardingStore::run;
  using WatchedStore::WatchedStore;

  Task<Value> run(Words command, CallOptions options) override {
    note(command);
    return store_.run(command, options);
  }
  Task<Value> run(const Script& script, Words keys, Words args, CallOptions options) override {
    const std::lock_guard lock{mutex_};
    for (const auto key : keys) keys_.emplace(key);
    return store_.run(script, keys, args, options);
  }
  Task<std::vector<Value>> run(Batch batch, CallOptions options) override {
    for (const auto& item : batch.items()) {
      const std::vector<std::string_view> words{item.words.begin(), item.words.end()};
      if (!item.script) note(Words{words});
      const std::lock_guard lock{mutex_};
      if (item.script) keys_.insert(item.words.begin(), item.words.begin() + item.key_count);
    }
    return store_.run(std::move(batch), options);
  }
  std::set<std::string> keys() const {
    const std::lock_guard lock{mutex_};
    return keys_;
  }

 private:
  void note(Words command) {
    const auto* const spec = resp::find_command(command);
    const std::lock_guard lock{mutex_};
    if (spec && spec->first_key == 1 && command.size() > 1) keys_.emplace(command[1]);
  }

  mutable std::mutex mutex_;
  std::set<std::string> keys_;
};

/// A primitive of the name "x", and what it can do: what makes it is the first.
struct Primitive {
  using Verb = std::function<void(Store&)>;
  std::string_view name;
  std::vector<Verb> verbs;
};

template <class Lock>
Primitive lock_of(std::string_view name) {
  return {name,
          {[](Store& s) {
             (void)Lock{s, "x"}.try_acquire().get();
           },
           [](Store& s) {
             (void)Lock{s, "x"}.try_acquire(20ms).get();
           },
           [](Store& s) {
             (void)Lock{s, "x"}.info().get();
           },
           [](Store& s) {
             (void)Lock{s, "x"}.force_release().get();
           }}};
}

RateLimiter limiter(Store& s) { return {s, "x", {.rate = 2, .interval = 1h}}; }
SharedBloomFilter filter(Store& s) { return SharedBloomFilter{s, "x"}; }
constexpr SharedBloomSize chain{.expected = 1, .error_rate = 0.1, .scalable = true};

TokenKeys room_keys() { return TokenKeys{{{"k1", std::string(32, 'k')}}}; }
WaitingRoom room(Store& s) {
  return WaitingRoom::create(s, room_keys(),
                             {.name = "x", .rate = 5, .interval = 1s, .inside = 5, .hold = 1h})
      .get();
}
Sale sale(Store& s) {
  return Sale::create(s, {.name = "x", .stock = 5, .limit = 0, .number_type = "XT"}).get();
}

std::vector<Primitive> primitives() {
  using Names = std::vector<std::string>;
  return {
      lock_of<Mutex>("Mutex"),
      lock_of<FairMutex>("FairMutex"),
      lock_of<SharedMutex>("SharedMutex"),
      {"SharedMutex, shared", {[](Store& s) {
         (void)SharedMutex{s, "x"}.try_acquire_shared().get();
       }}},
      {"MultiLock", {[](Store& s) {
         (void)MultiLock{s, Names{"x"}}.try_acquire().get();
       }}},
      {"QuorumLock", {[](Store& s) {
         (void)QuorumLock{{&s}, "x"}.try_acquire().get();
       }}},
      {"Semaphore",
       {[](Store& s) {
          (void)Semaphore{s, "x"}.try_set_permits(3).get();
        },
        [](Store& s) {
          (void)Semaphore{s, "x"}.try_acquire().get();
        },
        [](Store& s) {
          (void)Semaphore{s, "x"}.add_permits(1).get();
        },
        [](Store& s) {
          (void)Semaphore{s, "x"}.release_unowned().get();
        },
        [](Store& s) {
          (void)Semaphore{s, "x"}.info().get();
        },
        [](Store& s) {
          (void)Semaphore{s, "x"}.drain().get();
        }}},
      {"PermitSemaphore",
       {[](Store& s) {
          PermitSemaphore{s, "x"}.set_permits(3).get();
        },
        [](Store& s) {
          (void)PermitSemaphore{s, "x"}.take(1h).get();
        },
        [](Store& s) {
          (void)PermitSemaphore{s, "x"}.release({}).get();
        },
        [](Store& s) {
          (void)PermitSemaphore{s, "x"}.update_lease({}, 1h).get();
        }}},
      {"Latch",
       {[](Store& s) {
          (void)Latch{s, "x"}.try_set_count(2).get();
        },
        [](Store& s) {
          (void)Latch{s, "x"}.count_down_once("part").get();
        },
        [](Store& s) {
          (void)Latch{s, "x"}.count_down(5).get();
        },
        [](Store& s) {
          (void)Latch{s, "x"}.state().get();
        },
        [](Store& s) {
          Latch{s, "x"}.reset(2).get();
        },
        [](Store& s) {
          Latch{s, "x"}.reset(0).get();
        }}},
      {"RateLimiter",
       {[](Store& s) { (void)limiter(s).try_set_rate().get(); },
        [](Store& s) { (void)limiter(s).try_acquire().get(); },
        [](Store& s) { (void)limiter(s).available().get(); },
        [](Store& s) { limiter(s).set_rate(5, 1h).get(); }}},
      {"Fence", {[](Store& s) {
         (void)Fence{s, "x"}.admit({5}).get();
       }}},
      {"IdWorker", {[](Store& s) {
         (void)IdWorker{s, "x"}.next().get();
       }}},
      {"Series",
       {[](Store& s) {
          (void)Series{s, "x"}.next().get();
        },
        [](Store& s) {
          (void)Series{s, "x"}.next_of("wish", 2).get();
        },
        [](Store& s) {
          (void)Series::repair(s, "x", {.given = 9, .by = "me", .why = "test"}).get();
        }}},
      {"CacheGuard",
       {[](Store& s) {
          (void)CacheGuard<std::string>{s, "x"}.get("k", [] { return std::string{"1"}; }).get();
        },
        [](Store& s) {
          CacheGuard<std::string>{s, "x"}.put("k", "2").get();
        },
        [](Store& s) {
          CacheGuard<std::string>{s, "x"}.invalidate("k").get();
        },
        [](Store& s) {
          CacheGuard<std::string>{s, "x"}.invalidate_twice("k", 1h).get();
        },
        [](Store& s) {
          (void)CacheGuard<std::string>{s, "x"}
              .get("k", [] { return std::optional<std::string>{}; })
              .get();
        }}},
      {"SharedBloomFilter",
       {[](Store& s) { (void)filter(s).try_create(chain).get(); },
        [](Store& s) { (void)filter(s).add(1).get(); },
        [](Store& s) {
          for (int i = 0; i < 4; ++i) (void)filter(s).add(i).get();
        },
        [](Store& s) { (void)filter(s).contains(1).get(); },
        [](Store& s) { (void)filter(s).info().get(); },
        [](Store& s) { (void)filter(s).expire(1h).get(); },
        [](Store& s) {
          if (auto rebuild = filter(s).try_rebuild(chain).get()) rebuild->finish().get();
        },
        [](Store& s) { (void)filter(s).rename("{x}y").get(); },
        [](Store& s) {
          (void)SharedBloomFilter{s, "{x}y"}.rename("x").get();
        },
        [](Store& s) { (void)filter(s).remove().get(); }}},
      {"WaitingRoom",
       {[](Store& s) { (void)room(s); }, [](Store& s) { (void)room(s).enter("ann").get(); },
        [](Store& s) { (void)room(s).status().get(); },
        [](Store& s) { (void)room(s).remove().get(); }}},
      {"Sale",
       {[](Store& s) { (void)sale(s); }, [](Store& s) { (void)sale(s).buy({"a"}, {"1"}).get(); },
        [](Store& s) { (void)sale(s).buy({"a"}, {"2"}).get(); },
        [](Store& s) { (void)sale(s).status().get(); },
        [](Store& s) { (void)sale(s).dead_letters().get(); },
        [](Store& s) { sale(s).close().get(); }}},
      {"BucketedSale", {[](Store& s) {
         (void)BucketedSale::create(s, {.name = "x", .stock = 5, .limit = 0, .number_type = "XT"},
                                    {.buckets = 2})
             .get();
       }}},
  };
}

std::string today() { return fmt::format("{:%Y%m%d}", system_clock().wall()); }

/// Where a key of the library's own type is taken for its own, as the headers say.
bool is_taken_for_ours(std::string_view key, std::string_view command) {
  static const std::set<std::pair<std::string_view, std::string_view>> rows{
      {"{x}:repairs", "XADD"}, {"{x}:visitors", "HSET"}, {"{x}:called", "ZADD"},
      {"{x}:inside", "ZADD"},  {"{x}:heard", "SET"},     {"{x}:entries", "SET"},
      {"{x}:buyers", "HSET"},  {"{x}:requests", "HSET"}, {"{x}:returned", "HSET"},
      {"{x}:orders", "XADD"},  {"{x}:dead", "XADD"},     {"{x}:link:1", "SET"}};
  std::string plain{key};
  if (plain.starts_with("{x:")) plain.erase(2, 2);  // of a bucket
  return rows.contains({plain, command});
}

/// Keys that only the library calls so: nothing else is there. docs/lock.md#names
bool is_called_as_ours(std::string_view key) {
  return key.starts_with("sluice") || key.starts_with("redisson_lock_");
}

/// Keys that a primitive asks for alone, and then does without.
bool is_only_asked_for(const Primitive& primitive, std::string_view key, std::string_view command) {
  const bool is_beside = (primitive.name == "Sale") == key.starts_with("{x:");
  return (key.ends_with(":sale") && is_beside && command == "HSET") ||
         (key.starts_with("{x}:2") && key != "{x}:" + today()) || key == "{x}y:next:config";
}

/// Verbs that end a state or define it anew, fields that are written without being read, texts (a
/// label of a day, people, places in a room, which are given anew); and a sale, whose audit finds
/// what was changed.
bool is_replaced_by(std::string_view primitive, std::size_t verb, std::string_view field) {
  static const std::set<std::pair<std::string_view, std::size_t>> ends{{"RateLimiter", 3},
                                                                       {"SharedBloomFilter", 6},
                                                                       {"SharedBloomFilter", 7},
                                                                       {"SharedBloomFilter", 9},
                                                                       {"WaitingRoom", 3}};
  return ends.contains({primitive, verb}) || field.starts_with("sluice:") || field == "day" ||
         field == "ann" || primitive == "PermitSemaphore" || primitive == "Sale";
}

const std::vector<std::vector<std::string>> foreign_values{
    {"SET", "Ann"},
    {"HSET", "name", "Ann", "age", "42"},
    {"RPUSH", "Ann"},
    {"SADD", "Ann"},
    {"ZADD", "1", "Ann"},
    {"XADD", "*", "name", "Ann"},
    // Lua takes these for numbers, and INCRBY does not.
    {"SET", "99999999999999999999"},
    {"SET", "007"},
    {"SET", " 5"},
    {"SET", "1e3"}};

class ForeignKeys : public testing::Test {
 protected:
  /// The keys of a primitive that two processes call the same.
  std::set<std::string> keys_of(const Primitive& primitive) {
    std::set<std::string> all;
    for (int turn = 0; turn < 2; ++turn) {
      side_.command({"FLUSHALL"});
      KeyNotes notes{*store_};
      for (const auto& verb : primitive.verbs) {
        try {
          verb(notes);
        } catch (const Error& error) {
          said_.insert(error.message());
        }
      }
      auto found = notes.keys();
      std::erase_if(found, [&](const std::string& key) {
        return (turn > 0 && !all.contains(key)) ||
               (key.starts_with("{x}:link:") && key != "{x}:link:1");  // of 63
      });
      all = std::move(found);
    }
    return all;
  }
  std::string dump(std::string_view key) {
    return to_string(side_.command({"DUMP", key})) + to_string(side_.command({"PTTL", key}));
  }

  std::string put(const std::string& key, std::vector<std::string> value) {
    side_.command({"DEL", key});
    value.insert(value.begin() + 1, key);
    side_.command(value);
    return dump(key);
  }

  /// What is wrong of a key that somebody has put in the place of one of a primitive that stood;
  /// empty: nothing is, and its calls may fail or not.
  std::string trouble_in_its_place(const Primitive& primitive, const std::string& key,
                                   const std::vector<std::string>& value) {
    for (std::size_t i = 1; i < primitive.verbs.size(); ++i) {
      ++inputs_;
      side_.command({"FLUSHALL"});
      try {
        primitive.verbs[0](*store_);
        if (i > 1) primitive.verbs[1](*store_);
      } catch (const Error&) {
      }
      const auto before = put(key, value);
      try {
        primitive.verbs[i](*store_);
      } catch (const Error& error) {
        if (error.errc() == Errc::script) return "verb fails: " + error.message();
      }
      if (dump(key) != before)
        return fmt::format("verb {} has written: {}, was {}", i, dump(key), before);
    }
    return {};
  }

  /// What is wrong of a key that was there before; empty: nothing is.
  std::string trouble_of(const Primitive& primitive, const std::string& key,
                         const std::vector<std::string>& value) {
    side_.command({"FLUSHALL"});
    const auto before = put(key, value);
    const std::string silence = "nothing refuses it";
    std::string trouble = silence;
    for (std::size_t i = 0; i < primitive.verbs.size(); ++i) {
      ++inputs_;
      try {
        primitive.verbs[i](*store_);
      } catch (const Error& error) {
        const bool names_it = error.message().find('\'' + key + '\'') != std::string::npos ||
                              error.message().find('"' + key + '"') != std::string::npos;
        if (error.errc() == Errc::script) return "verb fails: " + error.message();
        if (names_it)
          trouble.clear();
        else if (!trouble.empty())
          trouble = "the key is not named: " + error.message();
      }
      if (dump(key) != before)
        return fmt::format("verb {} has written: {}, was {}", i, dump(key), before);
    }
    return trouble == silence && is_only_asked_for(primitive, key, value.front()) ? "" : trouble;
  }

  /// Makes the primitive, and uses it once.
  void begin(const Primitive& primitive) {
    side_.command({"FLUSHALL"});
    for (std::size_t i = 0; i < std::min<std::size_t>(primitive.verbs.size(), 2); ++i) try {
        primitive.verbs[i](*store_);
      } catch (const Error&) {
      }
  }

  /// What a verb makes of an odd number in a field of a hash of the primitive.
  void expect_refused_or_kept(const Primitive& primitive, std::size_t verb, const std::string& key,
                              const std::string& field, const std::string& odd) {
    begin(primitive);
    side_.command({"HSET", key, field, odd});
    std::string said;
    try {
      primitive.verbs[verb](*store_);
    } catch (const Error& error) {
      said = error.message();
      EXPECT_TRUE(error.errc() != Errc::script && error.errc() != Errc::protocol)
          << primitive.name << verb << ' ' << key << ' ' << field << ' ' << odd << ": " << said;
    }
    if (is_replaced_by(primitive.name, verb, field)) return;
    EXPECT_EQ(to_string(side_.command({"HGET", key, field})), to_string(Value::bulk_string(odd)))
        << primitive.name << verb << ' ' << key << ' ' << field << ": " << said;
  }

  test::CollectedLog log_;
  test::RedisServer server_;
  test::PlainClient side_{server_.port()};
  std::unique_ptr<Store> store_ = open(server_.url());
  std::set<std::string> said_;
  int inputs_ = 0;
};

TEST_F(ForeignKeys, R04_AreRefusedByNameAndStayAsTheyAre) {
  int wrong = 0;
  for (const auto& primitive : primitives()) {
    const auto keys = keys_of(primitive);
    EXPECT_FALSE(keys.empty()) << primitive.name;
    for (const auto& key : keys)
      for (const auto& value : foreign_values) {
        if (is_called_as_ours(key) || is_taken_for_ours(key, value.front())) continue;
        const auto trouble = trouble_of(primitive, key, value);
        wrong += !trouble.empty();
        if (!trouble.empty())
          ADD_FAILURE() << primitive.name << ", " << value.front() << " " << key << " "
                        << value.back() << ": " << trouble << "; found by input " << inputs_;
      }
  }
  fmt::print("{} inputs, {} wrong\n", inputs_, wrong);
}

TEST_F(ForeignKeys, R04_StayAsTheyAreAlsoInThePlaceOfAKeyThatWasLost) {
  for (const auto& primitive : primitives())
    for (const auto& key : keys_of(primitive))
      for (const auto& value : foreign_values) {
        // A text may be the bits of a filter.
        const bool may_be_bits = key == "x" && value.front() == "SET";
        if (is_called_as_ours(key) || is_taken_for_ours(key, value.front()) || may_be_bits)
          continue;
        const auto trouble = trouble_in_its_place(primitive, key, value);
        if (!trouble.empty())
          ADD_FAILURE() << primitive.name << ", " << value.front() << " " << key << " "
                        << value.back() << ": " << trouble << "; found by input " << inputs_;
      }
}

TEST_F(ForeignKeys, R04_OddNumbersInFieldsAreRefusedAndStayAsTheyAre) {
  for (const auto& primitive : primitives())
    for (const auto& key : keys_of(primitive)) {
      begin(primitive);
      const Value fields = side_.command({"HGETALL", key});
      for (std::size_t i = 0; fields.is_aggregate() && i < fields.as_items().size(); i += 2)
        for (const std::string odd : {"99999999999999999999", "007", " 5", "1e3", "x"})
          for (std::size_t verb = 0; verb < primitive.verbs.size(); ++verb)
            expect_refused_or_kept(primitive, verb, key, fields.as_items()[i].as_text(), odd);
    }
}

TEST_F(ForeignKeys, D_ANumberOutOfRangeIsRefusedByEachVerbAndLeavesNothingBeside) {
  for (const auto& primitive : primitives()) {
    if (primitive.name != "Semaphore" && primitive.name != "PermitSemaphore" &&
        primitive.name != "Latch")
      continue;
    for (std::size_t i = 0; i < primitive.verbs.size(); ++i) {
      side_.command({"FLUSHALL"});
      side_.command({"SET", "x", "99999999999999999999"});
      try {
        primitive.verbs[i](*store_);
      } catch (const Error& error) {
        EXPECT_EQ(error.errc(), Errc::wrong_type) << primitive.name << i << error.message();
        // A release and another lease may have ended holds before they look at the number.
        if (primitive.name != "PermitSemaphore" || i < 2)
          EXPECT_EQ(error.effect(), Effect::none) << primitive.name << i << error.message();
      }
      EXPECT_EQ(side_.command({"DBSIZE"}).as_integer(), 1) << primitive.name << i;
    }
  }
}

TEST_F(ForeignKeys, E_InfoOfALockRefusesWhatItsOtherVerbsRefuse) {
  for (const auto& primitive : {lock_of<Mutex>("Mutex"), lock_of<FairMutex>("FairMutex")}) {
    for (std::size_t i = 0; i < primitive.verbs.size(); ++i) {
      put("x", {"HSET", "name", "Ann", "age", "42"});
      try {
        primitive.verbs[i](*store_);
        ADD_FAILURE() << primitive.name << i;
      } catch (const Error& error) {
        EXPECT_EQ(error.errc(), Errc::wrong_type) << error.message();
      }
    }
    const std::string owner = "4fe2dc49-681f-6c8e-cb1a-79c5ce5fdd8b:21";
    put("x", {"HSET", owner, "1"});
    EXPECT_EQ(Mutex(*store_, "x").info().get().holders.at(0).owner.text, owner) << "Redisson's";
  }
}

}  // namespace
}  // namespace sluice
