/// A FairMutex on the server: its scripts as functions. Each waiter has a place of its own in the
/// server's queue.
#pragma once

#include <memory>
#include <mutex>

#include "lock/mutex/hash_hold.hpp"
#include "lock/mutex/names.hpp"
#include "sluice/lock_info.hpp"

namespace sluice::lock {

/// Threads: any.
class FairQueue final : public HashLock {
 public:
  /// Throws Error (bad_argument) for a name that is empty or too long.
  FairQueue(Store& store, const std::string& name, const Terms& terms,
            const Durability& durability);

  Task<LockInfo> info() override;

  Task<Value> ask_end(const Identity& who, CallOptions options) override;
  GiveUp give_up(const Identity& who) const override;

 private:
  Task<AcquireReply> ask_acquire(const Identity& who, const std::string& inbox,
                                 std::uint64_t came) override;
  Task<Value> ask_force_release() override;
  AcquireReply read_acquire_reply(const Value& reply, std::string_view owner) const override;
  void granted(const std::shared_ptr<Hold>& hold) override;
  std::shared_ptr<Hold> latest_hold() override;

  const Names names_;
  const std::string queue_;      // Redisson's: owners, first come first
  const std::string deadlines_;  // Redisson's: until when each of them waits
  const std::string tickets_;    // ours: what a release needs to know of each waiter
  std::mutex mutex_;
  std::weak_ptr<Hold> latest_;
};

}  // namespace sluice::lock
