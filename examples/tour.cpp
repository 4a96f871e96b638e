/// A lock, a document number and an id, without any server.
///   tour [URL]     default: embedded:
#include <iostream>
#include <sluice/sluice.hpp>

using namespace std::chrono_literals;

int main(int count, char** words) {
  // "embedded:/var/lib/app" keeps it on disk; "redis://127.0.0.1:6379" shares it between machines.
  // Nothing else changes.
  const auto store = sluice::open(count > 1 ? words[1] : "embedded:");

  sluice::Mutex mutex{*store, "books:closing"};
  if (auto held = mutex.try_acquire(5s).get()) {
    // Whatever the lock protects can refuse a smaller token than it has seen: that stops a holder
    // that slept too long.
    std::cout << "holding the lock, token " << held->token().value << '\n';
  }  // released

  sluice::Series invoices{*store, "INV", {.zone = "Europe/Berlin"}};
  if (const auto number = invoices.next().get()) std::cout << "invoice " << number->text << '\n';

  sluice::IdWorker ids{*store, "customer"};
  std::cout << "customer " << ids.next().get() << '\n';
}
