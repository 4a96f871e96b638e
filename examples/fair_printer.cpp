/// Five jobs share a printer, first come first served, whatever process they are of.
///   fair_printer [URL]     default: embedded:
#include <fmt/format.h>

#include <string>
#include <vector>

#include "sluice/fair_mutex.hpp"
#include "sluice/open.hpp"

using namespace std::chrono_literals;

/// Waits for its turn and prints. `printed` needs no lock of its own.
static sluice::Task<void> print(sluice::FairMutex& printer, std::string job,
                                std::vector<std::string>& printed) {
  auto turn = printer.acquire();  // named before it is awaited: g++ 12
  auto held = co_await turn;
  printed.push_back(std::move(job));
  auto leaving = held.release();
  co_await leaving;
}

int main(int count, char** words) {
  const auto store = sluice::open(count > 1 ? words[1] : "embedded:");
  sluice::FairMutex printer{*store, "printer", {.lease = 10s, .label = "the printer's queue"}};

  auto warming_up = printer.acquire().get();
  std::vector<std::string> printed;
  std::vector<sluice::Task<void>> jobs;
  for (const auto* job : {"invoice", "label", "delivery note", "poster", "thesis"})
    jobs.push_back(print(printer, job, printed));
  auto all = sluice::when_all(std::move(jobs));
  sluice::spawn([](sluice::FairMutex& queue, sluice::Held held) -> sluice::Task<void> {
    for (;;) {
      auto looking = queue.info();
      const auto info = co_await looking;
      if (info.waiters.size() == 5) break;
    }
    auto opening = held.release();
    co_await opening;
  }(printer, std::move(warming_up)));
  all.get();

  for (const auto& job : printed) fmt::print("{}\n", job);
  return printed.size() == 5 && printed.back() == "thesis" ? 0 : 1;
}
