/// Waits for what other threads and processes do.
#pragma once

#include <chrono>
#include <thread>

namespace sluice::test {

/// False: it did not come true within half a minute.
template <class Condition>
bool comes_true(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{30};
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return true;
}

}  // namespace sluice::test
