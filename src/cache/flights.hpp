/// The loads of this process: one flight for each key that callers miss.
///
///     look ──> value: those who asked before the look have it
///      ^  ├──> lead: load, store ──> stored: those who asked before it was stored have it
///      │  │                     └──> not stored (invalidated, lease over): those who asked
///      │  │                          before the load have it
///      │  └──> busy: wait for the word of the other process, or for the end of its lease
///      └────── as long as there are callers
///
/// A caller is never given what was read before it asked. So an invalidation that was acknowledged
/// before a call began is seen by it, although the call shares the load of an earlier one.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cache/common.hpp"

namespace sluice::cache {

class Renewal;

/// Threads: any.
class Flights : public std::enable_shared_from_this<Flights> {
 public:
  explicit Flights(std::shared_ptr<Common> common);

  struct Wanted {
    std::string key;
    std::string value_key;
    Loader loader;
    std::string replace = {};  ///< the head of a value that will not do
    Loads::Need need = {};     ///< the load that asks
  };
  /// The value, by whatever load brings it. Throws Error (timeout) at `deadline`, and what the
  /// header of CacheGuard says of get().
  Task<Object> join(Wanted wanted, SteadyTime deadline);
  /// The same for many keys. Those that nobody loads yet are looked for in one round trip, and what
  /// is to be loaded of them then, by one load. `load` empty: each by its own. Each Task is one
  /// key's.
  std::vector<Task<Object>> join_all(std::vector<Wanted> all, BulkLoader load, SteadyTime deadline);
  /// Loads a value anew in the background, if no other process does. False: there is a flight of
  /// the key already.
  bool refresh(Wanted wanted);

  /// Callers end with Error (closed).
  void close();

 private:
  struct Caller {
    Caller(Driver* driver, Loader with, Loads::Need by)
        : loader(std::move(with)), need(std::move(by)), done(driver) {}

    Loader loader;
    const Loads::Need need;
    std::uint64_t number = 0;  // in the order of their coming
    Object object;
    std::exception_ptr error;
    Completion done;
  };
  using Callers = std::vector<std::shared_ptr<Caller>>;

  struct Flight {
    std::string key;
    std::string value_key;
    // Guarded by mutex_:
    std::string replace;
    const char* waits_for = "the store";  // as a caller is told whose time is over
    Loader refresher;
    Callers callers;
    std::uint64_t joined = 0;
    std::uint64_t words = 0;  // that were heard of this key
    std::shared_ptr<Completion> resting;
    std::string owner;        // of the lease of the load that runs; empty: there is none
    std::uint64_t led = 0;    // callers up to this one came before the load began
    bool is_checked = false;  // somebody asks whether the lease is still ours
    bool is_lost = false;     // it is not
    bool is_over = false;
    std::weak_ptr<Flight> before;  // whose load was overtaken
  };
  using FlightPointer = std::shared_ptr<Flight>;

  struct Joined {
    FlightPointer flight;
    std::shared_ptr<Caller> caller;
    bool is_first = false;
  };
  /// A load that is this process's to do, for the callers up to `mark`.
  struct Led {
    FlightPointer flight;
    std::uint64_t mark = 0;
    std::string owner;  // empty: without a lease, and nothing is stored
    std::shared_ptr<Renewal> renewal;
    Failures::Fill fill;
  };

  struct Storing {
    std::shared_ptr<Renewal> renewal;
    bool is_stored = false;
    std::exception_ptr error;
    Completion done;
  };

  /// What a round of a flight begins with.
  struct Round {
    std::uint64_t mark = 0;  // of the callers that had come
    std::uint64_t words = 0;
    bool has_callers = false;
    std::string replace;
  };

  Joined enter(Wanted& wanted);
  Task<Object> outcome_of(Joined joined, SteadyTime deadline);
  Task<void> fly(FlightPointer flight, Task<void> first = Task<void>::ready());
  Task<void> fly_together(std::vector<FlightPointer> flights, BulkLoader load);
  Task<std::vector<Led>> look_together(std::vector<FlightPointer> flights);
  std::string new_owner();
  Task<void> look(FlightPointer flight, Round round);
  Task<void> lead(FlightPointer flight, std::uint64_t mark, std::string owner, SteadyTime until);
  Led begin_lead(FlightPointer flight, std::uint64_t before, std::string owner) const;
  Task<Loaded> load(std::vector<std::string> value_keys, Loader loader, Loads::Need need,
                    SteadyTime until);
  Task<void> finish(Led led, Loaded loaded);
  std::shared_ptr<Renewal> renewal_of(const Flight& flight, const std::string& owner) const;
  Task<std::uint64_t> keep(FlightPointer flight, std::string owner, Loaded loaded,
                           std::shared_ptr<Renewal> renewal);
  Task<std::optional<NewEntry>> entry_of(Loaded loaded);
  Task<void> store(FlightPointer flight, std::string owner, NewEntry entry,
                   std::shared_ptr<Storing> storing);
  Task<void> rest(FlightPointer flight, Round round, std::chrono::milliseconds left);
  Task<void> give_back(FlightPointer flight, std::string owner);
  Task<bool> listen();
  void land(const FlightPointer& flight, std::uint64_t mark, const std::string& text);
  void hear(const Message& message);

  Task<void> check(FlightPointer flight);
  FlightPointer lead_anew(FlightPointer& slot, bool has_come);
  std::pair<FlightPointer, bool> flight_of(const Wanted& wanted);
  static std::vector<FlightPointer> with_overtaken(const FlightPointer& flight);

  std::optional<Round> begin_round(const FlightPointer& flight);
  std::uint64_t mark(const Flight& flight) const;
  std::uint64_t words_of(const Flight& flight) const;
  std::pair<Loader, Loads::Need> loader_of(const Flight& flight) const;
  void replace(Flight& flight, std::string_view head);
  void wait_for(Flight& flight, const char* what);
  /// Answers the callers up to `mark`.
  void settle(const FlightPointer& flight, std::uint64_t mark, const Object& object);
  /// False: there was nobody to tell.
  bool fail(const FlightPointer& flight, const std::exception_ptr& error);
  void answer(const Callers& callers);
  void wake(const FlightPointer& flight);

  const std::shared_ptr<Common> common_;
  const std::string owner_;  // what our leases' owners begin with
  mutable std::mutex mutex_;
  std::unordered_map<std::string, FlightPointer> flights_;
  std::uint64_t leases_ = 0;
  std::atomic<std::int64_t> absences_refused_until_{0};  // steady, ns
  std::atomic<bool> is_listening_{false};
  Listener listener_;
};

}  // namespace sluice::cache
