/// Who believes to be in, and who waits, for one name: what the programs write down, and what must
/// be true of it after every step.
///
/// - No two who exclude each other hold validly at once, tokens rise, permits suffice
///   (tests/support/ history.hpp). A hold that was granted before the server lost its data is left
///   out of this.
/// - A hold that is not valid never becomes valid again, and its holder is told at once.
/// - A hold of data that are lost is not valid beyond its lease, and not longer than it takes to
///   ask the server where the process runs and is connected.
#pragma once

#include <list>
#include <memory>
#include <string>

#include "lock/simulation/primitive.hpp"
#include "lock/simulation/sim_server.hpp"
#include "lock/simulation/sim_store.hpp"
#include "sluice/held.hpp"
#include "support/history.hpp"

namespace sluice::simulation {

/// What a ledger has to know of the locks it is about.
struct LedgerTerms {
  test::Rules rules{};
  std::chrono::nanoseconds lease{};
  bool watched = true;
  std::chrono::nanoseconds jitter{};       ///< of a process's timers
  std::chrono::nanoseconds to_find_out{};  ///< from being connected to knowing the truth
};

class Ledger {
 public:
  struct Stay;
  using StayPtr = std::shared_ptr<Stay>;

  Ledger(const SimServer& server, Journal& journal, std::string name, LedgerTerms terms);

  const std::string& name() const noexcept { return name_; }

  void wait(const std::string& who, const SimProcess& process, const SimStore& store);
  /// The wait was in vain.
  void give_up(const std::string& who);

  /// `held` is in, and stays where it is until leave(). Ends the wait.
  StayPtr enter(const std::string& who, const SimProcess& process, const SimStore& store,
                Held& held, Mode mode, std::uint32_t permits);
  /// Before anything is asked of the server.
  void leave(const StayPtr& stay);

  /// After every step.
  void look();

  struct Waiter {
    std::string who;
    const SimProcess* process;
    const SimStore* store;
    SteadyTime since;
  };
  const std::list<Waiter>& waiters() const noexcept { return waiters_; }
  std::size_t stays() const noexcept { return stays_.size(); }

 private:
  void stop_waiting(const std::string& who);
  void come(const Stay& stay);
  void go(const Stay& stay);
  void see(test::Event::Kind kind, const std::string& who, std::uint64_t number = 0);
  bool is_forgotten(const Stay& stay) const;
  void look_at(Stay& stay);
  void look_at_forgotten(const Stay& stay);

  const SimServer& server_;
  Journal& journal_;
  const std::string name_;
  const LedgerTerms terms_;
  test::HistoryChecker checker_;
  std::list<StayPtr> stays_;
  std::list<Waiter> waiters_;
};

/// One hold as its holder sees it.
struct Ledger::Stay {
  std::string who;
  const SimProcess& process;
  const SimStore& store;
  const Held& held;
  Mode mode;
  std::uint32_t permits;
  unsigned life;               // of the server, when it was granted
  std::shared_ptr<bool> told;  // that it is lost
  bool counted = true;         // among those who exclude each other
  std::optional<SteadyTime> ended{};
};

}  // namespace sluice::simulation
