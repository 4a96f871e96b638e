/// A Mutex on the server: its scripts as functions, what is asked and what the reply means.
#pragma once

#include "lock/mutex/hash_hold.hpp"
#include "lock/mutex/names.hpp"
#include "sluice/mutex.hpp"
#include "sluice/store.hpp"

namespace sluice::lock {

/// What all holders of one name by the same options share.
struct MutexTerms {
  Terms terms;
  Durability durability;
  HandOff hand_off;

  friend auto operator<=>(const MutexTerms&, const MutexTerms&) = default;
};

/// What Mutexes of one Store by the same options share.
struct MutexCommon : LockCommon {
  MutexCommon(Store& store, const MutexTerms& all);

  const HandOff hand_off;
  // as the scripts read them
  const std::string lease;
  const std::string most_hand_overs;
};

/// The reply to the end of a turn.
struct PassReply {
  bool gone = false;
  std::optional<FencingToken> kept;  ///< for another turn, up to this token
  AcquireReply queued;               ///< else
};

class MutexWire : public HashLock {
 public:
  /// Throws Error (bad_argument) for a name that is empty or too long.
  MutexWire(std::shared_ptr<MutexCommon> common, const std::string& name);

  const HandOff& hand_off() const noexcept { return common().hand_off; }

  Task<LockInfo> info() override;
  Task<Value> ask_end(const Identity& who, CallOptions options) override;
  GiveUp give_up(const Identity& who) const override;

  /// The process's place in the queue, as lock/mutex/hand_over reads it. Without an inbox: none.
  std::string ticket_of(const Identity& who, std::string_view inbox) const;

 protected:
  Task<AcquireReply> ask_acquire(const Identity& who, const std::string& inbox,
                                 std::uint64_t came) override;
  Task<Value> ask_force_release() override;
  AcquireReply read_acquire_reply(const Value& reply, std::string_view owner) const override;
  /// `last`: token of the turn that ends. Repeatable, but a copy is answered `gone` where the first
  /// handed over: ask_acquire(next) knows more then. Throws Error (unsynced) when too few replicas
  /// know of the next turn: the hold is to be given back.
  Task<PassReply> ask_pass(const Identity& who, FencingToken last, const Identity& next);

 private:
  const MutexCommon& common() const noexcept {
    return static_cast<const MutexCommon&>(LockResource::common());
  }
};

}  // namespace sluice::lock
