/// Ids for the rows of a table, from however many programs.
///   customer_ids [URL]     default: embedded:
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <sluice/id.hpp>
#include <sluice/open.hpp>

int main(int count, char** words) {
  const auto store = sluice::open(count > 1 ? words[1] : "embedded:");
  sluice::IdWorker customers{*store, "customer-id"};

  for (int i = 0; i < 3; ++i) {
    const auto id = customers.next().get();
    const auto parts = sluice::IdWorker::parts(id);
    const auto issued_at = fmt::gmtime(parts.issued_at.time_since_epoch().count());
    fmt::print("{}: issued at {:%FT%TZ}, number {} of that day\n", id, issued_at, parts.sequence);
  }
}
