/// A mutex for sections of a microsecond or so: a thread that finds it taken spins a little before
/// it sleeps, because waking it would take longer than the section.
#pragma once

#include <mutex>
#include <thread>

namespace sluice::engine {

class SpinMutex {
 public:
  void lock() {
    for (int i = 0; i < spins(); ++i) {
      if (mutex_.try_lock()) return;
      pause();
    }
    mutex_.lock();
  }
  void unlock() { mutex_.unlock(); }

 private:
  /// On one core whoever holds it cannot go on while another spins.
  static int spins() noexcept {
    static const int count = std::thread::hardware_concurrency() > 1 ? 100 : 0;
    return count;
  }
  static void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
  }

  std::mutex mutex_;
};

}  // namespace sluice::engine
