/// Cache guards on the embedded engine in virtual time, as two processes have them, and a source of
/// values that a test can hold up.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/embedded_store.hpp"
#include "sluice/cache_guard.hpp"
#include "sluice/metrics.hpp"
#include "support/faulty_store.hpp"

namespace sluice::test {

using namespace std::chrono_literals;
using Cache = CacheGuard<std::string>;

/// A database of one row. Threads: any.
class Source {
 public:
  /// Reads the row, and brings it when it is not held up.
  std::optional<std::string> read() {
    std::unique_lock lock{mutex_};
    ++begun_;
    changed_.notify_all();
    const auto value = value_;
    changed_.wait(lock, [this] { return !held_; });
    ++ended_;
    changed_.notify_all();
    return value;
  }
  auto loader() {
    return [this] { return read(); };
  }

  void write(std::optional<std::string> value) {
    const std::lock_guard lock{mutex_};
    value_ = std::move(value);
  }
  void hold() {
    const std::lock_guard lock{mutex_};
    held_ = true;
  }
  void let_go() {
    const std::lock_guard lock{mutex_};
    held_ = false;
    changed_.notify_all();
  }
  void await_begun(int loads) {
    std::unique_lock lock{mutex_};
    ASSERT_TRUE(changed_.wait_for(lock, 60s, [&] { return begun_ >= loads; }));
  }
  int loads() const {
    const std::lock_guard lock{mutex_};
    return begun_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::string> value_ = "one";
  bool held_ = false;
  int begun_ = 0;
  int ended_ = 0;
};

/// A call that nobody waits for: when this returns it has gone as far as it can.
template <class T>
class Call {
 public:
  explicit Call(Task<T> task) : state_(std::make_shared<State>()) {
    spawn(run(std::move(task), state_));
  }
  bool is_over() const {
    const std::lock_guard lock{state_->mutex};
    return state_->over;
  }
  /// What it has brought, or what it has thrown.
  T get() {
    std::unique_lock lock{state_->mutex};
    if (!state_->ended.wait_for(lock, 60s, [this] { return state_->over; }))
      throw std::runtime_error{"a call did not end"};
    if (state_->error) std::rethrow_exception(state_->error);
    return *state_->value;
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable ended;
    std::optional<T> value;
    std::exception_ptr error;
    bool over = false;
  };
  static Task<void> run(Task<T> task, std::shared_ptr<State> state) {
    std::optional<T> value;
    std::exception_ptr error;
    try {
      value = co_await task;
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock{state->mutex};
    state->value = std::move(value);
    state->error = error;
    state->over = true;
    state->ended.notify_all();
  }

  std::shared_ptr<State> state_;
};
using Get = Call<std::optional<std::string>>;

class Guards : public testing::Test {
 protected:
  static CacheGuardOptions plain() { return {.jitter = 0, .early = 0}; }
  /// A process that stands still renews no lease.
  static Fault stands_still(std::string_view call) {
    return call == "cache/renew" ? Fault::refused : Fault::none;
  }

  bool exists(std::string_view key) { return store_->run({"EXISTS", key}).get().as_integer() == 1; }
  std::chrono::milliseconds ttl(std::string_view key) {
    return std::chrono::milliseconds{store_->run({"PTTL", key}).get().as_integer()};
  }
  std::size_t keys() { return store_->run({"KEYS", "*"}).get().as_items().size(); }
  /// The error that the Task throws, if it throws one.
  template <class T>
  static std::optional<Errc> error_of(Task<T> task) {
    try {
      (void)task.get();
    } catch (const Error& failure) {
      return failure.errc();
    }
    return std::nullopt;
  }
  /// How often a counter of the process has counted since the test began.
  static std::uint64_t value(const std::atomic<std::uint64_t>& counter) { return counter.load(); }

  /// Waits in real time until `condition`.
  template <class Condition>
  static void await(Condition condition) {
    const auto patience = std::chrono::steady_clock::now() + 60s;
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), patience) << "it did not come";
      std::this_thread::yield();
    }
  }

  VirtualClock clock_;
  std::unique_ptr<engine::EmbeddedStore> store_ = engine::open_embedded({.clock = &clock_});
  FaultyStore line_{*store_};
  FaultyStore far_{*store_};  // as another process sees the server
  Source source_;
};

}  // namespace sluice::test
