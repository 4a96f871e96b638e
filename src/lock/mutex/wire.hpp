/// The scripts of Mutex as functions: what is asked, and what the answer means. Nothing is decided
/// here.
#pragma once

#include "lock/hold/hold.hpp"
#include "lock/mutex/names.hpp"
#include "lock/wait/queued_wait.hpp"
#include "sluice/mutex.hpp"

namespace sluice::lock {

/// What all holders of one name by the same options share.
struct MutexTerms {
  Terms terms;
  Durability durability;
  HandOff hand_off;

  friend auto operator<=>(const MutexTerms&, const MutexTerms&) = default;
};

/// The answer to the end of a turn.
struct PassAnswer {
  bool gone = false;
  std::optional<FencingToken> kept;  ///< for another turn, up to this token
  AcquireReply queued;               ///< else
};

class MutexWire {
 public:
  MutexWire(Store& store, const std::string& name, MutexTerms terms)
      : store_(store), names_(name), terms_(std::move(terms)) {}

  const Names& names() const noexcept { return names_; }
  const MutexTerms& terms() const noexcept { return terms_; }

  /// Repeatable: a copy finds the request id of the first. `inbox`: where to hear of a hand-over;
  /// empty: the request is not put into the queue. Throws Error (unsynced) when the replicas have
  /// it not in time; it is taken back then. The reply is for answer_to_acquire().
  Task<Value> ask_acquire(const Identity& who, std::string_view inbox) const;
  AcquireReply answer_to_acquire(const Value& reply) const;
  /// `last`: token of the turn that ends. Repeatable, but a copy is answered `gone` where the first
  /// handed over: ask_acquire(next) knows more then.
  Task<PassAnswer> ask_pass(const Identity& who, FencingToken last, const Identity& next,
                            const std::string& inbox) const;
  Task<Value> ask_end(const Identity& who, CallOptions options) const;
  Task<Value> ask_give_up(const Identity& who, const std::string& inbox) const;
  Task<Value> ask_recount(const Hold& hold, std::uint32_t entries) const;
  Task<Value> ask_force_release() const;
  void add_to(Renewal& renewal, const Hold& hold, std::uint32_t entries) const;

  /// A place in the queue, as lock/mutex/hand_over reads it. Without an inbox: none.
  std::string ticket_of(const Identity& who, std::string_view inbox) const;

 private:
  Task<Value> acquire_durably(Identity who, std::string ticket) const;

  Store& store_;
  const Names names_;
  const MutexTerms terms_;
};

}  // namespace sluice::lock
