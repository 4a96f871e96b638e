/// The scripts of both semaphores as functions: what is asked, and what the reply means. Nothing is
/// decided here.
#pragma once

#include "lock/semaphore/names.hpp"
#include "lock/wait/queued_wait.hpp"

namespace sluice::lock {

struct PermitReply {
  AcquireReply reply;
  bool leads = false;  ///< refused, and the head of the queue
};

class PermitWire {
 public:
  PermitWire(Store& store, PermitNames names) : store_(store), names_(std::move(names)) {}

  const PermitNames& names() const noexcept { return names_; }

  /// Repeatable: a copy finds what the first has got. `inbox`: where to hear of a hand-over; empty:
  /// the request is not put into the queue.
  Task<PermitReply> ask_acquire(const Identity& who, const std::string& inbox) const;
  /// Ends holds. Harmless when repeated, but a copy is answered 0. Reply: how many were held.
  Task<Value> ask_end(const Identity& who, CallOptions options) const;
  /// The same, and the end of a wait.
  Task<Value> ask_give_up(const Identity& who, const std::string& inbox) const;
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

  static const Script& renewal() noexcept;
  void add_to(Renewal& renewal, const Hold& hold) const;

 private:
  using Keys = std::vector<std::string_view>;

  /// The keys of the scripts; `answer`: one key more, if it is not empty.
  Keys keys(std::string_view answer = {}) const;
  Task<Value> ask_release(const Identity& who, const std::string& ticket,
                          CallOptions options) const;

  Store& store_;
  const PermitNames names_;
};

}  // namespace sluice::lock
