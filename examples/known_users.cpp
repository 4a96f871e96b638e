/// May this user exist? Asked at memory speed, of a filter that all processes share.
///   known_users [URL]     default: embedded:
#include <fmt/format.h>

#include <sluice/open.hpp>
#include <sluice/shared_bloom_filter.hpp>

int main(int count, char** words) {
  const auto store = sluice::open(count > 1 ? words[1] : "embedded:");
  sluice::SharedBloomFilter users{*store, "users"};
  users.ensure_created({.expected = 1'000'000, .error_rate = 0.01}).get();

  // When users are made: add before the database commits, so that no reader is told no.
  const std::string_view some[] = {"anna", "bert", "clara"};
  const auto fresh = users.add(some).get();  // one round trip, an answer for each
  fmt::print("clara is {}\n", fresh[2] ? "new" : "known, or looks like one who is");

  // In front of the database: a no is certain, and most of the noes cost nothing else.
  fmt::print("bert: {}\n", users.contains("bert").get() ? "ask the database" : "certainly not");
  fmt::print("zoe: {}\n", users.contains("zoe").get() ? "ask the database" : "certainly not");

  // The same without a round trip: a copy in this process that hears of new keys.
  const auto copy = users.local_copy().get();
  fmt::print("anna: {}\n", copy.contains("anna") ? "ask the database" : "certainly not");

  // Every night: a new filter from the table, in the place of the old one when it is whole.
  if (auto rebuild = users.try_rebuild({.expected = 2'000'000, .error_rate = 0.01}).get()) {
    rebuild->add(some).get();
    rebuild->finish().get();
  }
  const auto info = users.info().get();
  fmt::print("about {} keys, wrong for {:.1g} of the others\n", info.keys, info.error_rate_now);
}
