// The rates that filters of each kind have, from one key on: thousands of filters at each size.
// SLUICE_LONG=n: n times as many, and a table.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "bloom/shared/definition.hpp"
#include "bloom/shared/filter_bits.hpp"
#include "sluice/bloom_filter.hpp"

namespace sluice {
namespace {

/// As a shared filter has its bits.
class SharedForm {
 public:
  SharedForm(std::uint64_t keys, double rate)
      : bits_(bloom::Definition::made({.expected = keys, .error_rate = rate})) {}
  void add(std::uint64_t key) { bits_.add(hash_of(key)); }
  bool contains(std::uint64_t key) const { return bits_.contains(hash_of(key)); }

 private:
  static bloom::KeyHash hash_of(std::uint64_t key) {
    return bloom::hash_of(
        std::string_view{static_cast<const char*>(static_cast<const void*>(&key)), sizeof key});
  }
  bloom::FilterBits bits_;
};

/// The part of absent keys that filters with all their keys contain.
template <class Make>
double rate_of(const Make& make, std::uint64_t keys, double rate, int filters, int questions) {
  std::mt19937_64 random{keys * 1000 + static_cast<std::uint64_t>(1 / rate)};
  std::uint64_t wrong = 0;
  for (int i = 0; i < filters; ++i) {
    auto filter = make(keys, rate);
    for (std::uint64_t key = 0; key < keys; ++key) filter.add(random());
    for (int question = 0; question < questions; ++question) wrong += filter.contains(random());
  }
  return static_cast<double>(wrong) / filters / questions;
}

/// Sizes at which the hashes of Guava and Redisson do worst.
constexpr std::pair<std::uint64_t, double> worst[] = {{4, 0.001}, {9, 0.0015}, {5, 0.002}};

/// `small`: with n keys it may be wrong 1 + small / n times as often as ordered; see its header.
template <class Make>
void measure(const char* name, const Make& make, double small) {
  const auto* const many = std::getenv("SLUICE_LONG");
  const int filters = 50 * (many ? std::atoi(many) : 1), questions = 400;
  std::vector<std::pair<std::uint64_t, double>> sizes{std::begin(worst), std::end(worst)};
  for (const std::uint64_t keys : {1, 2, 3, 5, 10, 20, 50, 100, 200, 300})
    for (const double rate : {0.4, 0.35, 0.1, 0.03, 0.01, 0.001}) sizes.emplace_back(keys, rate);
  for (const auto& [keys, rate] : sizes) {
    const double measured = rate_of(make, keys, rate, filters, questions);
    const double allowed =
        rate * (1 + small / static_cast<double>(keys)) * (small > 0 && rate > 0.3 ? 1.06 : 1);
    if (many)
      fmt::print("{:8} {:4} keys at {:5}: {:.6f}, {:6.2f} times\n", name, keys, rate, measured,
                 measured / rate);
    EXPECT_LE(measured, allowed + 4 * std::sqrt(3 * allowed / filters / questions))
        << name << ", " << keys << " at " << rate;
  }
}

TEST(BloomRates, BC07_HoldFromOneKeyOnOrAreThoseOfTheHeader) {
  for (const auto kind :
       {BloomKind::blocked, BloomKind::guava, BloomKind::counting, BloomKind::scalable})
    measure(
        std::string{to_string(kind)}.c_str(),
        [kind](std::uint64_t keys, double rate) {
          return BloomFilter{
              {.kind = kind, .expected = keys, .error_rate = rate, .adders = BloomAdders::one}};
        },
        kind == BloomKind::guava ? 100 : 0);
  measure(
      "shared",
      [](std::uint64_t keys, double rate) {
        return SharedForm{keys, rate};
      },
      100);
}

TEST(BloomRates, BC07_InfoTellsTheRateOfASmallFilterOfGuava) {
  for (const auto& [keys, rate] : worst) {
    double told = 0, found = 0;
    for (int round = 0; round < 20; ++round) {
      BloomFilter filter{{.kind = BloomKind::guava, .expected = keys, .error_rate = rate}};
      for (std::uint64_t key = 0; key < keys; ++key)
        filter.add(fmt::format("{} of {}", key, round));
      told += filter.info().error_rate;
      constexpr int questions = 20'000;
      for (int i = 0; i < questions; ++i)
        found += filter.contains(fmt::format("absent {}", i)) ? 1.0 / questions : 0;
    }
    EXPECT_NEAR(told / found, 1, 0.2) << keys << " keys at " << rate;
  }
}

}  // namespace
}  // namespace sluice
