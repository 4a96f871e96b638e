/// Local Bloom filters: nanoseconds of one thread's CPU for 10 million keys at 12 bits a key,
/// beside one random read of a cache line in memory of the same size.
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/cpu_time.hpp"
#include "bloom/memory.hpp"
#include "bloom/sizing.hpp"
#include "sluice/bloom_filter.hpp"
#include "support/report.hpp"

namespace {

using namespace sluice;
using namespace sluice::bench;

constexpr std::uint64_t keys = 10'000'000;
constexpr double bits_a_key = 12;
constexpr std::size_t batch = 1000;

BloomFilterOptions options_of(BloomKind kind) {
  // The rate that makes `blocked` as large as that; the others are a little smaller at the same.
  return {.kind = kind, .expected = keys, .error_rate = bloom::split_block_error(256 / bits_a_key)};
}

double nanoseconds(const std::function<void()>& work) {
  const auto begin = thread_cpu_time();
  work();
  const std::chrono::duration<double, std::nano> took = thread_cpu_time() - begin;
  return took.count() / static_cast<double>(keys);
}

/// Every second key that is asked for was added.
constexpr std::uint64_t added(std::uint64_t number) { return 2 * number; }
constexpr std::uint64_t asked(std::uint64_t number) { return number; }

double add(BloomFilter& filter) {
  return nanoseconds([&] {
    for (std::uint64_t i = 0; i < keys; ++i) filter.add(added(i));
  });
}

void require_about_half(std::uint64_t found) {
  if (found < keys / 2 || found > keys / 2 + keys / 20) throw std::runtime_error{"wrong answers"};
}

double contains(const BloomFilter& filter) {
  std::uint64_t found = 0;
  const double cost = nanoseconds([&] {
    for (std::uint64_t i = 0; i < keys; ++i) found += filter.contains(asked(i)) ? 1 : 0;
  });
  require_about_half(found);
  return cost;
}

using Batch = std::array<std::uint64_t, batch>;

double in_batches(std::uint64_t (*key)(std::uint64_t),
                  const std::function<void(const Batch&)>& work) {
  return nanoseconds([&] {
    Batch some;
    for (std::uint64_t i = 0; i < keys; i += batch) {
      for (std::size_t j = 0; j < batch; ++j) some[j] = key(i + j);
      work(some);
    }
  });
}

double add_many(BloomFilter& filter) {
  return in_batches(added, [&](const Batch& some) { filter.add(std::span{some}); });
}

double contains_many(const BloomFilter& filter) {
  std::uint64_t found = 0;
  const double cost = in_batches(asked, [&](const Batch& some) {
    for (const bool is_in : filter.contains(std::span{some})) found += is_in ? 1 : 0;
  });
  require_about_half(found);
  return cost;
}

/// A cheap mixer (Steele, Lea, Flood 2014).
std::uint64_t mixed(std::uint64_t number) {
  number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9;
  return (number ^ number >> 27) * 0x94d049bb133111eb;
}

/// Random reads of lines: each waits for the one before, or as many at once as the processor can.
double read_lines(const bloom::Memory& memory, bool one_after_another) {
  const auto words = memory.words();
  const std::uint64_t lines = words.size_bytes() / bloom::Memory::line;
  std::uint64_t sum = 0;
  const double cost = nanoseconds([&] {
    for (std::uint64_t i = 0; i < keys; ++i) {
      const auto from = mixed(one_after_another ? i + sum : i) >> 32;
      sum += words[(from * lines >> 32) * (bloom::Memory::line / sizeof(bloom::Word))];
    }
  });
  if (sum != 0) throw std::runtime_error{"the memory is not zero"};
  return cost;
}

Row row(const char* figure, double goal) {
  return {.figure = figure, .unit = "ns", .goal = goal, .at_most = true};
}

Row beside(const char* figure, const char* peer, double goal) {
  auto made = row(figure, goal);
  made.peer = peer;
  return made;
}

Row faster(const char* figure) {
  return {.figure = figure, .unit = "1/s", .peer = "guava", .goal = 4};
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  constexpr auto* reads = "random reads of lines";
  Row adds = row("blocked: add", 10);
  Row asks = row("blocked: contains", 10);
  Row adds_many = row("blocked: add, 1000 a call", 10);
  Row asks_many = row("blocked: contains, 1000 a call", 10);
  Row adds_beside = beside("blocked: add, 1000 a call", reads, 1.5);
  Row asks_beside = beside("blocked: contains, 1000 a call", reads, 1.5);
  Row one_beside = beside("blocked: contains", "reads of lines one after another", 1.5);
  Row adds_guava = faster("blocked against guava: add");
  Row asks_guava = faster("blocked against guava: contains");
  for (int round = 0; round < options.rounds; ++round) {
    BloomFilter blocked{options_of(BloomKind::blocked)};
    BloomFilter many{options_of(BloomKind::blocked)};
    BloomFilter guava{options_of(BloomKind::guava)};
    bloom::Memory memory{blocked.info().bytes};
    for (auto& word : memory.words()) word = 0;  // so that its pages are there

    adds.values.push_back(add(blocked));
    asks.values.push_back(contains(blocked));
    one_beside.values.push_back(asks.values.back());
    one_beside.peer_values.push_back(read_lines(memory, true));
    adds_many.values.push_back(add_many(many));
    asks_many.values.push_back(contains_many(many));
    const double read = read_lines(memory, false);
    for (auto* const beside : {&adds_beside, &asks_beside}) beside->peer_values.push_back(read);
    adds_beside.values.push_back(adds_many.values.back());
    asks_beside.values.push_back(asks_many.values.back());
    adds_guava.values.push_back(1e9 / adds.values.back());
    adds_guava.peer_values.push_back(1e9 / add(guava));
    asks_guava.values.push_back(1e9 / asks.values.back());
    asks_guava.peer_values.push_back(1e9 / contains(guava));
  }
  Report report{"bloom", options};
  for (auto* const each : {&adds, &asks, &adds_many, &asks_many, &adds_beside, &asks_beside,
                           &one_beside, &adds_guava, &asks_guava})
    report.add(std::move(*each));
  report.print();
}
