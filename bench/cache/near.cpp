#include "near.hpp"

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cache/near_cache.hpp"

namespace sluice::bench {
namespace {

constexpr int hits_a_call = 10'000;

/// Values of 200 bytes, asked for in an order that is no order.
class Filled {
 public:
  explicit Filled(std::size_t count) {
    cache_.open();
    for (std::size_t i = 0; i < count; ++i) {
      const auto& key = keys_.emplace_back("product:sku:" + std::to_string(i));
      cache_.fill(cache_.begin_fill(key, now_), key,
                  {std::make_shared<const std::string>(200, 'v')}, 200, SteadyTime::max());
    }
  }

  /// Nanoseconds a hit, the look at the clock included.
  double hit(std::chrono::milliseconds each, int threads) {
    const double hits = rate(each, threads, [this](int thread) {
      auto at = static_cast<std::size_t>(thread) * 7919;
      for (int i = 0; i < hits_a_call; ++i, at += 31)
        if (!cache_.find(keys_[at % keys_.size()], system_clock().steady()))
          throw std::runtime_error{"a value is gone"};
      return std::size_t{hits_a_call};
    });
    return 1e9 / hits;
  }

 private:
  const SteadyTime now_ = system_clock().steady();
  cache::NearCache cache_;
  std::vector<std::string> keys_;
};

}  // namespace

std::vector<Row> near_rows(const Options& options) {
  Row few{.figure = "near cache: a hit, one thread, 1000 values",
          .unit = "ns",
          .goal = 100,
          .at_most = true};
  Row many{.figure = "near cache: a hit, one thread, 100,000 values", .unit = "ns"};
  Row crowd{.figure = "near cache: a hit, 4 threads, 1000 values, of all", .unit = "ns"};
  Row one{.figure = "near cache: a hit, 4 threads, one value, of all", .unit = "ns"};
  Filled thousand{1000};
  Filled hundred_thousand{100'000};
  Filled single{1};
  for (int round = 0; round < options.rounds; ++round) {
    few.values.push_back(thousand.hit(options.each, 1));
    many.values.push_back(hundred_thousand.hit(options.each, 1));
    crowd.values.push_back(thousand.hit(options.each, 4));
    one.values.push_back(single.hit(options.each, 4));
  }
  return {few, many, crowd, one};
}

}  // namespace sluice::bench
