#include "sluice/cache_guard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/process.hpp"
#include "base/random.hpp"
#include "cache/common.hpp"
#include "cache/flights.hpp"
#include "cache/second_invalidations.hpp"
#include "cache/tracked_cache.hpp"
#include "sluice/metrics.hpp"
#include "store/reply_error.hpp"

namespace sluice {

using cache::Entry;
using std::chrono::milliseconds;

namespace detail {

class CacheCore::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(Store& store, std::string name, CacheGuardOptions options, CacheForm form)
      : common_(std::make_shared<cache::Common>(store, std::move(name), std::move(options), form)),
        flights_(std::make_shared<cache::Flights>(common_)) {
    const CacheGuardOptions& chosen = common_->options;
    if (chosen.near_bytes > 0)
      near_.emplace(
          store, common_->names.prefix(),
          cache::NearCacheOptions{.bytes = chosen.near_bytes, .max_ttl = chosen.near_ttl});
    if (chosen.when_down == CacheWhenDown::copy) {
      copies_.emplace(
          cache::NearCacheOptions{.bytes = chosen.copy_bytes, .max_ttl = cache::longest_time});
      copies_->open();
    }
  }

  void begin() {
    second_ = std::make_shared<cache::SecondInvalidations>(
        common_, [weak = weak_from_this()](const std::string& value_key) {
          if (const auto self = weak.lock()) self->forget(value_key);
        });
  }

  std::optional<CacheObject> find(std::string_view key) {
    const CacheGuardOptions& options = common_->options;
    if (options.is_valid && !options.is_valid(key)) {
      count(metrics().cache_invalid_keys);
      return CacheObject{};
    }
    if (options.may_exist && !passes_gate(key)) {
      count(metrics().cache_gated);
      return CacheObject{};
    }
    if (!near_ || key.size() > cache::longest_key || forks_ != fork_count()) return std::nullopt;
    auto known = near_->cache().find(near_key(key), common_->clock().steady());
    count(known ? metrics().cache_near_hits : metrics().cache_near_misses);
    if (!known) return std::nullopt;
    return std::move(known->object);
  }

  Task<CacheObject> get(std::string key, Loader loader, CacheCallOptions call) {
    const auto self = shared_from_this();
    auto wanted = wanted_of(std::move(key), std::move(loader));
    const SteadyTime deadline = deadline_of(call);
    const std::string value_key = wanted.value_key;
    const Fill copy_fill = begin_copy(value_key);
    std::exception_ptr down;
    try {
      auto known = fetch(wanted, copy_fill, deadline);
      if (const auto found = co_await known) co_return *found;
      throw_known_failure(value_key);
      auto joining = flights_->join(std::move(wanted), deadline);
      const CacheObject object = co_await joining;
      if (copy_fill) keep_copy(value_key, object, *copy_fill);
      co_return object;
    } catch (...) {
      down = std::current_exception();
    }
    co_return copy_of(value_key, down);
  }

  Task<std::vector<Outcome>> get_all(std::vector<std::string> keys, BulkLoader one, BulkLoader all,
                                     CacheCallOptions call) {
    const auto self = shared_from_this();
    check({});
    const SteadyTime deadline = deadline_of(call);
    std::vector<Outcome> outcomes;
    for (std::size_t from = 0; from < keys.size(); from += keys_at_once) {
      std::vector<std::string> some;
      for (auto at = from; at < std::min(from + keys_at_once, keys.size()); ++at)
        some.push_back(std::move(keys[at]));
      auto getting = get_some(std::move(some), one, all, deadline);
      for (auto& each : co_await getting) outcomes.push_back(std::move(each));
    }
    co_return outcomes;
  }

  Task<void> put(std::string key, Loaded value) {
    const auto self = shared_from_this();
    check(key);
    const CacheGuardOptions& options = common_->options;
    const std::string value_key = common_->names.value_of(key);
    if (value.ttl < cache::shortest_ttl)
      refuse(fmt::format("the ttl of '{}' is {} ms; 10 ms is the least", cache::shown(key),
                         value.ttl.count()));
    cache::NewEntry entry{.payload = common_->form.encode(value.object.get())};
    if (entry.payload.size() > options.largest_value)
      refuse(fmt::format("the value of '{}' has {} bytes; largest_value is {}", cache::shown(key),
                         entry.payload.size(), options.largest_value));
    entry.fresh = common_->spread(std::min(options.ttl, value.ttl));
    entry.kept = entry.fresh + options.stale;
    const Forgetting forgetting{*this, {value_key}};
    auto storing = common_->wire.store(value_key, {}, std::move(entry));
    co_await storing;
  }

