/// What a guard says to the store: the scripts of cache.lua, their words and their replies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/entry.hpp"
#include "cache/store_clock.hpp"
#include "store/durable.hpp"

namespace sluice::cache {

struct Look {
  enum class Kind {
    value,
    lead,  ///< it is the caller's to load
    busy,  ///< another process loads
  };
  Kind kind = Kind::busy;
  std::string text;  ///< the value, as it lies in the store; lead: the lease's owner
  std::chrono::milliseconds left{0};  ///< of the other's lease
};

/// What is to be stored.
struct NewEntry {
  bool is_absent = false;
  std::chrono::milliseconds fresh{};
  std::chrono::milliseconds kept{};  ///< an absence: until then, by the store's clock
  std::chrono::nanoseconds load{};
  std::string payload;
};

struct DueKeys {
  struct Key {
    std::string key;
    std::string due;  ///< as the store knows it
  };
  std::vector<Key> keys;
  std::chrono::milliseconds next{-1};  ///< until more are due; -1: there are none
};

/// Threads: any. Where another answer than the store's is at hand (`silence` above 0), what a
/// caller of get() waits for ends with Error (timeout) after `silence`. Each verb throws what the
/// store throws; all may be repeated. Of those that the store sends again by itself a copy is
/// harmless at any later time.
class Wire {
 public:
  Wire(Store& store, const Names& names, std::chrono::milliseconds lease,
       const Durability& durability, std::chrono::milliseconds silence)
      : store_(store),
        names_(names),
        lease_(lease),
        durability_(durability),
        silence_(silence),
        channel_(names.channel()) {}

  /// The text of the value; null: there is none.
  Task<Value> fetch(std::string value_key, SteadyTime until);
  /// Of many keys; each an error or what fetch() says.
  Task<std::vector<Value>> fetch_all(std::vector<std::string> value_keys, SteadyTime until);
  Task<Look> look(std::string value_key, std::string owner, bool waits, std::string replace);
  struct Question {
    std::string value_key, owner, replace;
  };
  /// The same of many keys, for callers that wait; empty: ask for this one alone.
  Task<std::vector<std::optional<Look>>> look_all(std::vector<Question> questions);
  /// `owner` empty: whoever has the lease, and where replicas are demanded they have it. False: the
  /// lease is over, or was taken away.
  Task<bool> store(std::string value_key, std::string owner, NewEntry entry);
  /// False: the lease is over, or was taken away.
  Task<bool> renew(std::string value_key, std::string owner);
  /// The owner of the lease; empty: there is no lease.
  Task<std::string> owner_of(std::string value_key);
  /// `owner`: as look() was told, or has told.
  Task<void> give_back(std::string value_key, std::string owner);
  /// Replicas have it where that is demanded, else Error (unsynced, effect done).
  Task<void> invalidate(std::vector<std::string> value_keys);

  struct Scanned {
    std::string cursor;  ///< "0": that was all
    std::vector<std::string> value_keys;
  };
  /// A step over all nodes: values that the store has, or of which a load runs.
  Task<Scanned> scan(std::string cursor, bool loads);

  /// Until when one more absence may be stored, by the store's clock; below 0: not, for so long.
  Task<std::chrono::milliseconds> admit_absent(std::int64_t budget, std::chrono::milliseconds ttl);

  /// Plans the second invalidation and does the first, in one round trip.
  Task<void> invalidate_twice(std::string key, std::chrono::milliseconds after);
  Task<DueKeys> due(std::chrono::milliseconds retry);
  Task<void> done(DueKeys::Key key);

  /// When a call that is sent now has to be answered.
  SteadyTime patience() const noexcept {
    if (silence_ == silence_.zero()) return SteadyTime::max();
    return Clock::add(store_.clock().steady(), silence_);
  }
  const std::string& channel() const noexcept { return channel_; }
  const StoreClock& clock() const noexcept { return clock_; }

 private:
  /// What is to be acknowledged. Words are copied before this returns.
  Task<Value> run_to_count(const Script& script, Words keys, Words words, CallOptions options);
  Look look_of(Value reply);
  void saw(const Value& now_us) { clock_.saw(now_us.as_integer(), store_.clock().steady()); }

  Store& store_;
  const Names& names_;
  const std::chrono::milliseconds lease_;
  const Durability durability_;
  const std::chrono::milliseconds silence_;
  const std::string channel_;
  StoreClock clock_;
};

}  // namespace sluice::cache
