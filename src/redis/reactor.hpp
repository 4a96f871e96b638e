/// The background thread of a Store: it reads when no caller does, keeps time, and connects.
///
///     Reactor ── owns ──> thread, epoll, eventfd
///        └── knows ──> Source (a Link): one descriptor, watched for one event (EPOLLONESHOT)
///
/// Threads: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "redis/resolution.hpp"
#include "sluice/clock.hpp"

namespace sluice::redis {

/// What the reactor's thread works for.
class Source {
 public:
  virtual ~Source() = default;
  /// The descriptor is ready for `events`, and is not watched any more until rearm().
  virtual void on_ready(std::uint32_t events) = 0;
  /// Does what is due at `now`; says when to be called next at the latest.
  virtual SteadyTime on_tick(SteadyTime now) = 0;
};

class Reactor {
 public:
  /// Throws std::system_error without descriptors.
  Reactor();
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;
  ~Reactor();

  /// `owner` is kept until the thread ends.
  void start(std::shared_ptr<void> owner);
  /// Ends and joins the thread. Called on that thread itself (by a handler that destroys its Store)
  /// it only makes it end.
  void stop();

  /// From now on the source is ticked. It is let go by its owner after remove(), or after stop().
  void add(std::shared_ptr<Source> source);
  void remove(const Source& source);

  void watch(int descriptor, Source& source, std::uint32_t events);
  void rearm(int descriptor, Source& source, std::uint32_t events) noexcept;
  void forget(int descriptor) noexcept;

  /// Asks for the addresses of a server; what is under way for one source is for all that ask for
  /// the same. Sources are ticked when the answer is there. By the reactor's thread alone.
  std::shared_ptr<Resolution> resolve(const net::Endpoint& server);

  /// All sources are ticked soon.
  void wake() noexcept { wakeup_->set(); }
  /// The same, unless they are ticked before `when` anyway.
  void wake_before(SteadyTime when) noexcept {
    if (when.time_since_epoch().count() < sleeps_until_.load(std::memory_order_acquire)) wake();
  }
  /// Whether the thread is inside of a Source, and is not the caller's.
  bool is_busy_elsewhere() const noexcept {
    return busy_.load(std::memory_order_acquire) && thread_.get_id() != std::this_thread::get_id();
  }

 private:
  /// An eventfd.
  class Wakeup {
   public:
    Wakeup();
    Wakeup(const Wakeup&) = delete;
    Wakeup& operator=(const Wakeup&) = delete;
    ~Wakeup();
    void set() const noexcept;
    void take() const noexcept;
    int descriptor() const noexcept { return descriptor_; }

   private:
    const int descriptor_;
  };

  void run();
  SteadyTime tick_all();
  void sleep_until(SteadyTime when);

  const int epoll_;
  const std::shared_ptr<const Wakeup> wakeup_ = std::make_shared<const Wakeup>();
  std::atomic<bool> ending_{false};
  std::atomic<bool> busy_{false};
  std::atomic<SteadyTime::rep> sleeps_until_{SteadyTime::max().time_since_epoch().count()};
  std::mutex mutex_;
  std::vector<std::shared_ptr<Source>> sources_;
  std::vector<std::shared_ptr<Source>> ticked_;  // the thread's copy
  std::vector<std::shared_ptr<Source>> copied_;  // the next one
  std::vector<std::pair<net::Endpoint, std::shared_ptr<Resolution>>> resolutions_;  // under way
  std::thread thread_;
};

}  // namespace sluice::redis
