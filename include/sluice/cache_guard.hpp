/// A read-through cache: what the store does not have is loaded once, whatever number of callers
/// and processes miss it.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/durability.hpp"
#include "sluice/store.hpp"

namespace sluice {

/// How a T lies in the store. std::string is stored as it is; of another T give a specialization
/// with these two. What decode() throws counts as a miss: the value is loaded anew, as after a
/// deployment that has changed T.
///
///     template <>
///     struct sluice::CacheCodec<User> {
///       static std::string encode(const User& user);
///       static User decode(std::string_view bytes);
///     };
template <class T>
struct CacheCodec;

template <>
struct CacheCodec<std::string> {
  static std::string encode(const std::string& value) { return value; }
  static std::string decode(std::string_view bytes) { return std::string{bytes}; }
};

/// What a loader may return in the place of a T: a value with a time of its own, as that of a token
/// or of an answer with max-age. The guard's `ttl` is the longest: more is cut to it. Below 10 ms
/// the value is given to its callers, and not stored. `jitter` shortens it, and `stale` follows it,
/// as any.
template <class T>
struct CacheValue {
  T value;
  std::chrono::milliseconds ttl;
};

/// What a call gets while the store cannot be reached, is silent, or takes no more than reads.
enum class CacheWhenDown {
  fail,  ///< the store's Error, at once: the database is protected
  copy,  ///< the copy of the process, however old, and where there is none the Error
  load,  ///< what the loader says, within the bulkhead; nothing is stored
};

/// Each protection, and what it costs.
struct CacheGuardOptions {
  /// How long a value is fresh; from 10 ms to 10 years. More: fewer loads, older values where
  /// nobody invalidates.
  std::chrono::milliseconds ttl = std::chrono::minutes{10};
  /// Avalanche: each value lives shorter than `ttl` by up to this part of it, at random, so that
  /// what was written together does not end together; so do near values (`near_ttl`) and failures
  /// (`failure_ttl`). From 0 to 0.9; costs nothing.
  double jitter = 0.1;
  /// Breakdown: so long behind its ttl a value is served on while one load runs. Callers never wait
  /// for a value that is in use, and may get one that is older than `ttl`. 0: never older.
  std::chrono::milliseconds stale{0};
  /// Avalanche: values in use are loaded anew somewhat before they end (XFetch: Vattani,
  /// Chierichetti and Lowenstein, VLDB 2015, beta), by one process. 0: never; more: earlier. Costs
  /// one load some load times early, and an estimate of the store's clock: TIME with a GET, twice a
  /// minute.
  double early = 1.0;

  /// Penetration: how long it is known that there is no value, at most; at random, so that absences
  /// do not end together, and a quarter of it at least. 0: absence is not cached.
  std::chrono::milliseconds absent_ttl = std::chrono::seconds{30};
  /// How many absences may lie in the store at once, for all processes of this guard's name: a
  /// flood of random keys fills no more. Costs a round trip for each absence that is stored.
  std::int64_t absent_budget = 10'000;
  /// Refuses a key before any I/O, as that of an id that is not above 0: there is no value. Empty:
  /// every key will do.
  std::function<bool(std::string_view key)> is_valid = {};
  /// The gate, such as a Bloom filter: false: there is certainly no value. One that throws is open.
  /// Add to the filter before you commit a new row. Empty: no gate.
  std::function<bool(std::string_view key)> may_exist = {};

  /// Breakdown: for how long one process is given the load of a key, and so how long the others
  /// wait when it is killed. It is renewed while the load runs.
  std::chrono::milliseconds lease = std::chrono::seconds{5};
  /// For how long it is renewed, until the value is stored; 0: never. A value that comes after its
  /// lease is not stored, and another process may load meanwhile. More: slower loads are single,
  /// too. Less: the others wait less for a load that hangs in a process that lives. Costs a script
  /// each third of the lease.
  std::chrono::milliseconds longest_load = std::chrono::seconds{30};
  /// How long what a loader has thrown is told to the next calls of this process for the key,
  /// unless there is a value or this process invalidates it; up to some 2,000 keys. 0, the default:
  /// each call loads anew, so that one that tries again can succeed. More, some 100 ms to a few
  /// seconds: a database that fails slowly is asked for a key by each process once in that time.
  std::chrono::milliseconds failure_ttl{0};
  /// How long a call waits for a value, at most.
  std::chrono::milliseconds wait = std::chrono::seconds{10};
  /// The bulkhead: so many loads of this guard run at once in this process, each on a thread of the
  /// guard; 1 to 1024.
  std::size_t max_loads = 16;
  /// So many more wait for their turn; beyond it a call is refused (Errc::overloaded).
  std::size_t max_waiting_loads = 1000;

