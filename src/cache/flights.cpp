#include "cache/flights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/random.hpp"
#include "cache/renewal.hpp"
#include "sluice/log.hpp"
#include "sluice/metrics.hpp"

namespace sluice::cache {
namespace {

using std::chrono::milliseconds;

}  // namespace

Flights::Flights(std::shared_ptr<Common> common)
    : common_(std::move(common)), owner_(random_hex_128()) {}

Task<Object> Flights::join(Wanted wanted, SteadyTime deadline) {
  Joined joined = enter(wanted);
  if (joined.is_first) spawn(fly(joined.flight));
  return outcome_of(std::move(joined), deadline);
}

std::vector<Task<Object>> Flights::join_all(std::vector<Wanted> all, BulkLoader load,
                                            SteadyTime deadline) {
  std::vector<Task<Object>> outcomes;
  std::vector<FlightPointer> together;
  for (auto& wanted : all) {
    Joined joined = enter(wanted);
    if (joined.is_first) together.push_back(joined.flight);
    outcomes.push_back(outcome_of(std::move(joined), deadline));
  }
  if (load && !together.empty() && !common_->breaker.is_open(common_->clock().steady())) {
    spawn(fly_together(std::move(together), std::move(load)));
  } else {
    for (auto& flight : together) spawn(fly(std::move(flight)));
  }
  return outcomes;
}

Flights::Joined Flights::enter(Wanted& wanted) {
  Joined joined;
  joined.caller = std::make_shared<Caller>(common_->store.driver(), std::move(wanted.loader),
                                           std::move(wanted.need));
  auto& flight = joined.flight;
  bool was_alone = false;
  bool checks = false;
  {
    const std::lock_guard lock{mutex_};
    common_->check_open();
    std::tie(flight, joined.is_first) = flight_of(wanted);
    checks = !flight->owner.empty() && !std::exchange(flight->is_checked, true);
    if (flight->replace.empty()) flight->replace = std::move(wanted.replace);
    was_alone = flight->callers.empty();
    joined.caller->number = ++flight->joined;
    flight->callers.push_back(joined.caller);
  }
  if (!joined.is_first && was_alone) wake(flight);  // it rests for a refresh, which nobody hurries
  if (checks) spawn(check(flight));
  return joined;
}

Task<Object> Flights::outcome_of(Joined joined, SteadyTime deadline) {
  const auto& [flight, caller, is_first] = joined;
  if (const bool done = co_await wait_until(caller->done, common_->clock(), deadline); !done) {
    const std::lock_guard lock{mutex_};
    std::vector<FlightPointer> waits_in{flight};  // or it was led anew
    if (const auto slot = flights_.find(flight->value_key); slot != flights_.end())
      for (auto& each : with_overtaken(slot->second)) waits_in.push_back(std::move(each));
    if (std::ranges::any_of(waits_in, [&waiter = caller](const auto& each) {
          return std::erase(each->callers, waiter) == 1;
        }))
      throw Error{
          Errc::timeout,
          fmt::format("no value for '{}' of the cache '{}' came within the wait of the call, which "
                      "waited for {}",
                      shown(flight->key), common_->names.name(), flight->waits_for)};
  }
  if (caller->error) std::rethrow_exception(caller->error);
  co_return caller->object;
}

bool Flights::refresh(Wanted wanted) {
  FlightPointer flight;
  {
    const std::lock_guard lock{mutex_};
    if (common_->closed) return false;
    bool is_new = false;
    std::tie(flight, is_new) = flight_of(wanted);
    if (!is_new) return false;
    flight->replace = std::move(wanted.replace);
    flight->refresher = std::move(wanted.loader);
  }
  spawn(fly(flight));
  return true;
}

/// The flight that a caller joins, and whether it is new. REQUIRES: mutex_.
std::pair<Flights::FlightPointer, bool> Flights::flight_of(const Wanted& wanted) {
  auto& slot = flights_[wanted.value_key];
  if (slot) {
    const bool is_new = lead_anew(slot, true) != nullptr;
    return {slot, is_new};
  }
  slot = std::make_shared<Flight>();
  slot->key = wanted.key;
  slot->value_key = wanted.value_key;
  return {slot, true};
}

/// REQUIRES: mutex_.
std::vector<Flights::FlightPointer> Flights::with_overtaken(const FlightPointer& flight) {
  std::vector<FlightPointer> both;
  if (flight) both.push_back(flight);
  if (auto before = flight ? flight->before.lock() : nullptr) both.push_back(std::move(before));
  return both;
}

/// A load whose lease was taken away, or is over, is led anew for those who came after it began; no
/// more than one of a key at a time. `has_come`: somebody comes. REQUIRES: mutex_. Null: not now.
Flights::FlightPointer Flights::lead_anew(FlightPointer& slot, bool has_come) {
  const auto before = slot->before.lock();
  if (!slot->is_lost || (before && !before->is_over)) return nullptr;
  const auto later = std::ranges::find_if(
      slot->callers, [led = slot->led](const auto& caller) { return caller->number > led; });
  if (later == slot->callers.end() && !has_come) return nullptr;
  const auto next = std::make_shared<Flight>();
  next->key = slot->key;
  next->value_key = slot->value_key;
  next->joined = slot->joined;
  next->callers.assign(later, slot->callers.end());
  next->before = slot;
  slot->callers.erase(later, slot->callers.end());
  slot = next;
  return next;
}

/// Whether the load that a caller has joined still has its lease.
Task<void> Flights::check(FlightPointer flight) {
  const auto self = shared_from_this();
  const UnderWay::Scope scope{common_->under_way};
  for (std::uint64_t seen = 0;;) {
    std::string owner;
    {
      const std::lock_guard lock{mutex_};
      flight->is_checked = !flight->owner.empty() && !flight->is_lost && flight->joined != seen;
      if (!flight->is_checked) co_return;
      seen = flight->joined;
      owner = flight->owner;
    }
    std::string now = owner;
    try {
      auto asked = common_->wire.owner_of(flight->value_key);
      now = co_await asked;
    } catch (const Error&) {
      continue;  // its callers wait, as for any load
    }
    FlightPointer next;
    {
      const std::lock_guard lock{mutex_};
      if (now == owner || flight->owner != owner) continue;
      flight->is_lost = true;
      const auto slot = flights_.find(flight->value_key);
      if (slot != flights_.end() && slot->second == flight) next = lead_anew(slot->second, false);
    }
    if (next) spawn(fly(next));
  }
}

/// `first`: what comes before it looks.
Task<void> Flights::fly(FlightPointer flight, Task<void> first) {
  const auto self = shared_from_this();
  const UnderWay::Scope scope{common_->under_way};
  for (std::optional<Task<void>> step{std::move(first)}; step;) {
    std::exception_ptr error;
    try {
      co_await *step;
    } catch (...) {
      error = std::current_exception();
    }
    if (error && !fail(flight, error) && !common_->closed) {
      // A load in the background has failed: the next one comes when others may load, too.
      auto resting = rest(flight, {.words = words_of(*flight)}, common_->options.lease);
      co_await resting;
    }
    step.reset();
    if (auto round = begin_round(flight)) step.emplace(look(flight, std::move(*round)));
  }
}

/// What one of them does alone, each does by its own flight.
Task<void> Flights::fly_together(std::vector<FlightPointer> flights, BulkLoader load_all) {
  const auto self = shared_from_this();
  const UnderWay::Scope scope{common_->under_way};
  const SteadyTime until = common_->clock().steady() + common_->options.lease * 9 / 10;
  auto looking = look_together(std::move(flights));
  std::vector<Led> led = co_await looking;
  if (led.empty()) co_return;
  std::vector<std::string> keys, value_keys;
  std::vector<std::shared_ptr<Renewal>> renewals;
  for (const auto& each : led) {
    keys.push_back(each.flight->key);
    value_keys.push_back(each.flight->value_key);
    if (each.renewal) renewals.push_back(each.renewal);
  }
  const auto answers = std::make_shared<std::vector<detail::CacheCore::Loaded>>();
  Loader loader = [=, load_all = std::move(load_all)] {
    for (const auto& renewal : renewals) renewal->begin();
    *answers = load_all(keys);
    return detail::CacheCore::Loaded{};
  };
  auto need = loader_of(*led.front().flight).second;
  auto loading = load(std::move(value_keys), std::move(loader), std::move(need), until);
  const Loaded loaded = co_await loading;
  renewals.clear();
  answers->resize(led.size());
  for (std::size_t i = 0; i < led.size(); ++i) {
    Loaded one = loaded;
    static_cast<detail::CacheCore::Loaded&>(one) = std::move((*answers)[i]);
    auto flight = led[i].flight;
    spawn(fly(std::move(flight), finish(std::move(led[i]), std::move(one))));
  }
}

/// Those that are to be loaded; the others fly on.
Task<std::vector<Flights::Led>> Flights::look_together(std::vector<FlightPointer> flights) {
  std::vector<Wire::Question> questions;
  std::vector<std::uint64_t> marks;
  for (const auto& flight : flights) {
    const std::lock_guard lock{mutex_};
    marks.push_back(flight->joined);
    questions.push_back({flight->value_key, new_owner(), flight->replace});
  }
  std::vector<std::optional<Look>> looks(flights.size());
  bool has_failed = false;
  std::vector<Led> led;
  try {
    auto asked = common_->wire.look_all(questions);
    looks = co_await asked;
  } catch (const Error&) {
    has_failed = true;  // the server may take the questions up when it goes on
    for (std::size_t i = 0; i < flights.size(); ++i)
      spawn(give_back(flights[i], questions[i].owner));
  }
  for (std::size_t i = 0; i < flights.size(); ++i) {
    const auto& flight = flights[i];
    if (looks[i] && looks[i]->kind == Look::Kind::lead) {
      led.push_back(begin_lead(flight, marks[i], std::move(looks[i]->text)));
      continue;
    }
    try {
      if (looks[i] && looks[i]->kind == Look::Kind::value) land(flight, marks[i], looks[i]->text);
    } catch (const Error&) {  // it is another program's, as its callers are told
    }
    spawn(looks[i] || has_failed ? fly(flight)
                                 : fly(flight, give_back(flight, std::move(questions[i].owner))));
  }
  co_return led;
}

std::optional<Flights::Round> Flights::begin_round(const FlightPointer& flight) {
  Callers left;
  FlightPointer next;
  {
    const std::lock_guard lock{mutex_};
    flight->owner.clear();
    flight->is_lost = false;
    if (!common_->closed && (flight->refresher || !flight->callers.empty()))
      return Round{.mark = flight->joined,
                   .words = flight->words,
                   .has_callers = !flight->callers.empty(),
                   .replace = flight->replace};
    left.swap(flight->callers);
    for (const auto& caller : left) caller->error = std::make_exception_ptr(closed_guard());
    flight->is_over = true;
    const auto slot = flights_.find(flight->value_key);
    const auto before = flight->before.lock();
    const bool is_newest = slot != flights_.end() && slot->second == flight;
    if (is_newest && before && !before->is_over)
      slot->second = before;
    else if (is_newest)
      flights_.erase(slot);
    else if (slot != flights_.end() && slot->second->before.lock() == flight)
      next = lead_anew(slot->second, false);  // its callers have waited for this load to end
  }
  if (next) spawn(fly(next));
  answer(left);
  return std::nullopt;
}

/// One round: a value, a load, or a wait for another process's.
Task<void> Flights::look(FlightPointer flight, Round round) {
  Common& common = *common_;
  const bool loads_alone = common.options.when_down == CacheWhenDown::load;
  if (loads_alone && common.breaker.is_open(common.clock().steady()))
    co_return co_await lead(flight, round.mark, {}, SteadyTime::max());

  std::string owner;
  {
    const std::lock_guard lock{mutex_};
    owner = new_owner();
  }
  // The lease is counted from before it was asked for, and ends a little earlier here than there.
  const SteadyTime until = common.clock().steady() + common.options.lease * 9 / 10;
  Look look;
  bool is_down = false;
  const SteadyTime begun = common.clock().steady();
  try {
    auto asked = common.wire.look(flight->value_key, owner, round.has_callers, round.replace);
    Look seen = co_await asked;
    look = std::move(seen);
    common.breaker.succeeded();
  } catch (const Error& failure) {
    if (!is_away(failure)) throw;
    common.breaker.failed(failure, begun, common.clock().steady());
    // The server may take the question up when it goes on.
    if (failure.errc() == Errc::timeout) spawn(give_back(flight, owner));
    if (!loads_alone) throw;
    is_down = true;
  }
  if (is_down) co_return co_await lead(flight, round.mark, {}, SteadyTime::max());
  if (look.kind == Look::Kind::value) co_return land(flight, round.mark, look.text);
  if (look.kind == Look::Kind::lead)
    co_return co_await lead(flight, round.mark, std::move(look.text), until);
  auto resting = rest(flight, std::move(round), look.left);
  co_await resting;
}

/// The store has a value.
void Flights::land(const FlightPointer& flight, std::uint64_t mark, const std::string& text) {
  const auto entry = parse_entry(text, flight->value_key);
  if (!entry) return replace(*flight, std::string_view{text}.substr(0, text.find('\n')));
  const auto object = common_->decode(*entry, flight->value_key);
  if (!object) return replace(*flight, entry->head);
  settle(flight, mark, *object);
}

/// REQUIRES: mutex_.
std::string Flights::new_owner() { return fmt::format("{}:{}", owner_, ++leases_); }

Task<void> Flights::lead(FlightPointer flight, std::uint64_t before, std::string owner,
                         SteadyTime until) {
  auto [loader, need] = loader_of(*flight);
  if (!loader) co_return co_await give_back(flight, std::move(owner));
  Led led = begin_lead(flight, before, std::move(owner));
  if (led.renewal)
    loader = [renewal = led.renewal, loader = std::move(loader)] {
      renewal->begin();
      return loader();
    };
  std::vector<std::string> keys{flight->value_key};
  auto loading = load(std::move(keys), std::move(loader), std::move(need), until);
  Loaded loaded = co_await loading;
  auto finishing = finish(std::move(led), std::move(loaded));
  co_await finishing;
}

Flights::Led Flights::begin_lead(FlightPointer flight, std::uint64_t before,
                                 std::string owner) const {
  const auto fill = common_->failures.begin(flight->value_key, common_->clock().steady());
  auto renewal = renewal_of(*flight, owner);
  const std::lock_guard lock{mutex_};
  flight->led = std::max(before, flight->joined);
  flight->owner = owner;
  flight->waits_for = "its load, which runs or waits for its turn";
  return {flight, flight->led, std::move(owner), std::move(renewal), fill};
}

/// Also of a load that was refused, which has not begun.
Task<Loaded> Flights::load(std::vector<std::string> value_keys, Loader loader, Loads::Need need,
                           SteadyTime until) {
  Loaded loaded;
  try {
    auto loading =
        common_->loads.run(std::move(value_keys), std::move(loader), std::move(need), until);
    Loaded came = co_await loading;
    loaded = std::move(came);
    if (loaded.began) count(metrics().cache_loads);
    if (loaded.began && loaded.error) count(metrics().cache_load_failures);
  } catch (const Error& refused) {
    if (refused.errc() == Errc::overloaded) count(metrics().cache_loads_refused);
    loaded.error = std::current_exception();
    loaded.began = false;
  }
  co_return loaded;
}

/// Stores what came.
Task<void> Flights::finish(Led led, Loaded loaded) {
  auto [flight, before, owner, renewal, fill] = std::move(led);
  if (loaded.began && loaded.error)
    common_->failures.keep(
        fill, flight->value_key, loaded.error,
        Clock::add(common_->clock().steady(), common_->spread(common_->options.failure_ttl)));
  wait_for(*flight, "the store");
  const bool is_usable = loaded.began && !loaded.error;
  if (!is_usable) renewal.reset();
  if (!is_usable || owner.empty()) {
    // The lease first: the next caller can lead at once. Those that wait hear of it in time.
    if (!owner.empty()) co_await give_back(flight, std::move(owner));
    if (loaded.error) std::rethrow_exception(loaded.error);
    if (is_usable) settle(flight, before, loaded.object);
    co_return;
  }
  const Object object = loaded.object;
  auto keeping = keep(flight, std::move(owner), std::move(loaded), std::move(renewal));
  const std::uint64_t current_for = co_await keeping;
  settle(flight, std::max(before, current_for), object);
}

/// What keeps the lease. Null: nothing.
std::shared_ptr<Renewal> Flights::renewal_of(const Flight& flight, const std::string& owner) const {
  const CacheGuardOptions& options = common_->options;
  if (owner.empty() || options.longest_load <= options.lease / 3) return nullptr;
  return std::make_shared<Renewal>(common_, flight.value_key, owner);
}

/// Stores what was loaded. Returns the mark of those for whom it is current, or 0: it could not be
/// stored. Throws what the codec throws.
Task<std::uint64_t> Flights::keep(FlightPointer flight, std::string owner, Loaded loaded,
                                  std::shared_ptr<Renewal> renewal) {
  std::exception_ptr error;
  const SteadyTime begun = common_->clock().steady();
  try {
    auto made = entry_of(std::move(loaded));
    auto entry = co_await made;
    if (entry) {
      const std::uint64_t now = mark(*flight);
      const auto storing = std::make_shared<Storing>();
      storing->renewal = std::move(renewal);
      spawn(store(flight, owner, std::move(*entry), storing));
      const SteadyTime until = common_->wire.patience();
      if (const bool done = co_await wait_until(storing->done, common_->clock(), until); !done)
        co_return 0;  // it goes on, and keeps its lease
      if (storing->error) std::rethrow_exception(storing->error);
      co_return storing->is_stored ? now : 0;
    }
  } catch (const Error& failure) {
    // It was loaded all the same, and those who asked before that shall have it.
    const bool is_down = is_away(failure);
    if (is_down) common_->breaker.failed(failure, begun, common_->clock().steady());
    log(is_down ? LogLevel::debug : LogLevel::warning,
        fmt::format("'{}' was loaded and could not be stored: {}", shown(flight->value_key),
                    failure.message()));
  } catch (...) {
    error = std::current_exception();
  }
  co_await give_back(flight, std::move(owner));
  if (error) std::rethrow_exception(error);
  co_return 0;
}

/// What is to be stored of a load. Empty: nothing.
Task<std::optional<NewEntry>> Flights::entry_of(Loaded loaded) {
  const CacheGuardOptions& options = common_->options;
  NewEntry entry{.is_absent = !loaded.object, .load = loaded.took};
  if (loaded.object) {
    if (loaded.ttl < shortest_ttl) co_return std::nullopt;
    entry.payload = common_->form.encode(loaded.object.get());
    if (entry.payload.size() > options.largest_value) co_return std::nullopt;
    entry.fresh = common_->spread(std::min(options.ttl, loaded.ttl));
    entry.kept = entry.fresh + options.stale;
    co_return entry;
  }
  if (options.absent_ttl == milliseconds{0}) co_return std::nullopt;
  const SteadyTime now = common_->clock().steady();
  if (now.time_since_epoch().count() < absences_refused_until_.load()) {
    count(metrics().cache_absent_refused);
    co_return std::nullopt;
  }
  auto asked = common_->wire.admit_absent(options.absent_budget, options.absent_ttl);
  entry.kept = co_await asked;
  if (entry.kept > milliseconds{0}) co_return entry;
  absences_refused_until_ = (now - entry.kept).time_since_epoch().count();
  count(metrics().cache_absent_refused);
  co_return std::nullopt;
}

/// For as long as it takes, while callers have what was loaded after the silence.
Task<void> Flights::store(FlightPointer flight, std::string owner, NewEntry entry,
                          std::shared_ptr<Storing> storing) {
  const auto self = shared_from_this();
  const UnderWay::Scope scope{common_->under_way};
  try {
    auto asked = common_->wire.store(flight->value_key, std::move(owner), std::move(entry));
    storing->is_stored = co_await asked;
    if (!storing->is_stored) count(metrics().cache_late_loads);
  } catch (...) {
    storing->error = std::current_exception();
  }
  storing->renewal.reset();
  storing->done.complete();
}

Task<void> Flights::give_back(FlightPointer flight, std::string owner) {
  const auto self = shared_from_this();
  const UnderWay::Scope scope{common_->under_way};
  if (owner.empty() || common_->closed) co_return;
  try {
    auto giving = common_->wire.give_back(flight->value_key, std::move(owner));
    co_await giving;
  } catch (const Error& failure) {
    log(LogLevel::debug, fmt::format("the lease of '{}' was not given back, and ends by itself: {}",
                                     shown(flight->value_key), failure.message()));
  }
}

/// Until another process's load has ended, or its lease.
Task<void> Flights::rest(FlightPointer flight, Round round, milliseconds left) {
  if (round.has_callers) {
    count(metrics().cache_lease_waits);
    wait_for(*flight, "its load in another process");
    auto listening = listen();
    const bool begins = co_await listening;
    if (begins) co_return;  // the load may have ended before we listened: look again
  }
  // Not all processes look at the same moment when the lease is over.
  const auto jitter = std::chrono::microseconds{random_below(5'000)};
  const SteadyTime until = common_->clock().steady() + left + milliseconds{1} + jitter;
  const auto resting = std::make_shared<Completion>();
  {
    const std::lock_guard lock{mutex_};
    if (flight->words != round.words || common_->closed) co_return;
    if (!round.has_callers && !flight->callers.empty()) co_return;
    flight->resting = resting;
  }
  co_await wait_until(*resting, common_->clock(), until);
  const std::lock_guard lock{mutex_};
  flight->resting = nullptr;
  if (!round.has_callers) flight->refresher = nullptr;  // the other process has done it
}

/// True: from now on, so what was told before was not heard.
Task<bool> Flights::listen() {
  if (is_listening_) co_return false;
  Store& store = common_->store;
  const auto hear = [weak = weak_from_this()](const Message& message) {
    if (const auto self = weak.lock()) self->hear(message);
  };
  auto subscribing = store.is_sharded() ? store.listen(common_->wire.channel(), hear)
                                        : store.subscribe(common_->wire.channel(), hear);
  Listener listener = co_await subscribing;
  const std::lock_guard lock{mutex_};
  if (!common_->closed && !listener_) listener_ = std::move(listener);
  is_listening_ = true;
  co_return true;
}

void Flights::hear(const Message& message) {
  std::vector<FlightPointer> meant;
  {
    const std::lock_guard lock{mutex_};
    if (message.kind == Message::Kind::published) {
      if (const auto found = flights_.find(message.payload); found != flights_.end())
        meant = with_overtaken(found->second);
    } else {
      for (const auto& [key, flight] : flights_)
        for (auto& each : with_overtaken(flight)) meant.push_back(std::move(each));
    }
  }
  for (const auto& flight : meant) wake(flight);
}

void Flights::wake(const FlightPointer& flight) {
  std::shared_ptr<Completion> resting;
  {
    const std::lock_guard lock{mutex_};
    ++flight->words;
    resting = std::exchange(flight->resting, nullptr);
  }
  if (resting) resting->complete();
}

std::uint64_t Flights::mark(const Flight& flight) const {
  const std::lock_guard lock{mutex_};
  return flight.joined;
}

std::uint64_t Flights::words_of(const Flight& flight) const {
  const std::lock_guard lock{mutex_};
  return flight.words;
}

std::pair<Loader, Loads::Need> Flights::loader_of(const Flight& flight) const {
  const std::lock_guard lock{mutex_};
  if (flight.callers.empty()) return {flight.refresher, nullptr};
  return {flight.callers.front()->loader, flight.callers.front()->need};
}

void Flights::wait_for(Flight& flight, const char* what) {
  const std::lock_guard lock{mutex_};
  flight.waits_for = what;
}

void Flights::replace(Flight& flight, std::string_view head) {
  const std::lock_guard lock{mutex_};
  flight.replace = head;
}

void Flights::settle(const FlightPointer& flight, std::uint64_t mark, const Object& object) {
  Callers answered;
  {
    const std::lock_guard lock{mutex_};
    const auto later = std::ranges::find_if(
        flight->callers, [mark](const auto& caller) { return caller->number > mark; });
    answered.assign(flight->callers.begin(), later);
    flight->callers.erase(flight->callers.begin(), later);
    for (const auto& caller : answered) caller->object = object;
    flight->refresher = nullptr;
    flight->replace.clear();
  }
  if (answered.size() > 1) count(metrics().cache_shared_loads, answered.size() - 1);
  answer(answered);
}

bool Flights::fail(const FlightPointer& flight, const std::exception_ptr& error) {
  Callers failed;
  {
    const std::lock_guard lock{mutex_};
    failed.swap(flight->callers);
    for (const auto& caller : failed) caller->error = error;
    flight->refresher = nullptr;
  }
  answer(failed);
  return !failed.empty();
}

void Flights::answer(const Callers& callers) {
  const UnderWay::Outside outside{common_->under_way};
  for (const auto& caller : callers) {
    caller->loader = nullptr;
    caller->done.complete();
  }
}

void Flights::close() {
  std::vector<FlightPointer> all;
  Listener listener;
  {
    const std::lock_guard lock{mutex_};
    for (const auto& [key, flight] : flights_)
      for (auto& each : with_overtaken(flight)) all.push_back(std::move(each));
    listener = std::move(listener_);
  }
  for (const auto& flight : all) {
    wake(flight);
    fail(flight, std::make_exception_ptr(closed_guard()));
  }
}

}  // namespace sluice::cache
