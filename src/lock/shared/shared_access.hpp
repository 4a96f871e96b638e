/// The readers or the writers of one SharedMutex on the server: its scripts as functions. Each
/// waiter has a place of its own in the server's queue: readers share, so that there is nothing to
/// hand on within a process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lock/wait/lock_resource.hpp"
#include "sluice/lock_info.hpp"
#include "sluice/shared_mutex.hpp"
#include "sluice/store.hpp"

namespace sluice::lock {

/// What a read-write lock is called in Redis: Redisson's keys and channel, and ours beside them.
struct SharedNames {
  /// Throws Error (bad_argument) as checked_name().
  explicit SharedNames(std::string name);

  std::string key;        ///< the name itself
  std::string hold_keys;  ///< what the hold keys of the readers begin with
  std::string token;      ///< the fencing counter of the writers
  std::string channel;    ///< where the end of a hold is published
  std::string writers;    ///< tickets of those that wait to write
  std::string readers;    ///< and of those that wait to read
  std::string looks;      ///< until when their processes look at the lock
  std::string writing;    ///< who writes, and whose turn it is
  std::string leases;     ///< readers of ours by when they end

  /// Of the first entry of a reader.
  std::string hold_key(std::string_view owner) const;
};

enum class Mode : std::uint8_t { read, write };

class SharedAccess final : public LockResource {
 public:
  /// Throws Error (bad_argument): the name, or an option out of its range.
  SharedAccess(Store& store, const std::string& name, Mode mode, const SharedMutexOptions& options);

  Task<LockInfo> info() override;

  const Script& renewal() const noexcept override;
  void add_to(Renewal& renewal, const Hold& hold, std::uint32_t entries) const override;
  Task<Value> ask_end(const Identity& who, CallOptions options) override;
  GiveUp give_up(const Identity& who) const override;
  Task<Value> ask_recount(const Hold& hold, std::uint32_t entries) override;
  void check(OwnerState& owner) const override;

 private:
  Task<AcquireReply> ask_acquire(const Identity& who, const std::string& inbox,
                                 std::uint64_t came) override;
  Task<Value> ask_force_release() override;
  AcquireReply read_acquire_reply(const Value& reply, std::string_view owner) const override;

  std::string_view letter() const noexcept { return mode_ == Mode::read ? "r" : "w"; }
  std::string ticket_of(const Identity& who, std::string_view inbox) const;

  const Mode mode_;
  const SharedNames names_;
  // as the scripts read them
  const std::string_view preference_;
  const std::string overtaking_;
  const std::string hand_overs_;
  const std::string lease_;
};

}  // namespace sluice::lock