  Task<void> invalidate(std::vector<std::string> keys) {
    const auto self = shared_from_this();
    for (const auto& key : keys) check(key);
    for (auto& key : keys) key = common_->names.value_of(key);
    if (keys.empty()) co_return;
    const Forgetting forgetting{*this, keys};
    auto invalidating = common_->wire.invalidate(keys);
    co_await invalidating;
    count(metrics().cache_invalidations, keys.size());
  }

  /// Loads first, so that none stores behind us what it has read before.
  Task<std::size_t> clear() {
    const auto self = shared_from_this();
    check({});
    forget_all();
    std::size_t reached = 0;
    std::optional<Error> foreign;
    try {
      for (const bool loads : {true, false}) {
        for (std::string cursor; cursor != "0";) {
          auto scanning = common_->wire.scan(cursor.empty() ? "0" : cursor, loads);
          cache::Wire::Scanned step = co_await scanning;
          cursor = std::move(step.cursor);
          if (step.value_keys.empty()) continue;
          reached += step.value_keys.size();
          try {
            auto invalidating = common_->wire.invalidate(std::move(step.value_keys));
            co_await invalidating;
          } catch (const Error& failure) {
            if (failure.errc() != Errc::wrong_type) throw;
            if (!foreign) foreign = failure;
          }
        }
      }
    } catch (const Error& failure) {
      forget_all();
      throw Error{failure.errc(),
                  fmt::format("the cache '{}' was not cleared beyond {} keys: {}",
                              common_->names.name(), reached, failure.message()),
                  reached == 0 ? failure.effect() : Effect::unknown};
    }
    forget_all();
    count(metrics().cache_invalidations, reached);
    if (foreign) throw Error{*foreign};
    co_return reached;
  }

  Task<void> invalidate_twice(std::string key, milliseconds after) {
    const auto self = shared_from_this();
    check(key);
    if (after < milliseconds{0} || after > std::chrono::days{1})
      refuse(fmt::format("the second invalidation is to come in {} ms; 1 day is the most",
                         after.count()));
    const std::string value_key = common_->names.value_of(key);
    const Forgetting forgetting{*this, {value_key}};
    auto invalidating = common_->wire.invalidate_twice(std::move(key), after);
    co_await invalidating;
    second_->look_in(after + milliseconds{1});
    count(metrics().cache_invalidations);
  }

  void close() {
    common_->closed = true;
    second_->close();
    flights_->close();
    common_->loads.close();
    common_->under_way.wait();
  }
  bool is_of_parent() const noexcept { return forks_ != fork_count(); }
  /// Never ends: its threads are the parent's.
  void stay() { self_ = shared_from_this(); }

 private:
  using Fill = std::optional<cache::NearCache::Fill>;
  static constexpr std::size_t keys_at_once = 100;

  /// A key of get_all() that is not known here.
  struct Asked {
    Outcome& outcome;
    cache::Flights::Wanted wanted;
    std::string value_key;
    Fill near_fill, copy_fill;
  };
  template <class Action>
  static void attempt(Outcome& outcome, Action action) {
    try {
      action();
    } catch (...) {
      outcome.error = std::current_exception();
    }
  }

