/// How often each kind of local Bloom filter is wrong, and how many bits a key it takes for that:
/// a table for scripts/bloom_picture.
///   bloom_false_positives [KEYS]     default: 1000000
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>

#include "sluice/bloom_filter.hpp"

using namespace sluice;

int main(int count, char** words) {
  const std::int64_t keys = count > 1 ? std::atoll(words[1]) : 1'000'000;
  fmt::print("kind,bits_a_key,asked_rate,computed_rate,measured_rate\n");
  for (const auto kind :
       {BloomKind::blocked, BloomKind::guava, BloomKind::counting, BloomKind::scalable})
    for (const double rate : {0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001}) {
      BloomFilter filter{
          {.kind = kind, .expected = static_cast<std::uint64_t>(keys), .error_rate = rate}};
      for (std::int64_t i = 0; i < keys; ++i) filter.add(i);
      std::int64_t wrong = 0;
      const auto asked = 10 * keys;
      for (std::int64_t i = 1; i <= asked; ++i) wrong += filter.contains(-i) ? 1 : 0;
      const auto info = filter.info();
      fmt::print("{},{:.3f},{},{:.3g},{:.3g}\n", to_string(kind),
                 static_cast<double>(info.bytes * 8) / static_cast<double>(keys), rate,
                 info.error_rate, static_cast<double>(wrong) / static_cast<double>(asked));
    }
}
