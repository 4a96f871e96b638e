/// Locks over HTTP, for programs that have no library of ours. They are those of Mutex: programs
/// with the library, and Java programs with Redisson, keep them out, and are kept out.
///
///   POST   /v1/locks/{name}           takes it, or waits; the Idempotency-Key is the wish
///   PUT    /v1/locks/{name}/{owner}   renews the lease
///   DELETE /v1/locks/{name}/{owner}   releases
///   GET    /v1/locks/{name}           who holds it
#pragma once

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string>

#include "http/routes.hpp"
#include "lock/mutex/leased_lock.hpp"
#include "server/tools_door.hpp"
#include "server/waiting_lines.hpp"

namespace sluice::server {

/// A hold hangs on no process: it is leased, and any process of the service renews or releases it.
/// A call that waits ends when its client goes, or the server begins to stop; what it got just then
/// it gives back.
///
/// Threads: any. REQUIRES: store and door live longer, and it longer than the server of its routes.
class LockTools {
 public:
  LockTools(Store& store, const ToolsDoor& door, WaitingLimits limits = {})
      : store_(store), door_(door), lines_(store, limits) {}
  /// Waits for the calls under way. REQUIRES: their server is gone, which ends what waits.
  ~LockTools();

  void add_routes(http::Routes& routes);

 private:
  struct Wish {
    std::string name;
    lock::LeaseWish lease;
    std::chrono::milliseconds wait;
  };
  struct OfOwner {
    std::string name;
    OwnerId owner;
    std::chrono::milliseconds lease{};
  };
  using Outcome = Expected<lock::LeasedHold, lock::HeldElsewhere>;
  class UnderWay;

  Expected<Wish, http::Response> wish_of(const http::Request& request) const;
  Expected<OfOwner, http::Response> of_owner(const http::Request& request) const;
  void acquire(http::Request&& request, http::Responder&& respond);
  void renew(http::Request&& request, http::Responder&& respond);
  void release(http::Request&& request, http::Responder&& respond);
  void show(http::Request&& request, http::Responder&& respond);
  /// Answers with what `work` returns, or with why it failed.
  Task<void> answer(Task<http::Response> work, http::Responder respond);
  Task<http::Response> decide(Wish wish, std::stop_token gone);
  Task<Outcome> wait_for(lock::LeasedLock& lock, Wish wish,
                         std::unique_ptr<WaitingLines::Place> place, std::stop_token gone);
  Task<http::Response> renewed(OfOwner which);
  Task<http::Response> released(OfOwner which);
  Task<http::Response> shown(std::string name);

  Store& store_;
  const ToolsDoor& door_;
  WaitingLines lines_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::size_t under_way_ = 0;  // guarded by mutex_
};

}  // namespace sluice::server
