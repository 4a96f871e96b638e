/// What uses the Store for a guard in the background, so that the guard's end can wait for it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <utility>

namespace sluice::cache {

/// Threads: any.
class UnderWay {
 public:
  /// A task that is under way.
  class Scope {
   public:
    explicit Scope(UnderWay& all) : all_(all) {
      const std::lock_guard lock{all_.mutex_};
      ++all_.count_;
    }
    ~Scope() {
      const std::lock_guard lock{all_.mutex_};
      --all_.count_;
      all_.ended_.notify_all();
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    UnderWay& all_;
  };

  /// A task calls code of the user, which may end the guard: its end does not wait for this task,
  /// which uses the Store no more then. REQUIRES: within a Scope.
  class Outside {
   public:
    explicit Outside(const UnderWay& all) : all_(all), outer_(std::exchange(innermost_, this)) {}
    ~Outside() { innermost_ = outer_; }
    Outside(const Outside&) = delete;
    Outside& operator=(const Outside&) = delete;

   private:
    friend class UnderWay;
    inline static thread_local const Outside* innermost_ = nullptr;
    const UnderWay& all_;
    const Outside* const outer_;
  };

  void wait() {
    std::size_t own = 0;
    for (const Outside* at = Outside::innermost_; at; at = at->outer_) own += &at->all_ == this;
    std::unique_lock lock{mutex_};
    ended_.wait(lock, [&] { return count_ <= own; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  std::size_t count_ = 0;
};

}  // namespace sluice::cache
