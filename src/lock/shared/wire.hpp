/// The scripts of SharedMutex as functions: what is asked, and what the answer means. Nothing is
/// decided here.
#pragma once

#include "lock/hold/hold.hpp"
#include "lock/shared/names.hpp"
#include "lock/wait/queued_wait.hpp"
#include "sluice/shared_mutex.hpp"

namespace sluice::lock {

enum class Mode : std::uint8_t { read, write };

struct SharedTerms {
  Terms terms;
  Durability durability;
  SharedMutexOptions::Preference preference{};
  std::uint32_t overtaking = 0;
  std::uint32_t hand_overs = 0;
};

class SharedWire {
 public:
  SharedWire(Store& store, std::string name, const SharedTerms& terms);

  const SharedNames& names() const noexcept { return names_; }
  const SharedTerms& terms() const noexcept { return terms_; }

  /// Repeatable: a copy finds the request id of the first. `inbox`: where to hear of a hand-over;
  /// empty: the request is not put into the queue. Throws Error: bad_argument where the owner
  /// reads and wants to write; unsynced when the replicas have it not in time, and it is taken back
  /// then.
  Task<AcquireReply> ask_acquire(Mode mode, const Identity& who, const std::string& inbox) const;
  Task<Value> ask_end(Mode mode, const Identity& who, CallOptions options) const;
  Task<Value> ask_give_up(Mode mode, const Identity& who, const std::string& inbox) const;
  Task<Value> ask_recount(const Hold& hold, std::uint32_t entries) const;
  Task<Value> ask_force_release() const;
  static const Script& renewal(Mode mode) noexcept;
  void add_to(Renewal& renewal, Mode mode, const Hold& hold) const;

 private:
  std::string ticket_of(Mode mode, const Identity& who, std::string_view inbox) const;
  AcquireReply acquire_reply_of(const Value& reply) const;
  Task<Value> end(Mode mode, const Identity& who, std::string_view ticket,
                  CallOptions options) const;

  Store& store_;
  const SharedNames names_;
  const SharedTerms terms_;
  const std::string_view preference_;  // as the scripts read it
  const std::string overtaking_;
  const std::string hand_overs_;
  const std::string lease_;
};

/// What to throw at an owner that reads and wants to write.
Error upgrade_refused(const std::string& name);

}  // namespace sluice::lock
