/// The scripts of both semaphores as functions: what is asked, and what the answer means. Nothing
/// is decided here.
#pragma once

#include "lock/hold/hold.hpp"
#include "lock/semaphore/names.hpp"
#include "lock/wait/queued_wait.hpp"

namespace sluice::lock {

struct PoolAnswer {
  AcquireReply answer;
  bool leads = false;  ///< refused, and the head of the queue
};

class PoolWire {
 public:
  PoolWire(Store& store, PoolNames names) : store_(store), names_(std::move(names)) {}

  const PoolNames& names() const noexcept { return names_; }

  /// Repeatable: a copy finds what the first has got. `inbox`: where to hear of a hand-over; empty:
  /// the request is not put into the queue.
  Task<PoolAnswer> ask_acquire(const Identity& who, const std::string& inbox) const;
  /// Ends holds. Harmless when repeated, but a copy is answered 0. Reply: how many were held.
  Task<Value> ask_end(const Identity& who, CallOptions options) const;
  /// The same, and the end of a wait.
  Task<Value> ask_give_up(const Identity& who, const std::string& inbox) const;
  /// Ends the hold of one member, by a request whose copies are answered as it was.
  Task<bool> ask_end_once(std::string member, std::string request) const;

  /// Changes how many there are. The request's copies are answered as it was.
  Task<std::int64_t> ask_change(std::string what, std::int64_t number, std::string request) const;
  Task<std::int64_t> ask_free() const;
  /// The same question as a part of others.
  void add_look(Batch& batch) const;
  /// False: it is over. Repeatable.
  Task<bool> ask_update_lease(std::string member, std::chrono::milliseconds lease) const;

  static const Script& renewal() noexcept;
  void add_to(Renewal& renewal, const Hold& hold) const;

 private:
  Task<Value> ask_release(const Identity& who, const std::string& ticket,
                          CallOptions options) const;

  Store& store_;
  const PoolNames names_;
};

}  // namespace sluice::lock