  /// How many replicas must have an invalidation or a `put` before it is acknowledged, so that it
  /// outlives a failover to one of them; else it throws Error (unsynced, effect done). Loads do not
  /// wait for replicas.
  Durability durability = {};
  CacheWhenDown when_down = CacheWhenDown::fail;
  /// With `copy` and `load`: a store that leaves a call without an answer for so long is down, as
  /// one that cannot be reached; from 1 ms. Less: a server that hangs delays fewer calls. More: one
  /// that is slow for a moment is waited for. With `fail` the Store's `command_timeout` says it.
  std::chrono::milliseconds silence{100};
  /// Values in the process, kept right by what the store tells of changed keys; bytes, 0: none. A
  /// hit costs no I/O, and may be older than an invalidation by the time its message takes.
  std::size_t near_bytes = 0;
  /// How long a value stays there at most.
  std::chrono::milliseconds near_ttl = std::chrono::minutes{1};
  /// What CacheWhenDown::copy keeps, bytes.
  std::size_t copy_bytes = std::size_t{16} << 20;
  /// A larger value is given to its callers, and not stored; bytes, up to 512 MB.
  std::size_t largest_value = std::size_t{16} << 20;
};

/// What get_all() has for a key.
template <class T>
struct CacheOutcome {
  std::optional<T> value{};    ///< empty: there is none, or `error` says why that is not known
  std::exception_ptr error{};  ///< what get() of this key would throw; null: nothing

  /// The value; throws `error`.
  const std::optional<T>& get() const {
    if (error) std::rethrow_exception(error);
    return value;
  }
};

struct CacheCallOptions {
  /// How long this call waits; 0: CacheGuardOptions::wait.
  std::chrono::milliseconds wait{0};
};

namespace detail {

/// A value of any type; null: there is none.
using CacheObject = std::shared_ptr<const void>;

struct CacheForm {
  std::string (*encode)(const void* object);
  CacheObject (*decode)(std::string_view bytes);
};

/// CacheGuard without the type of its values.
class CacheCore {
 public:
  struct Loaded {
    CacheObject object;
    std::chrono::milliseconds ttl = std::chrono::milliseconds::max();
  };
  using Loader = std::function<Loaded()>;
  /// In the order of the keys.
  using BulkLoader = std::function<std::vector<Loaded>(const std::vector<std::string>& keys)>;
  using Outcome = CacheOutcome<CacheObject>;

  CacheCore(Store& store, std::string name, CacheGuardOptions options, CacheForm form);
  ~CacheCore();
  CacheCore(CacheCore&&) noexcept;
  CacheCore& operator=(CacheCore&&) noexcept;

