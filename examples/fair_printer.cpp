/// Five jobs share a printer, first come first served, whatever process they are of.
///   fair_printer [URL]     default: embedded:
#include <fmt/format.h>

#include <string>
#include <vector>

#include "sluice/fair_mutex.hpp"
#include "sluice/open.hpp"
#include "sluice/when_all.hpp"

using namespace std::chrono_literals;
using Jobs = std::vector<std::string>;

/// Waits for its turn and prints. `printed` needs no other protection.
static sluice::Task<void> print(sluice::FairMutex& printer, std::string job, Jobs& printed) {
  auto turn = printer.acquire();
  auto held = co_await turn;
  printed.push_back(std::move(job));
  auto leaving = held.release();
  co_await leaving;
}

static sluice::Task<void> leave(sluice::Held held) {
  auto leaving = held.release();
  co_await leaving;
}

int main(int count, char** words) {
  const auto store = sluice::open(count > 1 ? words[1] : "embedded:");
  sluice::FairMutex printer{*store, "printer", {.lease = 10s, .label = "fair_printer"}};

  auto warming_up = printer.try_acquire(1min).get();
  if (!warming_up) {
    fmt::print("the printer is busy\n");
    return 0;
  }
  Jobs printed;
  std::vector<sluice::Task<void>> tasks;
  for (const auto* job : {"invoice", "label", "delivery note", "poster", "thesis"})
    tasks.push_back(print(printer, job, printed));  // each stands in the queue
  tasks.push_back(leave(std::move(*warming_up)));   // and the first has its turn
  auto all = sluice::when_all(std::move(tasks));
  all.get();

  for (const auto& job : printed) fmt::print("{}\n", job);
  return printed == Jobs{"invoice", "label", "delivery note", "poster", "thesis"} ? 0 : 1;
}
