/// The permits of one name, as one Semaphore or PermitSemaphore of this process sees them: who gets
/// some, and how a caller waits.
///
/// Each waiter has a ticket of its own in the server's queue. A release serves the heads of the
/// queue, whatever program they belong to. Only a Java program does not know the queue: it
/// publishes how many permits are free. A PermitQueue with a waiter listens to that, and if its
/// waiter is the head of the server's queue, the waiter asks again.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <stop_token>

#include "lock/semaphore/wire.hpp"
#include "lock/wait/inbox.hpp"
#include "lock/wait/waiting.hpp"

namespace sluice::lock {

/// A caller that wants permits.
struct PermitRequest {
  Identity who;
  Terms terms;                       ///< of the permits
  std::chrono::milliseconds wait{};  ///< 0: asks once
  std::stop_token stop;
};

class PermitQueue final : public PermitWire, public std::enable_shared_from_this<PermitQueue> {
 public:
  PermitQueue(Store& store, PermitNames names, Terms terms);
  ~PermitQueue() override;

  const Terms& terms() const noexcept { return terms_; }

  /// Takes what was granted to the last request. False: it came too late to be of use.
  using Accept = std::function<bool(const Identity& who, const Grant&, bool handed_over)>;
  /// False: refused. Throws Error (timeout) when a grant that was not waited for came too late.
  Task<bool> enter(PermitRequest request, Accept accept);

  /// A hold of what was granted. Null: too late.
  std::shared_ptr<Hold> hold(Identity who, const Grant& grant, bool handed_over);

  GiveUp give_up(const Identity& who) const override;
  std::string queued_as(const Identity& who) const override {
    return std::string{request_of_hold(who.request())};
  }

 private:
  struct Waiter {
    Inbox::Subscription& inbox;
    std::uint32_t permits;
    bool leads = false;  ///< is the head of the server's queue
  };
  using Waiters = std::list<Waiter>;

  Task<bool> enter_once(PermitRequest& request, SteadyTime until, const Accept& accept);
  Task<std::optional<bool>> try_once(const PermitRequest& request, const Accept& accept);
  Task<bool> wait(PermitRequest request, SteadyTime until, Accept accept);
  Task<bool> stand(Waiter& waiter, const PermitRequest& request, SteadyTime until,
                   const Accept& accept);
  Task<AcquireReply> ask_in_queue(Identity who, Waiter& waiter, std::uint64_t came);
  Task<bool> listen(SteadyTime until);
  bool is_listening() const;
  void heard(const Message& message);

  const Terms terms_;
  const std::shared_ptr<Inboxes> inboxes_;
  const std::shared_ptr<Inbox> inbox_;
  mutable std::mutex mutex_;
  Waiters waiters_;
  std::uint64_t messages_ = 0;             // of Java programs, heard so far
  ListenerBesideStrangers java_releases_;  // last: its handler uses the rest
};

}  // namespace sluice::lock
