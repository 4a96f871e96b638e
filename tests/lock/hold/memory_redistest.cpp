/// What this process keeps for a hold.
#include <malloc.h>

#include <deque>

#include "lock/server_lock.hpp"
#include "sluice/when_all.hpp"
#include "support/sanitized.hpp"

namespace sluice {
namespace {

using Memory = ServerLock;

Task<void> take(Mutex& mutex, Held& held) { held = co_await mutex.acquire(); }

std::size_t memory_in_use() {
  const auto memory = ::mallinfo2();
  return memory.uordblks + memory.hblkhd;
}

/// Its Mutex and its name included.
TEST_F(Memory, OfAHold) {
  if (test::is_sanitized) GTEST_SKIP() << "memory of a sanitizer";
  constexpr std::size_t many = 1 << 14;  // tables double: those that were full are as they were
  std::deque<Mutex> locks;
  std::deque<Held> holds;
  const auto add = [&] {
    constexpr std::size_t at_once = many / 16;
    for (std::size_t taken = 0; taken < many; taken += at_once) {
      std::vector<Task<void>> tasks;
      for (std::size_t i = 0; i < at_once; ++i) {
        auto& lock = locks.emplace_back(*store_, "idle:" + std::to_string(locks.size()));
        tasks.push_back(take(lock, holds.emplace_back()));
      }
      when_all(std::move(tasks)).get();
    }
  };
  const auto before = memory_in_use();
  add();
  EXPECT_LE((memory_in_use() - before) / many, 750) << "692 where the host has a short name";
  for (auto& held : holds) ASSERT_TRUE(held.valid());
}

}  // namespace
}  // namespace sluice
