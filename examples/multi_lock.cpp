/// Moves money between two accounts, both locked, whichever comes first.
///
///   multi_lock [URL]     default: embedded:
#include <fmt/format.h>

#include "sluice/lock.hpp"
#include "sluice/open.hpp"

using namespace std::chrono_literals;

int main(int count, char** words) {
  const auto store = sluice::open(count > 1 ? words[1] : "embedded:");
  sluice::MultiLock both{*store, {"account:7", "account:42"}};

  auto held = both.try_acquire(5s).get();
  if (!held) {
    fmt::print("others are at these accounts\n");
    return 0;
  }
  held->on_lost(
      [](sluice::LostCause cause) { fmt::print(stderr, "lost a lock: {}\n", to_string(cause)); });

  // Each account refuses a token smaller than it has seen.
  for (const auto& [name, token] : held->tokens())
    fmt::print("{} written under token {}\n", name, token.value);

  const auto outcome = held->release().get();
  fmt::print("{}\n", to_string(outcome.kind));
  return outcome.kind == sluice::ReleaseOutcome::Kind::released ? 0 : 1;
}