  Task<std::vector<Outcome>> get_some(std::vector<std::string> keys, BulkLoader one, BulkLoader all,
                                      SteadyTime deadline) {
    std::vector<Outcome> outcomes(keys.size());
    std::vector<Asked> asked;
    for (std::size_t i = 0; i < keys.size(); ++i)
      attempt(outcomes[i], [&] {
        outcomes[i].value = find(keys[i]);
        if (outcomes[i].value) return;
        auto load = [one, key = keys[i]] { return std::move(one({key}).at(0)); };
        auto wanted = wanted_of(std::move(keys[i]), std::move(load));
        const std::string key = wanted.value_key;
        const SteadyTime now = common_->clock().steady();
        asked.push_back(
            {outcomes[i], std::move(wanted), key, begin_near(key, now), begin_copy(key)});
      });
    std::exception_ptr error;
    try {
      auto reading = read_all(asked, deadline);
      co_await reading;
    } catch (...) {
      error = std::current_exception();
    }
    std::vector<cache::Flights::Wanted> missing;
    std::vector<Asked*> waiting;
    for (auto& each : asked) {
      if (error) each.outcome.error = error;
      if (each.outcome.value || each.outcome.error) continue;
      attempt(each.outcome, [&] { throw_known_failure(each.value_key); });
      if (each.outcome.error) continue;
      missing.push_back(std::move(each.wanted));
      waiting.push_back(&each);
    }
    auto joined = flights_->join_all(std::move(missing), std::move(all), deadline);
    for (std::size_t i = 0; i < joined.size(); ++i) {
      Asked& each = *waiting[i];
      try {
        each.outcome.value = co_await joined[i];
        if (each.copy_fill) keep_copy(each.value_key, *each.outcome.value, *each.copy_fill);
      } catch (...) {
        each.outcome.error = std::current_exception();
      }
    }
    for (auto& [outcome, wanted, key, near_fill, copy_fill] : asked)
      if (const auto failure = std::exchange(outcome.error, nullptr))
        attempt(outcome, [&, &to = outcome, &of = key] { to.value = copy_of(of, failure); });
    co_return outcomes;
  }

  /// What the store has of them.
  Task<void> read_all(std::vector<Asked>& asked, SteadyTime deadline) {
    const SteadyTime begun = common_->clock().steady();
    std::vector<Value> texts(asked.size());
    if (asked.empty()) co_return;
    if (may_ask(begun)) try {
        std::vector<std::string> keys;
        for (const auto& each : asked) keys.push_back(each.value_key);
        auto reading = common_->wire.fetch_all(std::move(keys), deadline);
        texts = co_await reading;
        common_->breaker.succeeded();
      } catch (const Error& failure) {
        take_failure(failure, begun, deadline);
      }
    for (std::size_t i = 0; i < asked.size(); ++i)
      attempt(asked[i].outcome, [&, &each = asked[i], &text = texts[i]] {
        const std::string_view command[] = {"GET", each.value_key};
        if (text.is_error())
          take_failure(error_of_command(text.as_text(), command), begun, deadline);
        if (text.is_null() || text.is_error())
          count(metrics().cache_misses);
        else
          each.outcome.value = use(each.wanted, text.as_text(), each.near_fill, each.copy_fill);
      });
  }

  /// Takes keys out of this process before and after they change in the store, whatever comes of
  /// that.
  class Forgetting {
   public:
    Forgetting(Impl& all, std::vector<std::string> value_keys)
        : all_(all), value_keys_(std::move(value_keys)) {
      forget();
    }
    ~Forgetting() { forget(); }
    Forgetting(const Forgetting&) = delete;
    Forgetting& operator=(const Forgetting&) = delete;

   private:
    void forget() {
      for (const auto& key : value_keys_) all_.forget(key);
    }
    Impl& all_;
    const std::vector<std::string> value_keys_;
  };

  void forget(const std::string& value_key) {
    if (near_) near_->cache().invalidate(value_key);
    if (copies_) copies_->invalidate(value_key);
    common_->failures.forget(value_key);
  }

  void forget_all() {
    if (near_) near_->cache().flush();
    if (copies_) copies_->flush();
    common_->failures.forget_all();
  }

  void throw_known_failure(const std::string& value_key) {
    const auto failure = common_->failures.find(value_key, common_->clock().steady());
    if (!failure) return;
    count(metrics().cache_failures_told);
    std::rethrow_exception(failure);
  }

  [[noreturn]] void refuse(std::string_view what) const {
    throw Error{Errc::bad_argument,
                fmt::format("cache guard '{}': {}", common_->names.name(), what)};
  }

  void check(std::string_view key) {
    if (is_of_parent()) throw closed_by_fork();
    common_->check_open();
    if (key.size() > cache::longest_key)
      refuse(fmt::format("a key has {} bytes; 64 KiB is the most", key.size()));
    second_->start();
  }

  bool passes_gate(std::string_view key) {
    try {
      return common_->options.may_exist(key);
    } catch (...) {
      count(metrics().cache_gate_failures);
      return true;
    }
  }

  /// The key of a value, in a text of this thread.
  std::string_view near_key(std::string_view key) {
    static thread_local std::string text;
    common_->names.value_into(text, key);
    return text;
  }

