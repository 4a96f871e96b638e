/// SharedBloomFilter: a bulk of 1000 against one contains a round trip, and a local copy.
#include <fmt/format.h>

#include <algorithm>
#include <random>

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
constexpr SharedBloomSize huge{.expected = 10'000'000,
                               .error_rate = 0.01};  // its bits are not read

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

/// The same without the time that so many keys take: bytes by chance.
void fill_by_chance(Store& store, SharedBloomFilter& filter, const std::string& name,
                    const SharedBloomSize& size) {
  filter.ensure_created(size).get();
  std::mt19937_64 random{1};
  std::string bytes(1 << 20, '\0');
  const auto all = filter.info().get().links.front().bits / 8;
  for (std::uint64_t at = 0; at < all; at += bytes.size()) {
    bytes.resize(std::min<std::uint64_t>(bytes.size(), all - at));
    for (char& byte : bytes) byte = static_cast<char>(random());
    (void)store.run({"SETRANGE", name, fmt::to_string(at), bytes}).get();
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
  SharedBloomFilter vast{*store, "bench:huge"};
  fill_by_chance(*store, vast, "bench:huge", huge);
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
  Row script_misses{.figure = "1000 absent keys at once, filter of 10,000,000, by script",
                    .unit = "keys/s",
                    .peer = peer,
                    .goal = 50};
  Row script_hits{.figure = "1000 present keys at once, filter of 10,000,000, by script",
                  .unit = "keys/s",
                  .peer = peer,
                  .goal = 50};
  Row added{.figure = "add, 1000 keys at once", .unit = "keys/s"};
  Row local{.figure = "contains of a local copy", .unit = "1/s", .goal = 5e6};
  (void)vast.add(bloom_keys(present)).get();
  const auto asked = bloom_keys(absent);
  for (int round = 0; round < options.rounds; ++round) {
    some.peer_values.push_back(one_by_one(filter, both, options.each));
    some.values.push_back(in_bulk(filter, both, options.each));
    misses.peer_values.push_back(one_by_one(big, absent, options.each));
    misses.values.push_back(in_bulk(big, absent, options.each));
    hits.peer_values.push_back(one_by_one(big, present, options.each));
    hits.values.push_back(in_bulk(big, present, options.each));
    script_misses.peer_values.push_back(one_by_one(vast, absent, options.each));
    script_misses.values.push_back(in_bulk(vast, absent, options.each));
    script_hits.peer_values.push_back(one_by_one(vast, present, options.each));
    script_hits.values.push_back(in_bulk(vast, present, options.each));
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
  for (auto* const row : {&some, &misses, &hits, &script_misses, &script_hits, &added, &local})
    report.add(std::move(*row));
  report.print();
}
