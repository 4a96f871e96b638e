/// Seats that are reserved here and given back somewhere else, by the name of the permit.
///   permit_tickets [URL]     default: embedded:
#include <fmt/format.h>

#include "sluice/open.hpp"
#include "sluice/permit_semaphore.hpp"

using namespace std::chrono_literals;

/// The program that takes reservations: a seat is kept for a quarter of an hour.
static std::string reserve(sluice::Store& store) {
  sluice::PermitSemaphore seats{store, "seats"};
  seats.try_set_permits(2).get();
  const auto seat = seats.take(15min).get();
  return seat ? seat->text() : std::string{};
}

/// The program that hears of cancellations.
static bool cancel(sluice::Store& store, const std::string& ticket) {
  sluice::PermitSemaphore seats{store, "seats"};
  const auto seat = sluice::PermitId::parse(ticket);
  return seat && seats.release(*seat).get();
}

int main(int count, char** words) {
  const auto store = sluice::open(count > 1 ? words[1] : "embedded:");
  const std::string ticket = reserve(*store);
  if (ticket.empty()) {
    fmt::print("no seat is left\n");
    return 0;
  }
  fmt::print("reserved until a quarter of an hour from now: ticket {}\n", ticket);
  fmt::print("cancelled: {}\n", cancel(*store, ticket));
  fmt::print("cancelled again: {}\n", cancel(*store, ticket));
  return 0;
}