  /// What the store has. Empty: nothing that will do; `wanted.replace` says what not.
  Task<std::optional<CacheObject>> fetch(cache::Flights::Wanted& wanted, Fill copy_fill,
                                         SteadyTime deadline) {
    const SteadyTime begun = common_->clock().steady();
    if (!may_ask(begun)) co_return std::nullopt;
    const auto near_fill = begin_near(wanted.value_key, begun);
    Value text;
    try {
      auto asked = common_->wire.fetch(wanted.value_key, deadline);
      text = co_await asked;
      common_->breaker.succeeded();
    } catch (const Error& failure) {
      take_failure(failure, begun, deadline);
    }
    if (text.is_null()) {
      count(metrics().cache_misses);
      co_return std::nullopt;
    }
    co_return use(wanted, text.as_text(), near_fill, copy_fill);
  }

  /// False: the store is down, and loads go on without it. Throws Error where they do not.
  bool may_ask(SteadyTime now) {
    if (!common_->breaker.is_open(now)) return true;
    count(metrics().cache_store_down);
    if (common_->options.when_down == CacheWhenDown::load) return false;
    throw Error{Errc::connection,
                fmt::format("the store of the cache '{}' was not reached a moment ago: {}",
                            common_->names.name(), common_->store.describe())};
  }
  /// Of a call to the store. Throws it where no load goes on without the store.
  void take_failure(const Error& failure, SteadyTime begun, SteadyTime deadline) {
    if (!cache::is_away(failure)) throw Error{failure};
    count(metrics().cache_store_down);
    const SteadyTime now = common_->clock().steady();
    common_->breaker.failed(failure, begun, now);
    if (common_->options.when_down != CacheWhenDown::load || now >= deadline) throw Error{failure};
  }
  /// The copy of the process where the store is away. Throws `error` where there is none.
  CacheObject copy_of(const std::string& value_key, const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const Error& failure) {
      const auto copy =
          copies_ && cache::is_away(failure) ? copies_->find_stale(value_key) : std::nullopt;
      if (!copy) throw;
      count(metrics().cache_copies_served);
      return copy->object;
    }
  }

  cache::Flights::Wanted wanted_of(std::string key, Loader loader) {
    check(key);
    cache::Flights::Wanted wanted{.key = std::move(key),
                                  .value_key = {},
                                  .loader = std::move(loader),
                                  .need = cache::Loads::current()};
    wanted.value_key = common_->names.value_of(wanted.key);
    if (common_->loads.is_loading(wanted.value_key))
      refuse(fmt::format("the loader of '{}' asks for this key, itself or by a load that it needs",
                         cache::shown(wanted.key)));
    return wanted;
  }
  SteadyTime deadline_of(const CacheCallOptions& call) const {
    const milliseconds wait = call.wait > milliseconds{0} ? call.wait : common_->options.wait;
    return Clock::add(common_->clock().steady(), wait);
  }

  std::optional<CacheObject> use(cache::Flights::Wanted& wanted, std::string_view text,
                                 const Fill& near_fill, const Fill& copy_fill) {
    const auto entry = cache::parse_entry(text, wanted.value_key);
    auto object = entry ? common_->decode(*entry, wanted.value_key) : std::nullopt;
    if (!object) {
      count(metrics().cache_misses);
      wanted.replace = entry ? entry->head : text.substr(0, text.find('\n'));
      return std::nullopt;
    }
    count(entry->is_absent ? metrics().cache_absent_hits : metrics().cache_hits);
    const SteadyTime now = common_->clock().steady();
    const auto left = time_left(*entry, now);
    if (near_fill) keep_near(wanted.value_key, *entry, *object, *near_fill, now + left);
    if (copy_fill) keep_copy(wanted.value_key, *object, *copy_fill, entry->payload.size());
    const bool is_over = left <= left.zero();
    if (is_over) count(metrics().cache_stale_served);
    if (is_over || (!entry->is_absent && is_early(*entry, left))) {
      wanted.replace = entry->head;
      const bool begins = flights_->refresh(std::move(wanted));
      if (begins && !is_over) count(metrics().cache_early_refreshes);
    }
    return object;
  }

  /// How long the entry is fresh by what is known of the store's clock. A value that would be so
  /// for longer than any is of a clock that was set back since, and may be of any age.
  std::chrono::microseconds time_left(const Entry& entry, SteadyTime now) const {
    constexpr auto blur = std::chrono::seconds{1};
    const cache::StoreClock& clock = common_->wire.clock();
    if (!clock.is_known(now)) return std::chrono::microseconds::max() / 1'000'000;
    const std::chrono::microseconds left{entry.fresh_until_us - clock.now_us(now)};
    return !entry.is_absent && left > common_->options.ttl + blur ? left.zero() : left;
  }

