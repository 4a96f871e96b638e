/// A process of its own that uses a semaphore, for tests that kill it.
///   semaphore_worker rounds URL NAME ROUNDS RECORD
///     holds one or two permits ROUNDS times, and says so in the history RECORD; then it ends well
///   semaphore_worker wait URL NAME ROUNDS RECORD
///     the same with one permit, after it has said on the list "ready" that it is about to ask
#include <unistd.h>

#include <chrono>
#include <string>

#include "sluice/open.hpp"
#include "sluice/semaphore.hpp"
#include "support/history.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

int work(Semaphore& desks, int rounds, std::uint32_t most, const char* path) {
  test::Recorder record{path, "process-" + std::to_string(::getpid())};
  for (int round = 0; round < rounds; ++round) {
    const std::uint32_t permits = 1 + static_cast<std::uint32_t>(round) % most;
    auto held = desks.acquire(permits).get();
    record.acquire(permits);
    record.release(permits);
    if (round % 2) held.release().get();  // and by its destructor otherwise
  }
  return 0;
}

}  // namespace
}  // namespace sluice

int main(int count, char** words) {
  if (count != 6) return 64;
  using namespace std::chrono_literals;
  const std::string verb = words[1];
  const auto store = sluice::open(words[2]);
  sluice::Semaphore desks{*store, words[3], {.lease = 1s}};
  const bool waits = verb == "wait";
  if (waits) store->run({"RPUSH", "ready", "1"}).get();
  return sluice::work(desks, std::stoi(words[4]), waits ? 1 : 2, words[5]);
}
