/// A semaphore on the server: its scripts as functions, what is asked and what the reply means.
#pragma once

#include "lock/hold/resource.hpp"
#include "lock/semaphore/names.hpp"
#include "lock/wait/acquire_reply.hpp"
#include "sluice/lock_info.hpp"

namespace sluice::lock {

struct PermitReply {
  AcquireReply reply;
  bool leads = false;  ///< refused, and the head of the queue
};

class PermitWire : public Resource {
 public:
  PermitWire(std::shared_ptr<Watchdog> watchdog, PermitNames names)
      : Resource(std::move(watchdog), names.free), names_(std::move(names)) {}

  const PermitNames& names() const noexcept { return names_; }

  /// Repeatable: a copy finds what the first has got. `inbox`: where to hear of a hand-over; empty:
  /// the request is not put into the queue.
  Task<PermitReply> ask_acquire(const Identity& who, const std::string& inbox,
                                std::uint64_t came) const;
  /// Reply: how many holds of the request were ended.
  Task<Value> ask_end(const Identity& who, CallOptions options) override;
  /// Ends the hold of one member. Copies of the request get the answer of the first.
  Task<bool> ask_end_once(std::string member, std::string request) const;

  /// Changes how many there are; see lock/semaphore/change. Copies of the request get the answer of
  /// the first; without a request the change is repeatable.
  Task<std::int64_t> ask_change(std::string what, std::int64_t number,
                                std::string request = {}) const;
  /// False: it is over. Repeatable.
  Task<bool> ask_update_lease(std::string member, std::chrono::milliseconds lease) const;
  /// The semaphore as operators see it.
  Task<SemaphoreInfo> ask_info() const;

  const Script& renewal() const noexcept override;
  void add_to(Renewal& renewal, const Hold& hold, std::uint32_t entries) const override;
  /// 0: a hold of permits is never entered again.
  Task<Value> ask_recount(const Hold& hold, std::uint32_t entries) override;

 protected:
  /// Ends holds, and the wait whose tickets name `inbox`.
  GiveUp give_up_wait(const Identity& who, const std::string& inbox) const;

 private:
  const PermitNames names_;
};

}  // namespace sluice::lock