  /// XFetch: the nearer the end, and the longer the load, the likelier.
  bool is_early(const Entry& entry, std::chrono::microseconds left) const {
    const double beta = common_->options.early;
    if (beta <= 0 || entry.load_us <= 0) return false;
    constexpr std::uint64_t whole = std::uint64_t{1} << 53;
    const double chance = static_cast<double>(random_below(whole) + 1) / static_cast<double>(whole);
    return -beta * static_cast<double>(entry.load_us) * std::log(chance) >=
           static_cast<double>(left.count());
  }

  Fill begin_near(std::string_view value_key, SteadyTime now) {
    if (!near_ || !near_->cache().is_open()) return std::nullopt;
    return near_->cache().begin_fill(value_key, now);
  }
  void keep_near(std::string_view value_key, const Entry& entry, const CacheObject& object,
                 const cache::NearCache::Fill& fill, SteadyTime until) {
    const SteadyTime latest =
        Clock::add(common_->clock().steady(), common_->spread(common_->options.near_ttl));
    // NOLINTNEXTLINE(*-unchecked-optional-access): the Fill is from it
    near_->cache().fill(fill, value_key, {object}, entry.payload.size() + value_key.size(),
                        std::min(until, latest));
  }
  Fill begin_copy(std::string_view value_key) const {
    if (!copies_) return std::nullopt;
    return copies_->begin_fill(value_key, common_->clock().steady());
  }
  void keep_copy(std::string_view value_key, const CacheObject& object,
                 const cache::NearCache::Fill& fill) {
    keep_copy(value_key, object, fill, object ? common_->form.encode(object.get()).size() : 0);
  }
  void keep_copy(std::string_view value_key, const CacheObject& object,
                 const cache::NearCache::Fill& fill, std::size_t bytes) {
    // NOLINTNEXTLINE(*-unchecked-optional-access): the Fill is from it
    copies_->fill(fill, value_key, {object}, bytes + value_key.size(), SteadyTime::max());
  }

  const std::shared_ptr<cache::Common> common_;
  const std::shared_ptr<cache::Flights> flights_;
  std::shared_ptr<cache::SecondInvalidations> second_;
  std::optional<cache::TrackedCache> near_;
  std::optional<cache::NearCache> copies_;
  const unsigned forks_ = fork_count();
  std::shared_ptr<Impl> self_;
};

CacheCore::CacheCore(Store& store, std::string name, CacheGuardOptions options, CacheForm form)
    : impl_(std::make_shared<Impl>(store, std::move(name), std::move(options), form)) {
  impl_->begin();
}

CacheCore::~CacheCore() {
  if (!impl_) return;
  if (impl_->is_of_parent()) {
    impl_->stay();
  } else {
    impl_->close();
  }
}

CacheCore::CacheCore(CacheCore&&) noexcept = default;
CacheCore& CacheCore::operator=(CacheCore&& other) noexcept {
  if (this != &other) CacheCore{std::move(other)}.impl_.swap(impl_);
  return *this;
}

std::optional<CacheObject> CacheCore::find(std::string_view key) { return impl_->find(key); }
Task<CacheObject> CacheCore::get(std::string key, Loader loader, CacheCallOptions options) {
  return impl_->get(std::move(key), std::move(loader), options);
}
Task<std::vector<CacheCore::Outcome>> CacheCore::get_all(std::vector<std::string> keys,
                                                         BulkLoader one, BulkLoader all,
                                                         CacheCallOptions options) {
  return impl_->get_all(std::move(keys), std::move(one), std::move(all), options);
}
Task<void> CacheCore::put(std::string key, Loaded value) {
  return impl_->put(std::move(key), std::move(value));
}
Task<void> CacheCore::invalidate(std::vector<std::string> keys) {
  return impl_->invalidate(std::move(keys));
}
Task<std::size_t> CacheCore::clear() { return impl_->clear(); }
Task<void> CacheCore::invalidate_twice(std::string key, milliseconds after) {
  return impl_->invalidate_twice(std::move(key), after);
}

}  // namespace detail
}  // namespace sluice
