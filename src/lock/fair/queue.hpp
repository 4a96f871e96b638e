/// The holds of one fair lock by the same options, and how this process comes by them: each waiter
/// stands in the queue of the server for itself.
#pragma once

#include <memory>
#include <mutex>
#include <stop_token>

#include "lock/fair/wire.hpp"
#include "lock/hold/resource.hpp"
#include "lock/hold/watchdog.hpp"
#include "lock/wait/inbox.hpp"

namespace sluice::lock {

/// Threads: any.
class FairQueue : public Resource, public std::enable_shared_from_this<FairQueue> {
 public:
  FairQueue(Store& store, const std::string& name, FairTerms terms);

  const FairWire& wire() const noexcept { return wire_; }
  const Watchdog& watchdog() const noexcept { return *watchdog_; }

  /// One look. Null: refused.
  Task<std::shared_ptr<Hold>> try_enter(Identity who);
  /// Waits until `until` (steady), or until `stop` is requested. Null: not granted.
  Task<std::shared_ptr<Hold>> enter(Identity who, SteadyTime until, std::stop_token stop);

  /// Ends whatever hold there is; the latest of this FairQueue learns it now. False: there was
  /// none.
  Task<bool> force_release();

  const Script& renewal() const noexcept override;
  void add_to(Renewal& renewal, const Hold& hold, std::uint32_t entries) const override;
  Task<Value> ask_end(const Identity& who, CallOptions options) override;
  GiveUp give_up(const Identity& who) const override;
  Task<Value> ask_recount(const Hold& hold, std::uint32_t entries) override;

 private:
  std::shared_ptr<Hold> begin_hold(const Identity& who, const Grant& grant,
                                   SteadyTime renew_at = SteadyTime::max());
  Task<std::shared_ptr<Hold>> stand(Identity who, SteadyTime until, std::stop_token stop);
  Task<std::shared_ptr<Hold>> wait(Identity who, SteadyTime until, std::stop_token stop);

  const FairWire wire_;
  const std::shared_ptr<Watchdog> watchdog_;
  const std::shared_ptr<Inbox> inbox_;
  std::mutex mutex_;
  std::weak_ptr<Hold> latest_;
};

}  // namespace sluice::lock
