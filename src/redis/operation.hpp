/// One request under way, from submit() until its last reply. It lives in the frame of the
/// coroutine that waits for it, so nothing is allocated for it.
#pragma once

#include <cstdint>
#include <exception>
#include <span>

#include "redis/request.hpp"
#include "sluice/store.hpp"
#include "sluice/task.hpp"
#include "sluice/value.hpp"

namespace sluice::redis {

/// Who reads a reply when it comes.
enum class ReadBy : unsigned char {
  caller,       ///< the thread that waits for it
  anybody,      ///< the reactor's thread, at once, unless a caller is reading
  next_reader,  ///< the thread that reads the next one; no caller waits for this one
};

struct Operation {
  static constexpr int no_slot = -1;

  Operation(const Request& what, std::span<Value> where, SteadyTime until,
            const CallOptions& options, Driver* driver, int of_slot = no_slot)
      : request(what),
        replies(where),
        deadline(until),
        timeout(options.timeout),
        repeatable(options.repeatable),
        messages_first(options.messages_first),
        slot(of_slot),
        read_by(options.unhurried ? ReadBy::next_reader : ReadBy::anybody),
        done(driver) {}

  const Request& request;
  const std::span<Value> replies;  ///< one for each command of the request
  const SteadyTime deadline;
  const std::chrono::milliseconds timeout;  ///< as its caller has said; 0: as the Store does
  const bool repeatable;
  const bool messages_first;
  const int slot;  ///< of a cluster, for which the server of this link is asked
  /// Fails unless it is sent and answered by this connection of the link; 0: by any.
  std::uint64_t only_by = 0;
  bool redirected = false;  ///< to this server, which has the slot by no map yet
  bool once = false;        ///< fails with the attempt to connect that is under way, or the next
  ReadBy read_by;
  std::exception_ptr failure;  ///< set: no replies
  bool returned = false;       ///< another node has the slot now: no replies, no failure
  Completion done;

  std::uint64_t went_by = 0;  ///< the connection that has answered

  // The link's own, under its lock.
  std::size_t answered = 0;
  /// When so many bytes of the connection's output were sent, the server may have a command of it.
  std::uint64_t runs_at = 0;
  bool met_nonsense = false;  ///< a reply that was perhaps its own was not RESP
  bool was_sent = false;      ///< on an earlier connection; it may have taken effect there
  bool was_refused = false;   ///< by a replica: it waits for the master, before later calls
  Operation* next = nullptr;  ///< in a list of operations to be completed
};

/// Operations whose outcome is known, to be completed when no lock is held.
class Finished {
 public:
  Finished() = default;
  Finished(const Finished&) = delete;
  Finished& operator=(const Finished&) = delete;
  ~Finished() { complete_all(); }  // also where what came behind them had no memory

  void add(Operation& operation) noexcept {
    operation.next = nullptr;
    *end_ = &operation;
    end_ = &operation.next;
  }
  void fail(Operation& operation, std::exception_ptr failure) noexcept {
    operation.failure = std::move(failure);
    add(operation);
  }
  /// REQUIRES: no lock of the link is held. Coroutines that no thread waits for run in here.
  void complete_all() noexcept {
    Operation* one = first_;
    first_ = nullptr;
    end_ = &first_;
    while (one) {
      Operation* const after = one->next;
      one->done.complete();  // *one may be gone after this
      one = after;
    }
  }

 private:
  Operation* first_ = nullptr;
  Operation** end_ = &first_;
};

}  // namespace sluice::redis
