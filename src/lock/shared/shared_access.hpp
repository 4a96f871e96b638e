/// The readers or the writers of one SharedMutex: how they get in, and how their holds are kept.
///
///     first question ──> granted
///      └─> refused, and not patient: out
///      └─> refused: a place in the server's queue (QueuedWait), until granted, patience or stop
///
/// Each that waits has a place of its own in the queue: readers share, so that there is nothing to
/// hand on within a process.
#pragma once

#include <memory>
#include <stop_token>

#include "lock/hold/resource.hpp"
#include "lock/shared/wire.hpp"
#include "lock/wait/inbox.hpp"

namespace sluice::lock {

class Watchdog;

class SharedAccess final : public Resource, public std::enable_shared_from_this<SharedAccess> {
 public:
  SharedAccess(Store& store, Mode mode, std::shared_ptr<const SharedWire> wire,
               std::shared_ptr<Watchdog> watchdog, std::shared_ptr<Inbox> inbox);

  /// Waits until it is in, or until `until` (steady), or until `stop`. Null: it is not.
  Task<std::shared_ptr<Hold>> enter(Identity who, SteadyTime until, std::stop_token stop);
  /// One look.
  Task<std::shared_ptr<Hold>> try_enter(Identity who);

  const Script& renewal() const noexcept override;
  void add_to(Renewal& renewal, const Hold& hold, std::uint32_t entries) const override;
  Task<Value> ask_end(const Identity& who, CallOptions options) override;
  GiveUp give_up(const Identity& who) const override;
  Task<Value> ask_recount(const Hold& hold, std::uint32_t entries) override;

 private:
  Task<AcquireReply> ask(const Identity& who, std::string inbox);
  std::shared_ptr<Hold> begin_asked(const Identity& who, const AcquireReply& answer,
                                    SteadyTime sent);
  Task<std::shared_ptr<Hold>> stand(QueuedWait& line, const Identity& who, SteadyTime until,
                                    std::stop_token stop);
  std::shared_ptr<Hold> begin_granted(const Identity& who, const Grant& grant, bool handed_over);

  const Mode mode_;
  const std::shared_ptr<const SharedWire> wire_;
  const std::shared_ptr<Watchdog> watchdog_;
  const std::shared_ptr<Inbox> inbox_;
};

}  // namespace sluice::lock
