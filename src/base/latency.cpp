#include "base/latency.hpp"

#include <cmath>
#include <numeric>

namespace sluice {

std::uint64_t LatencyCounts::count() const noexcept {
  return std::accumulate(buckets.begin(), buckets.end(), std::uint64_t{0});
}

std::chrono::microseconds LatencyCounts::quantile(double share) const noexcept {
  const std::uint64_t all = count();
  if (all == 0) return {};
  const auto wanted = std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(all))));
  std::uint64_t seen = 0;
  std::size_t bucket = 0;
  while (bucket + 1 < buckets.size() && (seen += buckets[bucket]) < wanted) ++bucket;
  return std::chrono::microseconds{LatencyBuckets::middle(bucket)};
}

std::chrono::microseconds LatencyCounts::mean() const noexcept {
  const std::uint64_t all = count();
  return std::chrono::microseconds{all == 0 ? 0 : sum_us / all};
}

void LatencyCounts::observe(std::chrono::nanoseconds time) {
  buckets.resize(LatencyBuckets::count);
  ++buckets[LatencyBuckets::of(LatencyBuckets::us_of(time))];
  sum_us += LatencyBuckets::us_of(time);
}

LatencyCounts& LatencyCounts::operator+=(const LatencyCounts& more) {
  if (buckets.size() < more.buckets.size()) buckets.resize(more.buckets.size());
  for (std::size_t i = 0; i < more.buckets.size(); ++i) buckets[i] += more.buckets[i];
  sum_us += more.sum_us;
  return *this;
}

LatencyCounts LatencyCounts::since(const LatencyCounts& before) const {
  LatencyCounts rest = *this;
  const auto take = [](std::uint64_t& from, std::uint64_t what) { from -= std::min(from, what); };
  for (std::size_t i = 0; i < std::min(buckets.size(), before.buckets.size()); ++i)
    take(rest.buckets[i], before.buckets[i]);
  take(rest.sum_us, before.sum_us);
  return rest;
}

}  // namespace sluice
