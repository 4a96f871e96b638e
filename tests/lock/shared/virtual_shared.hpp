/// Read-write locks on the embedded engine and virtual time, and those who want to get in.
#pragma once

#include <exception>
#include <optional>

#include "lock/virtual_lock.hpp"

namespace sluice {

/// Acquires in the background and keeps what it gets. Its end is the end of its wait.
class Guest {
 public:
  ~Guest() { stop_.request_stop(); }
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;

  bool waits() const { return !done_ && !error_; }
  bool failed() const { return error_ != nullptr; }
  bool in() const { return held && held->valid(); }
  void leave() { held.reset(); }
  void give_up() { stop_.request_stop(); }

  std::optional<Held> held;

 protected:
  Guest() = default;
  std::stop_token stop() const { return stop_.get_token(); }
  void begin(Task<std::optional<Held>> entering) {
    spawn(enter(std::move(entering)), [this](std::exception_ptr error) { error_ = error; });
  }

 private:
  Task<void> enter(Task<std::optional<Held>> entering) {
    held = co_await entering;
    done_ = true;
  }

  std::stop_source stop_;
  bool done_ = false;
  std::exception_ptr error_;
};

struct Reader : Guest {
  Reader(SharedMutex& mutex, std::chrono::milliseconds wait) {
    begin(mutex.try_acquire_shared(wait, stop()));
  }
  Reader(SharedMutex& mutex, const Owner& owner, std::chrono::milliseconds wait) {
    begin(mutex.try_acquire_shared(owner, wait, stop()));
  }
};

struct Writer : Guest {
  Writer(SharedMutex& mutex, std::chrono::milliseconds wait) {
    begin(mutex.try_acquire(wait, stop()));
  }
  Writer(SharedMutex& mutex, const Owner& owner, std::chrono::milliseconds wait) {
    begin(mutex.try_acquire(owner, wait, stop()));
  }
};

class VirtualShared : public VirtualLock {
 protected:
  using Preference = SharedMutexOptions::Preference;

  std::string hold_key(const OwnerId& owner, int entry = 1) const {
    return "{prices}:" + owner.text + ":rwlock_timeout:" + std::to_string(entry);
  }
  std::string mode() { return field("prices", "mode"); }
  std::int64_t length(std::string_view line) {
    return store_->run({"ZCARD", line}).get().as_integer();
  }
  /// Nothing of the lock is left but its counter.
  /// But the counter, and answers to forced releases, which have a TTL.
  void expect_nothing_left() {
    const Value keys = store_->run({"KEYS", "*"}).get();
    for (const Value& key : keys.as_items()) {
      if (key.as_text().starts_with("sluice_lock_forced:{prices}:")) continue;
      EXPECT_EQ(key.as_text(), "redisson_lock_token:{prices}");
    }
  }

  SharedMutex here_{line_, "prices"};
  SharedMutex there_{far_, "prices"};
};

}  // namespace sluice
