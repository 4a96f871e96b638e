/// At most two of many instances print at the same time.
///   semaphore_desks [URL]     default: embedded:
#include <fmt/format.h>

#include <thread>
#include <vector>

#include "sluice/open.hpp"
#include "sluice/semaphore.hpp"

using namespace std::chrono_literals;

/// One that needs a printer; a real one is a process of its own, and sees no other.
static void print(sluice::Semaphore& printers, int job) {
  const auto printer = printers.try_acquire(1, 10s).get();
  if (!printer) {
    fmt::print("job {}: all printers were busy for ten seconds\n", job);
    return;
  }
  std::this_thread::sleep_for(20ms);
  fmt::print("job {}: {}\n", job, printer->valid() ? "printed" : "lost its printer");
}  // the permit goes to whoever waits longest

int main(int count, char** words) {
  const auto store = sluice::open(count > 1 ? words[1] : "embedded:");
  sluice::Semaphore printers{*store, "printers"};
  printers.try_set_permits(2).get();  // the first one sets it

  std::vector<std::jthread> crew;
  for (int job = 1; job <= 6; ++job) crew.emplace_back([&printers, job] { print(printers, job); });
  crew.clear();
  return printers.try_acquire(2, 10s).get() ? 0 : 1;
}
