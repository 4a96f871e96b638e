/// The waiters of one process for one Mutex: they queue here, and share one place in the server's
/// queue.
///
/// A process that has the lock hands it from one of its waiters to the next without asking the
/// server. Each of these holds has a token of its own, out of those that the server gave for the
/// turn. The turn is over after `HandOff::within_process` of them, or after `HandOff::turn`; then
/// the server is asked (lock/mutex/pass): it is another process's turn, or another one of this
/// process. This is lock cohorting (Dice, Marathe, Shavit, PPoPP 2012), with a lease around it.
///
///     nobody ──enter──> asking ──granted──> inside ──release, nobody waits──> nobody
///                         ^  └─refused: in the server's queue      |
///                         └──────────── the turn is over ──────────┘
///
/// The first caller asks the server; callers that come meanwhile wait here. Holds
/// that are not renewed are not handed on within the process: their lease began with the grant.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string_view>
#include <vector>

#include "lock/mutex/wire.hpp"
#include "lock/wait/waiter_registry.hpp"

namespace sluice::lock {

class LocalQueues;

class LocalQueue final : public MutexWire {
 public:
  LocalQueue(std::shared_ptr<LocalQueues> queues, const std::string& name);
  ~LocalQueue() override;
  LocalQueue(const LocalQueue&) = delete;
  LocalQueue& operator=(const LocalQueue&) = delete;

  Task<std::shared_ptr<Hold>> try_enter(Identity who) override;
  Task<std::shared_ptr<Hold>> enter(Identity who, SteadyTime until, std::stop_token stop) override;
  bool pass_on(const std::shared_ptr<Hold>& hold) override;
  void ended(const Hold& hold) override;

 private:
  friend class LocalQueues;
  /// A waiter in this process, for the time of its wait.
  struct LocalWaiter {
    Identity who;
    std::shared_ptr<Completion> called;
    bool chosen = false;  // its hold is being made
    std::shared_ptr<Hold> hold;
    std::exception_ptr failure;
  };
  using WaiterPtr = std::shared_ptr<LocalWaiter>;
  /// The process's request in the server's queue.
  struct QueuedRequest {
    Identity who;
    // there before the request is sent: the grant may overtake the reply
    std::unique_ptr<Inbox::Subscription> subscription;
    std::optional<AcquireReply> reply{};  // none: not asked yet
    SteadyTime sent{};
  };
  /// What became of a grant. After `admitted` this process does not ask any more.
  enum class GrantOutcome { admitted, admitted_and_others_wait, late, unwanted };
  using MaybeOutcome = std::optional<GrantOutcome>;

  LocalQueues& queues() const noexcept;
  std::shared_ptr<Hold> latest_hold() override;
  void drop_wait(const WaiterPtr& waiter);
  Task<std::shared_ptr<Hold>> ask_first(Identity who, SteadyTime until, std::stop_token stop);
  Task<std::shared_ptr<Hold>> wait(WaiterPtr waiter, SteadyTime until, std::stop_token stop);

  // One coroutine asks for all waiters; any thread, one at a time (asking_).
  Task<void> ask_for_all(std::optional<QueuedRequest> request, std::shared_ptr<Hold> ending);
  Task<MaybeOutcome> admit_one(std::optional<QueuedRequest> request, std::shared_ptr<Hold> ending);
  Task<MaybeOutcome> end_turn(std::shared_ptr<Hold> ending, QueuedRequest& next);
  Task<MaybeOutcome> wait_in_queue(QueuedRequest& request);
  GrantOutcome admit(std::string_view request, const Grant& grant, FencingToken last,
                     bool handed_over);
  std::optional<QueuedRequest> request_for_first();
  std::shared_ptr<Hold> begin_for(const WaiterPtr& first, std::string_view request,
                                  const Grant& grant, SteadyTime renew_at);
  bool stops_asking();
  Task<AcquireReply> ask_noting_trouble(const Identity& who);
  void fail(const std::exception_ptr& failure, bool is_away, bool is_of_first);

  // REQUIRE: mutex_ is held
  bool is_certainly_inside() const;
  bool go_in_alone(const std::shared_ptr<Hold>& hold);
  WaiterPtr choose_first();
  /// True: waiters need a coroutine that asks, and the caller is to start it.
  bool must_ask();
  bool stops_asking_locked();

  LocalQueue* next_in_slot_ = nullptr;  // of the LocalQueues
  std::mutex mutex_;
  std::list<WaiterPtr> waiters_;
  bool asking_ = false;  // a coroutine asks the server for all, or makes the next hold
  Inbox::Subscription* subscription_ = nullptr;  // of the request in the server's queue
  std::shared_ptr<Hold> inside_;                 // its end calls the next waiter
  std::exception_ptr trouble_;                   // the server is away; null: it has answered
  FencingToken next_{1};  // of the turn: next_ to last_ are still to be given
  FencingToken last_{0};
  SteadyTime turn_began_{};
};

/// The LocalQueues of one Store by the same terms: one for each name in use.
class LocalQueues : public MutexCommon, public std::enable_shared_from_this<LocalQueues> {
 public:
  /// `keeper` lives as long as this.
  LocalQueues(Store& store, const MutexTerms& terms, std::shared_ptr<void> keeper);

  static std::shared_ptr<LocalQueues> of(Store& store, const MutexTerms& terms);
  /// Throws Error (bad_argument) for a name that is empty or too long.
  std::shared_ptr<LocalQueue> queue_of(const std::string& name);

 private:
  friend class LocalQueue;
  void forget(LocalQueue& queue);

  // REQUIRE: mutex_ is held
  LocalQueue*& slot_of(std::string_view name);
  void grow();

  const std::shared_ptr<void> keeper_;
  const std::shared_ptr<WaiterRegistry> registry_;
  std::mutex mutex_;
  std::vector<LocalQueue*> slots_;  // by a hash of the name; each begins a list
  std::size_t count_ = 0;
};

}  // namespace sluice::lock
