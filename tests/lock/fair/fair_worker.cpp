/// A process of its own that waits for a fair lock, for tests that stop and kill it.
///   fair_worker URL NAME LEASE_MS    when it is in it says so on the list "entered", and stays in
#include <unistd.h>

#include <string>

#include "sluice/fair_mutex.hpp"
#include "sluice/open.hpp"
#include "sluice/store.hpp"

int main(int count, char** words) {
  if (count != 4) return 64;
  const auto store = sluice::open(words[1]);
  const std::chrono::milliseconds lease{std::stoi(words[3])};
  sluice::FairMutex mutex{*store, words[2], {.lease = lease}};
  const auto held = mutex.acquire().get();
  store->run({"RPUSH", "entered", std::to_string(held.token().value)}).get();
  for (;;) ::pause();
}