  /// What is known without I/O.
  std::optional<CacheObject> find(std::string_view key);
  Task<CacheObject> get(std::string key, Loader loader, CacheCallOptions options);
  /// `one`: for one key; `all` empty: for each.
  Task<std::vector<Outcome>> get_all(std::vector<std::string> keys, BulkLoader one, BulkLoader all,
                                     CacheCallOptions options);
  Task<void> put(std::string key, Loaded value);
  Task<void> invalidate(std::vector<std::string> keys);
  Task<void> invalidate_twice(std::string key, std::chrono::milliseconds after);
  Task<std::size_t> clear();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

template <class T>
inline constexpr bool is_task = false;
template <class T>
inline constexpr bool is_task<Task<T>> = true;

/// The result of a loader, a Task of it awaited.
template <class Load, class Key>
auto run_loader(Load& load, const Key& key) {
  auto result = [&] {
    if constexpr (std::invocable<Load&, const Key&>)
      return load(key);
    else
      return load();
  }();
  if constexpr (is_task<decltype(result)>)
    return result.get();
  else
    return result;
}

}  // namespace detail

/// A cache in front of a database, shared by all processes that name it.
///
/// Guarantee: among all callers of all processes one load of a key runs at a time, while its lease
///   lasts, which is renewed for `longest_load`. A get that begins after an invalidation (or put)
///   was acknowledged returns nothing that was loaded before it, as long as the store keeps its
///   data and the guard has no near cache and no copies: an old value that a slow loader brings is
///   given to none but those who asked before it began, and never stored. With `durability` the
///   promotion of a replica is no loss of data. What the loader throws goes to every call that
///   waited for that load, and the next call loads anew, or after `failure_ttl`. A caller that goes
///   away, or whose time is over, disturbs no load that others wait for. Never more than
///   `max_loads` loads run at once in a process, nor lie more than `absent_budget` absences in the
///   store. The tests that hold it: docs/cache.md#guarantee.
/// Not guaranteed: that a load runs once when it takes longer than `longest_load` and the lease, or
///   its process stands still for longer than the lease. That a near cache of another process has
///   heard of an invalidation when it is acknowledged: it is told by message, and `near_ttl` is the
///   longest it can be wrong. That an invalidation outlives a store that lost it (restart from an
///   older snapshot, failover to a replica that did not have to know it): `ttl` bounds that. That a
///   `put` by two writers keeps the later row: invalidate instead.
/// Threads: any. Loaders run on threads of the guard, so what they refer to must live until the
///   guard ends; its end waits for those that run. The Store must outlive the guard, the guard its
///   Tasks. A child of fork() makes its own.
/// In Redis: string NAME:KEY (a head of some 30 bytes, and the value), ttl and `stale` long; hash
///   sluice_cache_lease:{NAME:KEY} while a load runs; hash sluice_cache_absent:{NAME}, the budget;
///   sorted set sluice_cache_again:{NAME}, second invalidations that are due; channel
///   sluice_cache:{NAME}, on which those who wait for a load are told of its end. A hit is one GET,
///   a load two scripts more; of many keys a batch of each, for a hundred at a time.
///
///     CacheGuard<std::string> users{*store, "user"};
///     const auto name =
///         users.get("42", [&](const std::string& id) { return select_name(id); }).get();
///     const auto select = [&](const std::vector<std::string>& ids) { return select_names(ids); };
///     for (const auto& each : users.get_all({"42", "43", "44"}, select).get())
///       print(each.get().value_or("nobody"));
template <class T>
class CacheGuard {
 public:
  /// Throws Error (bad_argument): an empty name, one above 1 KiB, braces in it that are no whole
  /// tag, a name whose keys would be another's (":{x}", "sluice_cache_lease:{x}"), an option out of
  /// range.
  explicit CacheGuard(Store& store, std::string name, CacheGuardOptions options = {})
      : core_(store, std::move(name), std::move(options), form) {}

  /// The value of `key`, from the cache or else by `load(key)` or `load()`, which returns a T or
  /// CacheValue<T>, a std::optional of these (empty: there is none) or a Task of any. Empty: there
  /// is none.
  /// Throws Error: bad_argument (a key above 64 KiB; a loader that asks for the key it loads, also
  /// in a circle over guards of one Store);
  /// timeout (no value within the wait); overloaded (too many loads wait for their turn);
  /// wrong_type (the key holds what no guard wrote); what the store throws, as `when_down` says;
  /// and what the loader throws, as it is.
  template <class Load>
  Task<std::optional<T>> get(std::string key, Load load, CacheCallOptions options = {}) {
    if (const auto known = core_.find(key)) return Task<std::optional<T>>::ready(value_of(*known));
    auto shared = std::make_shared<Load>(std::move(load));
    auto run = [shared = std::move(shared), key] {
      return loaded(detail::run_loader(*shared, key));
    };
    return take(core_.get(std::move(key), std::move(run), options));
  }

  /// The same for many keys: what each has, in their order. They are read in one round trip for
  /// each 100, and what has to be loaded of these by one call of `load(missing keys)`, which
  /// returns a map from key to value (std::map, std::unordered_map; a key that it lacks: there is
  /// none) or a Task of it, and takes one place of the bulkhead; a loader as of get() is called for
  /// each key. Each key has a lease of its own, and what get() promises holds for each; what is
  /// being loaded already is waited for, and loaded by `load` of that key alone if that fails.
  /// A failure of one key is that key's alone, but what `load(missing keys)` throws is told to all
  /// that it was to load. Throws Error: closed.
  template <class Load>
  Task<std::vector<CacheOutcome<T>>> get_all(std::vector<std::string> keys, Load load,
                                             CacheCallOptions options = {}) {
    using Keys = std::vector<std::string>;
    constexpr bool is_bulk = std::invocable<Load&, const Keys&>;
    auto run = [shared = std::make_shared<Load>(std::move(load))](const Keys& missing) {
      std::vector<detail::CacheCore::Loaded> answers;
      if constexpr (is_bulk) {
        auto found = detail::run_loader(*shared, missing);
        for (const auto& key : missing) {
          const auto at = found.find(key);
          answers.push_back(at == found.end() ? detail::CacheCore::Loaded{} : loaded(at->second));
        }
      } else {
        for (const auto& key : missing) answers.push_back(loaded(detail::run_loader(*shared, key)));
      }
      return answers;
    };
    detail::CacheCore::BulkLoader all;
    if constexpr (is_bulk) all = run;
    return take_all(core_.get_all(std::move(keys), std::move(run), std::move(all), options));
  }

