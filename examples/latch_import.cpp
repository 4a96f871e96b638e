/// Three parts of an import, and somebody who needs the whole.
///   latch_import [URL]     default: embedded:
#include <fmt/format.h>

#include <sluice/latch.hpp>
#include <sluice/open.hpp>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

int main(int count, char** words) {
  const auto store = sluice::open(count > 1 ? words[1] : "embedded:");
  sluice::Latch latch{*store, "import:2026-01-02"};

  // Whoever hands out the work says how many parts there are; if another has said so, it stays.
  latch.try_set_count(3).get();

  std::vector<std::jthread> workers;
  for (int part = 1; part <= 3; ++part) {
    workers.emplace_back([&latch, part] {
      // A worker that is restarted reports its part again: it counts once.
      const auto name = fmt::format("part {}", part);
      latch.count_down_once(name).get();
      latch.count_down_once(name).get();
    });
  }

  if (!latch.try_wait(10s).get()) {
    fmt::print("{} parts are still missing\n", latch.count().get());
    return 1;
  }
  fmt::print("all parts are there\n");
}
