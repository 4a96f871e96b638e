#include "storms.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "sluice/cache_guard.hpp"
#include "sluice/open.hpp"

namespace sluice::bench {
namespace {

using namespace std::chrono_literals;
using Guard = CacheGuard<std::string>;
using Clock = std::chrono::steady_clock;

constexpr auto bucket = 50ms;
constexpr std::size_t buckets = 60;  // 3 s
constexpr auto load_time = 100ms;

/// Loads begun, by time.
class Loads {
 public:
  std::string load() {
    const auto at = static_cast<std::size_t>((Clock::now() - begin_) / bucket);
    if (at < buckets) ++counts_[at];
    std::this_thread::sleep_for(load_time);
    return "value";
  }
  void print(const char* panel, const char* series) const {
    for (std::size_t i = 0; i < buckets; ++i)
      fmt::print("{},{},{},{}\n", panel, series, i * bucket.count(),
                 counts_[i].load() * 1000 / bucket.count());
  }
  bool is_over() const { return Clock::now() - begin_ >= buckets * bucket; }

 private:
  const Clock::time_point begin_ = Clock::now();
  std::array<std::atomic<int>, buckets> counts_{};
};

/// Readers that call for one of `keys` keys, each a hundred times a second.
template <class Read>
void run(const char* panel, const char* series, int readers, std::uint64_t keys, Read read) {
  Loads loads;
  {
    std::vector<std::jthread> crew;
    for (int i = 0; i < readers; ++i)
      crew.emplace_back([&] {
        while (!loads.is_over()) {
          read(std::to_string(random_below(keys)), loads);
          std::this_thread::sleep_for(std::chrono::microseconds{5'000 + random_below(10'000)});
        }
      });
  }
  loads.print(panel, series);
}

/// The cache that everybody writes first: GET, and on a miss load and SET with a TTL.
auto naive(Store& store, std::chrono::milliseconds ttl) {
  return [&store, ttl](const std::string& key, Loads& loads) {
    const std::string name = "naive:" + key;
    if (!store.run({"GET", name}).get().is_null()) return;
    const std::string value = loads.load();
    store.run({"SET", name, value, "PX", std::to_string(ttl.count())}).get();
  };
}

auto guarded(Guard& guard) {
  return [&guard](const std::string& key, Loads& loads) {
    (void)guard.get(key, [&loads] { return loads.load(); }).get();
  };
}

}  // namespace

void print_storms() {
  const auto store = open("embedded:");
  {  // one key that all read
    run("breakdown", "no guard", 100, 1, naive(*store, 1s));
    Guard lease{*store, "lease", {.ttl = 1s, .jitter = 0, .early = 0}};
    run("breakdown", "lease", 100, 1, guarded(lease));
    Guard early{*store, "early", {.ttl = 1s, .jitter = 0, .early = 1}};
    run("breakdown", "lease and early refresh", 100, 1, guarded(early));
  }
  {  // two hundred keys that are written together
    const auto warm = [](Guard& guard) {
      for (int key = 0; key < 200; ++key) guard.put(std::to_string(key), "value").get();
    };
    Guard together{*store, "together", {.ttl = 1s, .jitter = 0, .early = 0, .max_loads = 200}};
    warm(together);
    run("avalanche", "no jitter", 100, 200, guarded(together));
    Guard spread{*store, "spread", {.ttl = 1s, .jitter = 0.5, .early = 0, .max_loads = 200}};
    warm(spread);
    run("avalanche", "jitter 0.5", 100, 200, guarded(spread));
    Guard bulkhead{*store, "bulkhead", {.ttl = 1s, .jitter = 0, .early = 0, .max_loads = 4}};
    warm(bulkhead);
    run("avalanche", "bulkhead of 4", 100, 200, guarded(bulkhead));
  }
}

}  // namespace sluice::bench
