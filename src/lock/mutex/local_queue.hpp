/// All who want one lock in this process: they queue here, and stand in the server's queue as one.
///
/// A process that has the lock hands it from one of its waiters to the next without asking the
/// server, each with a token of its own out of those that the server gave for the turn. The turn is
/// over after `HandOff::within_process` of these, or `HandOff::turn`; then the server is asked
/// (lock/mutex/pass): somebody else's turn, or another one of ours. This is lock cohorting (Dice,
/// Marathe, Shavit, PPoPP 2012), with a lease around it.
///
///     nobody ──enter──> asking ──granted──> inside ──release, nobody waits──> nobody
///                         ^  └─refused: in the server's queue      |
///                         └──────────── the turn is over ──────────┘
///
/// Whoever finds nobody asks; who comes meanwhile waits here. Holds that are not renewed are not
/// handed on within the process: their lease began with the grant.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>

#include "lock/hold/resource.hpp"
#include "lock/hold/watchdog.hpp"
#include "lock/mutex/wire.hpp"
#include "lock/per_store.hpp"
#include "lock/wait/inbox.hpp"
#include "lock/wait/waiter_registry.hpp"

namespace sluice::lock {

class LocalQueue final : public Resource, public std::enable_shared_from_this<LocalQueue> {
 public:
  LocalQueue(Store& store, const std::string& name, MutexTerms terms,
             std::shared_ptr<Watchdog> watchdog, std::shared_ptr<Inbox> inbox,
             std::shared_ptr<WaiterRegistry> registry);

  /// Lives as long as this.
  void keep(std::shared_ptr<void> keeper) noexcept { keeper_ = std::move(keeper); }

  const MutexWire& wire() const noexcept { return wire_; }
  const Watchdog& watchdog() const noexcept { return *watchdog_; }

  /// One look. Null: another is in.
  Task<std::shared_ptr<Hold>> try_enter(Identity who);
  /// Waits until it is in, or until `until` (steady), or until `stop`. Null: it is not.
  Task<std::shared_ptr<Hold>> enter(Identity who, SteadyTime until, std::stop_token stop);

  /// Ends whatever hold there is; whoever is inside here learns it now. False: there was none.
  Task<bool> force_release();

  const Script& renewal() const noexcept override;
  void add_to(Renewal& renewal, const Hold& hold, std::uint32_t entries) const override;
  Task<Value> ask_end(const Identity& who, CallOptions options) override;
  GiveUp give_up(const Identity& who) const override;
  Task<Value> ask_recount(const Hold& hold, std::uint32_t entries) override;
  bool pass_on(const std::shared_ptr<Hold>& hold) override;
  void ended(const Hold& hold) override;

 private:
  /// A waiter in this process, for the time of its wait.
  struct LocalWaiter {
    Identity who;
    std::shared_ptr<Completion> called;
    bool chosen = false;  // its hold is being made
    std::shared_ptr<Hold> hold;
    std::exception_ptr failure;
  };
  using WaiterPtr = std::shared_ptr<LocalWaiter>;
  /// One request of ours in the server's queue.
  struct QueuedRequest {
    Identity who;
    std::unique_ptr<Inbox::Subscription>
        box;  // there before the question: the grant may overtake the answer
    std::optional<AcquireReply> answer{};  // none: not asked yet
    SteadyTime sent{};
  };
  /// What became of a grant. After `admitted` nobody asks any more.
  enum class GrantOutcome { admitted, admitted_and_others_wait, late, unwanted };

  // One who asks for all; any thread, one at a time (asking_).
  Task<AcquireReply> ask(Identity who, std::string inbox);
  Task<std::shared_ptr<Hold>> ask_first(Identity who, SteadyTime until, std::stop_token stop);
  std::shared_ptr<Hold> begin_alone(Identity who, const AcquireReply& answer, SteadyTime sent);
  Task<void> stand_for_all(std::optional<QueuedRequest> place, std::shared_ptr<Hold> ending);
  Task<std::optional<GrantOutcome>> stand(QueuedRequest& place);
  Task<std::optional<GrantOutcome>> end_turn(std::shared_ptr<Hold> ending, QueuedRequest& next);
  GrantOutcome admit(const std::string& request, const Grant& grant, FencingToken last,
                     bool handed_over);
  std::optional<QueuedRequest> place_for_first();
  std::shared_ptr<Hold> begin_for(const WaiterPtr& first, const std::string& request,
                                  const Grant& grant, SteadyTime renew_at);
  bool stops_asking();
  Task<std::optional<GrantOutcome>> stand_once(std::optional<QueuedRequest> place,
                                               std::shared_ptr<Hold> ending);
  void fail_all(const std::exception_ptr& failure);

  Task<std::shared_ptr<Hold>> wait(WaiterPtr waiter, SteadyTime until, std::stop_token stop);

  // REQUIRE: mutex_ is held
  bool is_certainly_inside() const;
  void go_in_alone(const std::shared_ptr<Hold>& hold);
  WaiterPtr choose_first();
  /// Whether somebody has to begin to ask, and it is the caller.
  bool must_ask();
  bool stops_asking_locked();

  std::shared_ptr<void> keeper_;
  MutexWire wire_;
  const std::shared_ptr<Watchdog> watchdog_;
  const std::shared_ptr<Inbox> inbox_;
  const std::shared_ptr<WaiterRegistry> waiters_;
  std::mutex mutex_;
  std::list<WaiterPtr> local_waiters_;
  bool asking_ = false;                 // somebody asks the server for all, or makes the next hold
  Inbox::Subscription* box_ = nullptr;  // of whoever stands there
  std::shared_ptr<Hold> inside_;        // whose end calls the next
  FencingToken next_{1};                // of the turn: next_ to last_ are still to be given
  FencingToken last_{0};
  SteadyTime turn_began_{};
};

/// The LocalQueues of one Store: one for each name and terms in use.
class LocalQueues : public std::enable_shared_from_this<LocalQueues> {
 public:
  explicit LocalQueues(Store& store)
      : store_(store),
        watchdog_(shared_of<Watchdog>(store)),
        inbox_(shared_of<Inbox>(store)),
        waiters_(shared_of<WaiterRegistry>(store)) {}

  /// Throws Error (bad_argument) for a name that is empty or too long.
  std::shared_ptr<LocalQueue> of(const std::string& name, const MutexTerms& terms) {
    const std::lock_guard lock{mutex_};
    auto& slot = queues_[Key{name, terms}];
    if (auto queue = slot.lock()) return queue;
    std::erase_if(queues_, [](const auto& entry) { return entry.second.expired(); });
    auto queue = std::make_shared<LocalQueue>(store_, name, terms, watchdog_, inbox_, waiters_);
    queue->keep(shared_from_this());  // or the next who asks would find another LocalQueues
    queues_[Key{name, terms}] = queue;
    return queue;
  }

 private:
  using Key = std::pair<std::string, MutexTerms>;

  Store& store_;
  const std::shared_ptr<Watchdog> watchdog_;
  const std::shared_ptr<Inbox> inbox_;
  const std::shared_ptr<WaiterRegistry> waiters_;
  std::mutex mutex_;
  std::map<Key, std::weak_ptr<LocalQueue>> queues_;
};

}  // namespace sluice::lock
