/// The permits of one name, as one Semaphore or PermitSemaphore of this process sees them: who gets
/// some, and how it waits.
///
/// Each wait has a ticket of its own in the server's queue. Whoever releases serves the heads of
/// the queue, whatever program it is of; only a Java program does not know the queue and publishes
/// how many are free. A pool that has waited once hears that, and its wait that is the head of the
/// queue looks then.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <stop_token>

#include "lock/hold/resource.hpp"
#include "lock/semaphore/wire.hpp"
#include "lock/wait/inbox.hpp"

namespace sluice::lock {

class Watchdog;

class Pool final : public Resource, public std::enable_shared_from_this<Pool> {
 public:
  Pool(Store& store, PoolNames names, Terms terms);
  ~Pool() override;

  const PoolWire& wire() const noexcept { return wire_; }
  const Terms& terms() const noexcept { return terms_; }

  /// One who wants permits.
  struct Visit {
    Identity who;
    std::chrono::milliseconds lease{};  ///< of the permits, unless they come by a hand-over
    SteadyTime until{};                 ///< not later than now: does not wait
    std::stop_token stop;
  };
  /// Takes what was granted. False: it came too late to be of use.
  using Admit = std::function<bool(const Grant&, bool handed_over)>;
  /// False: others had them all the while. Throws Error (timeout) when a grant that was not waited
  /// for came too late.
  Task<bool> enter(Visit visit, Admit admit);

  /// A hold of this pool, of what was granted. Null: too late.
  std::shared_ptr<Hold> hold(Identity who, const Grant& grant, bool handed_over);

  const Script& renewal() const noexcept override { return PoolWire::renewal(); }
  void add_to(Renewal& renewal, const Hold& hold, std::uint32_t entries) const override;
  Task<Value> ask_end(const Identity& who, CallOptions options) override;
  GiveUp give_up(const Identity& who) const override;
  Task<Value> ask_recount(const Hold& hold, std::uint32_t entries) override;

 private:
  /// A wait in the server's queue.
  struct Place {
    Inbox::Subscription& box;
    std::uint32_t permits;
    bool leads = false;
  };
  using Places = std::list<Place>;

  Task<std::optional<bool>> look_once(const Visit& visit, const Admit& admit);
  Task<bool> wait(Visit visit, Admit admit);
  Task<bool> stand(Inbox::Subscription& box, Place& place, const Visit& visit, const Admit& admit);
  Task<AcquireReply> ask_in_line(Identity who, Place& place);
  Task<void> listen();
  bool is_listening() const;
  void heard(const Message& message);

  const PoolWire wire_;
  const Terms terms_;
  const std::shared_ptr<Watchdog> watchdog_;
  const std::shared_ptr<Inbox> inbox_;
  mutable std::mutex mutex_;
  Places places_;
  std::uint64_t news_ = 0;  // heard so far
  Listener foreigners_;     // last: its handler uses the rest
};

}  // namespace sluice::lock
