/// Who believes to be in, and who waits, for one name: what the programs write down, and what must
/// be true of it after every step.
///
/// - No two who exclude each other hold validly at once, tokens rise, permits suffice
///   (tests/support/ history.hpp). A hold that was granted before the server lost its data is left
///   out of this.
/// - A hold that is not valid never becomes valid again, and its holder is told at once.
/// - No token is given twice, not even after a loss.
/// - Where it is asked for, a hold that is renewed is not lost without a cause.
/// - A hold of data that are lost is not valid beyond its lease, and not longer than it takes to
///   ask the server where the process runs and is connected.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <string>

#include "lock/simulation/primitive.hpp"
#include "lock/simulation/sim_server.hpp"
#include "lock/simulation/sim_store.hpp"
#include "support/history.hpp"

namespace sluice::simulation {

/// What a ledger has to know of the locks it is about.
struct LedgerTerms {
  test::Rules rules{};
  std::chrono::nanoseconds lease{};
  bool watched = true;
  std::chrono::nanoseconds jitter{};       ///< of a process's timers
  std::chrono::nanoseconds to_find_out{};  ///< from being connected to knowing the truth
  bool lasting = false;               ///< no hold is lost while its process runs and is connected
  bool durable = false;               ///< a replica that takes over has every hold
  bool throws = false;                ///< callbacks do
  std::chrono::nanoseconds blocks{};  ///< callbacks do, so long
  bool common_owners = false;         ///< a hold may go on when somebody leaves it, with its token
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
  StayPtr enter(const std::string& who, const SimProcess& process, SimStore& store, SimHold& held,
                Mode mode, std::uint32_t permits);
  /// Before anything is asked of the server.
  void leave(const StayPtr& stay);

  /// After every step.
  void look();

  /// A process is dead: it holds nothing from now on, but what it held is in the way for a lease.
  void bury(const SimProcess& process);
  /// Somebody ended whatever hold there was. `last_token`: of those that were given before.
  void end_outside(std::uint64_t last_token);
  /// Somebody may be about to force it open: whoever gets in ends what was before.
  void may_be_forced(bool may) { may_be_forced_ = may; }
  /// The holds that this has ended.
  std::vector<const SimHold*> ended_outside() const;
  /// Another name of this hold was ended.
  void excuse(const SimHold* hold);
  /// Whether somebody else could be in: nobody is who is alive, and no lease of the others lasts.
  /// `most`: so many permits must be free, where there are permits.
  bool is_idle(std::uint32_t most) const;
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
  bool is_ended_outside(const Stay& stay, std::chrono::milliseconds on_its_way) const;
  bool counts(const Stay& stay) const;
  void look_at_token(const Stay& stay);
  void look_at_loss(const Stay& stay);
  bool is_in_the_way(const Stay& stay) const;
  void look_at(Stay& stay);
  void look_at_forgotten(const Stay& stay);

  const SimServer& server_;
  Journal& journal_;
  const std::string name_;
  const LedgerTerms terms_;
  test::HistoryChecker checker_;
  std::list<StayPtr> stays_;
  std::list<Waiter> waiters_;
  struct Ghost {
    SteadyTime until;
    std::uint32_t permits;
  };
  std::vector<Ghost> ghosts_;
  std::map<std::uint64_t, std::string> tokens_;  // who had which
  std::uint64_t last_token_ = 0;                 // of an exclusive hold that counts
  std::uint64_t ended_outside_ = 0;              // the tokens up to this one
  SteadyTime ended_outside_at_ = SteadyTime::min();
  bool may_be_forced_ = false;
};

/// One hold as its holder sees it.
struct Ledger::Stay {
  std::string who;
  const SimProcess& process;
  const SimStore& store;
  const SimHold& held;
  std::uint64_t token;
  Mode mode;
  std::uint32_t permits;
  SteadyTime since;
  unsigned life;               // of the server, when it was granted
  std::shared_ptr<bool> told;  // that it is lost
  bool excused = false;        // another of its names was ended from outside
  bool counted = true;         // among those who exclude each other
  std::optional<SteadyTime> ended{};
};

}  // namespace sluice::simulation
