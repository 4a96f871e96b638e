// A program with locks that outlive main(): `static_lock URL NAME`.
#include <cstdio>
#include <memory>
#include <mutex>

#include "sluice/mutex.hpp"
#include "sluice/open.hpp"

namespace {

/// Destroyed after main(), when the thread_local objects of the main thread are gone.
struct Late {
  std::unique_ptr<sluice::Store> store;
  std::unique_ptr<sluice::Mutex> mutex;
  std::unique_lock<sluice::Mutex> from_main;

  ~Late() {
    const std::scoped_lock again{*mutex};  // entered again: the owner is still the main thread
    from_main.unlock();
    std::puts("left");
  }
};

Late late;

}  // namespace

int main(int, char** words) {
  late.store = sluice::open(words[1]);
  late.mutex = std::make_unique<sluice::Mutex>(*late.store, words[2]);
  late.from_main = std::unique_lock{*late.mutex};
}