  /// Writes a value, over whatever a load brings. For values that one writer has; what two writers
  /// put may come in another order than their rows. Throws what the store throws, and Error
  /// (wrong_type) for a key that holds what no guard wrote. After an effect that is unknown the
  /// value may be written late, over one that was put since: invalidate then, or put again.
  /// `ttl`: as that of CacheValue, but Error (bad_argument) below 10 ms; by itself the guard's.
  Task<void> put(std::string key, T value,
                 std::chrono::milliseconds ttl = std::chrono::milliseconds::max()) {
    return core_.put(std::move(key), {std::make_shared<const T>(std::move(value)), ttl});
  }
  /// The value has changed: commit it to the database first, then call this. Returns when no
  /// process is given the old one any more. Throws what the store throws; call it again then, or
  /// use `invalidate_twice`. Throws Error (wrong_type) for a key that holds what no guard wrote.
  Task<void> invalidate(std::string key) {
    std::vector<std::string> keys{std::move(key)};
    return core_.invalidate(std::move(keys));
  }
  /// The same for many, in one round trip. Each key stands for itself: one that fails keeps no
  /// other from being invalidated. Throws the first failure; the message names the keys that
  /// failed, up to ten. Effect none: no value was removed; else call it again, for all or for those
  /// that failed. Error (unsynced): all were, and too few replicas have it. Error (bad_argument): a
  /// key is above 64 KiB, and no key was sent.
  Task<void> invalidate_all(std::vector<std::string> keys) {
    return core_.invalidate(std::move(keys));
  }
  /// The same, and once more after `after`, by whatever process has a guard of this name then,
  /// until it has succeeded: for a database whose replicas lag, and before a commit (the second one
  /// comes behind it, even when this process is killed in between). At most 1 day.
  Task<void> invalidate_twice(std::string key, std::chrono::milliseconds after) {
    return core_.invalidate_twice(std::move(key), after);
  }
  /// Invalidates all keys of the guard's name that the store has, on every node of a cluster, also
  /// those that are being loaded, as after a change of many rows. A get() of any key that begins
  /// when this has returned gets nothing that was loaded before it began. Returns how many values
  /// and loads it found. It looks at each key of the store, some thousands a round trip, and blocks
  /// nobody. Throws Error: wrong_type, which names such keys as hold what no guard has written,
  /// when all others are cleared; and what the store throws, with how many keys were reached
  /// before, when the rest was not: call it again. Not reached is what moves meanwhile to a node of
  /// a cluster that was looked at before.
  Task<std::size_t> clear() { return core_.clear(); }

 private:
  static std::optional<T> value_of(const detail::CacheObject& object) {
    if (!object) return std::nullopt;
    return *static_cast<const T*>(object.get());
  }
  template <class Answer>
  static detail::CacheCore::Loaded loaded(Answer answer) {
    if constexpr (std::same_as<Answer, CacheValue<T>>)
      return {std::make_shared<const T>(std::move(answer.value)), answer.ttl};
    else if constexpr (std::same_as<Answer, std::optional<CacheValue<T>>>)
      return answer ? loaded(*std::move(answer)) : detail::CacheCore::Loaded{};
    else if (std::optional<T> value = std::move(answer))
      return {std::make_shared<const T>(*std::move(value))};
    return {};
  }
  static Task<std::optional<T>> take(Task<detail::CacheObject> asked) {
    co_return value_of(co_await asked);
  }
  static Task<std::vector<CacheOutcome<T>>> take_all(
      Task<std::vector<detail::CacheCore::Outcome>> asked) {
    std::vector<CacheOutcome<T>> outcomes;
    for (auto& each : co_await asked)
      outcomes.push_back({value_of(each.value.value_or(nullptr)), std::move(each.error)});
    co_return outcomes;
  }
  static constexpr detail::CacheForm form{
      .encode = [](const void* object) -> std::string {
        return CacheCodec<T>::encode(*static_cast<const T*>(object));
      },
      .decode = [](std::string_view bytes) -> detail::CacheObject {
        return std::make_shared<const T>(CacheCodec<T>::decode(bytes));
      }};

  detail::CacheCore core_;
};

}  // namespace sluice
