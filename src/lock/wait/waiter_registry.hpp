/// The waiters that the server does not know: they wait behind a holder of their own process. After
/// a second the server is told of them, for people: `info()`, `sluice locks`.
///
/// A wait is an Entry in a list, most often for microseconds, and nothing else happens. One timer
/// ticks each second while there are entries. What is told lies in a hash beside the lock
/// (lock/wait/report_waiters). It is told again every 20 s, counts for a minute, and is taken back
/// at the end of the wait. It is sent in order: one batch at a time.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/process.hpp"
#include "lock/hold/resource.hpp"
#include "lock/wait/inbox.hpp"
#include "sluice/lock_info.hpp"
#include "store/key_name.hpp"

namespace sluice::lock {

/// The key of who has been waiting for long, of the lock `name`.
inline std::string waiters_key(std::string_view name) {
  return key_with_prefix("sluice_lock_waiters", name);
}

/// Threads: any.
class WaiterRegistry : public std::enable_shared_from_this<WaiterRegistry> {
 public:
  explicit WaiterRegistry(Store& store);
  ~WaiterRegistry();
  WaiterRegistry(const WaiterRegistry&) = delete;
  WaiterRegistry& operator=(const WaiterRegistry&) = delete;

  /// One that waits, while it lives.
  class Entry {
   public:
    /// `name`: of the lock. All must outlive the Entry.
    Entry(WaiterRegistry& registry, const std::string& name, const Identity& who);
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

   private:
    friend class WaiterRegistry;
    WaiterRegistry& waiters_;
    const std::string& name_;
    const Identity& who_;
    Entry* before_ = nullptr;
    Entry* after_ = nullptr;
    std::uint64_t tick_ = 0;  // when it came
    unsigned forks_ = 0;
    bool told_ = false;
  };

 private:
  /// What is to be told of one wait.
  struct Report {
    std::string key;
    std::string request;
    std::string person;  ///< "owner holder"
    std::uint64_t seconds = 0;
  };
  using Reports = std::vector<Report>;

  void add(Entry& entry);
  void remove(Entry& entry);
  void tick();
  Task<void> send();
  Task<void> tell(Reports come, Reports gone);

  // REQUIRE: mutex_ is held
  void forget_parent();
  void set_timer();
  /// Whether the caller has to send.
  bool begin_to_send();

  Store& store_;
  Clock& clock_;
  const std::shared_ptr<Inboxes> inboxes_;
  std::mutex mutex_;
  Entry* first_ = nullptr;  // latest first
  std::uint64_t ticks_ = 0;
  Clock::TimerId timer_ = 0;
  bool ticking_ = false;
  Reports come_;
  Reports gone_;
  bool sending_ = false;
  unsigned forks_ = fork_count();
};

}  // namespace sluice::lock
