/// SharedBloomFilter: a bulk of 1000 against one contains a round trip, and a local copy.
#include <fmt/format.h>

#include "sluice/open.hpp"
#include "sluice/shared_bloom_filter.hpp"
#include "support/redis_server.hpp"
#include "support/report.hpp"

namespace {

using namespace sluice;
using namespace sluice::bench;

constexpr std::size_t bulk = 1000;
constexpr SharedBloomSize small{.expected = 100'000, .error_rate = 0.01};
constexpr SharedBloomSize large{.expected = 1'000'000, .error_rate = 0.01};

std::vector<std::string> texts(std::string_view prefix, std::size_t count) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(fmt::format("{}:{}", prefix, i));
  return all;
}

/// Half of its bits are set, as where a filter has as many keys as it is for.
void fill(SharedBloomFilter& filter, const SharedBloomSize& size) {
  filter.ensure_created(size).get();
  for (std::size_t at = 0; at < size.expected; at += 20'000) {
    const auto keys = texts(fmt::format("key:{}", at), 20'000);
    (void)filter.add(bloom_keys(keys)).get();
  }
}

double one_by_one(SharedBloomFilter& filter, const std::vector<std::string>& keys,
                  std::chrono::milliseconds each) {
  std::size_t at = 0;
  return rate(each, [&] {
    (void)filter.contains(keys[at++ % keys.size()]).get();
    return 1;
  });
}

double in_bulk(SharedBloomFilter& filter, const std::vector<std::string>& keys,
               std::chrono::milliseconds each) {
  const auto all = bloom_keys(keys);
  return rate(each, [&] { return filter.contains(all).get().size(); });
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  const test::RedisServer server;
  const auto store = open(server.url());
  SharedBloomFilter filter{*store, "bench"};
  SharedBloomFilter big{*store, "bench:large"};
  fill(filter, small);
  fill(big, large);
  const auto copy = big.local_copy({.refresh = std::chrono::hours{1}}).get();
  const auto absent = texts("absent", bulk);
  const auto present = texts("key:0", bulk);
  std::vector<std::string> both{absent.begin(), absent.begin() + bulk / 2};
  both.insert(both.end(), present.begin(), present.begin() + bulk / 2);

  constexpr auto peer = "one contains a round trip";
  Row some{.figure = "contains, 1000 keys at once, filter of 100,000",
           .unit = "keys/s",
           .peer = peer,
           .goal = 50};
  Row misses{.figure = "1000 absent keys at once, filter of 1,000,000",
             .unit = "keys/s",
             .peer = peer,
             .goal = 50};
  Row hits{.figure = "1000 present keys at once, filter of 1,000,000",
           .unit = "keys/s",
           .peer = peer,
           .goal = 50};
  Row added{.figure = "add, 1000 keys at once", .unit = "keys/s"};
  Row local{.figure = "contains of a local copy", .unit = "1/s", .goal = 5e6};
  const auto asked = bloom_keys(absent);
  for (int round = 0; round < options.rounds; ++round) {
    some.peer_values.push_back(one_by_one(filter, both, options.each));
    some.values.push_back(in_bulk(filter, both, options.each));
    misses.peer_values.push_back(one_by_one(big, absent, options.each));
    misses.values.push_back(in_bulk(big, absent, options.each));
    hits.peer_values.push_back(one_by_one(big, present, options.each));
    hits.values.push_back(in_bulk(big, present, options.each));
    added.values.push_back(
        rate(options.each, [&] { return big.add(bloom_keys(present)).get().size(); }));
    std::size_t there = 0;
    local.values.push_back(rate(options.each, [&] {
      for (const auto& key : asked) there += copy.contains(key) ? 1 : 0;
      return asked.size();
    }));
    if (there == ~std::size_t{0}) return 1;  // so that nothing is left out
  }
  Report report{"bloom_shared", options};
  for (auto* const row : {&some, &misses, &hits, &added, &local}) report.add(std::move(*row));
  report.print();
}
