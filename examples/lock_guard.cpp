/// One of many instances closes the books, once a night.
///   lock_guard [URL]     default: embedded:
#include <fmt/format.h>

#include "sluice/lock.hpp"
#include "sluice/open.hpp"

using namespace std::chrono_literals;

/// Does a piece of the work. A real one hands the token to its database, which refuses a smaller
/// one than it has seen:
///     UPDATE books SET ..., token = :token WHERE token <= :token
static bool close_books(sluice::FencingToken token, int page) {
  fmt::print("page {} closed under token {}\n", page, token.value);
  return page < 3;
}

int main(int count, char** words) {
  const auto store = sluice::open(count > 1 ? words[1] : "embedded:");
  sluice::Mutex mutex{*store, "books:closing"};

  auto held = mutex.try_acquire(2s).get();
  if (!held) {
    fmt::print("another instance closes the books\n");
    return 0;
  }
  held->on_lost(
      [](sluice::LostCause cause) { fmt::print(stderr, "lost the lock: {}\n", to_string(cause)); });

  int page = 1;
  while (held->valid() && close_books(held->token(), page)) ++page;

  const auto outcome = held->release().get();
  fmt::print("{}\n", to_string(outcome.kind));
  return outcome.kind == sluice::ReleaseOutcome::Kind::released ? 0 : 1;
}
