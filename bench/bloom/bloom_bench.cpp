/// Local Bloom filters: nanoseconds of one thread's CPU for 10 million keys at 12 bits a key,
/// beside one random read of a cache line in memory of the same size.
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
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

BloomFilterOptions options_of(BloomKind kind, BloomAdders adders) {
  // The rate that makes `blocked` as large as that; the others are a little smaller at the same.
  return {.kind = kind,
          .expected = keys,
          .error_rate = bloom::split_block_error(256 / bits_a_key),
          .adders = adders};
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
/// A template, so that the second kind does not wait for a condition on the sum.
template <bool one_after_another>
double read_lines(const bloom::Memory& memory) {
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

Row row(std::string figure, double goal) {
  return {.figure = std::move(figure), .unit = "ns", .goal = goal, .at_most = true};
}

Row beside(std::string figure, const char* peer, std::optional<double> goal) {
  auto made = row(std::move(figure), 0);
  made.peer = peer;
  made.goal = goal;
  return made;
}

Row faster(std::string figure) {
  return {.figure = std::move(figure), .unit = "1/s", .peer = "guava", .goal = 4};
}

constexpr auto* reads_in_turn = "reads of lines one after another";
constexpr auto* reads_at_once = "reads of lines, as many at once as can be";

/// Adds to filters that are made for many adders, or for one.
struct Adds {
  BloomAdders adders;
  std::string who;
  Row single = row("blocked: add" + who, 10);
  Row single_beside = beside("blocked: add" + who, reads_in_turn, 1.5);
  Row many = row("blocked: add, 1000 a call" + who, 10);
  Row many_beside = beside("blocked: add, 1000 a call" + who, reads_in_turn, 1.5);
  Row many_at_once = beside("blocked: add, 1000 a call" + who, reads_at_once, std::nullopt);
  Row guava = faster("blocked against guava: add" + who);

  void measure(double read_in_turn, double read_at_once) {
    BloomFilter one{options_of(BloomKind::blocked, adders)};
    BloomFilter bulk{options_of(BloomKind::blocked, adders)};
    BloomFilter peer{options_of(BloomKind::guava, adders)};
    single.values.push_back(add(one));
    single_beside.values.push_back(single.values.back());
    single_beside.peer_values.push_back(read_in_turn);
    many.values.push_back(add_many(bulk));
    many_beside.values.push_back(many.values.back());
    many_beside.peer_values.push_back(read_in_turn);
    many_at_once.values.push_back(many.values.back());
    many_at_once.peer_values.push_back(read_at_once);
    guava.values.push_back(1e9 / single.values.back());
    guava.peer_values.push_back(1e9 / add(peer));
  }
};

/// Questions, which are the same whoever adds.
struct Asks {
  Row single = row("blocked: contains", 10);
  Row single_beside = beside("blocked: contains", reads_in_turn, 1.5);
  Row many = row("blocked: contains, 1000 a call", 10);
  Row many_beside = beside("blocked: contains, 1000 a call", reads_in_turn, 1.5);
  Row many_at_once = beside("blocked: contains, 1000 a call", reads_at_once, std::nullopt);
  Row guava = faster("blocked against guava: contains");

  void measure(double read_in_turn, double read_at_once) {
    BloomFilter blocked{options_of(BloomKind::blocked, BloomAdders::one)};
    BloomFilter peer{options_of(BloomKind::guava, BloomAdders::one)};
    add_many(blocked);
    add(peer);
    single.values.push_back(contains(blocked));
    single_beside.values.push_back(single.values.back());
    single_beside.peer_values.push_back(read_in_turn);
    many.values.push_back(contains_many(blocked));
    many_beside.values.push_back(many.values.back());
    many_beside.peer_values.push_back(read_in_turn);
    many_at_once.values.push_back(many.values.back());
    many_at_once.peer_values.push_back(read_at_once);
    guava.values.push_back(1e9 / single.values.back());
    guava.peer_values.push_back(1e9 / contains(peer));
  }
};

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  Asks asks;
  Adds by_many{BloomAdders::many, ""};
  Adds by_one{BloomAdders::one, ", one adder"};
  for (int round = 0; round < options.rounds; ++round) {
    bloom::Memory memory{static_cast<std::uint64_t>(keys * bits_a_key / 8)};
    for (auto& word : memory.words()) word = 0;  // so that its pages are there
    const double in_turn = read_lines<true>(memory);
    const double at_once = read_lines<false>(memory);
    asks.measure(in_turn, at_once);
    by_many.measure(in_turn, at_once);
    by_one.measure(in_turn, at_once);
  }
  Report report{"bloom", options};
  const auto put = [&report](auto& rows) {
    for (auto* const each : {&rows.single, &rows.single_beside, &rows.many, &rows.many_beside,
                             &rows.many_at_once, &rows.guava})
      report.add(std::move(*each));
  };
  put(asks);
  put(by_many);
  put(by_one);
  report.print();
}
