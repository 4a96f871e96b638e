#include "proxy/watch/latency_histogram.hpp"

#include <memory>

namespace sluice::proxy::watch {

void LatencyHistogram::add_to(LatencyCounts& counts) const {
  counts.buckets.resize(LatencyBuckets::count);
  for (std::size_t i = 0; i < LatencyBuckets::count; ++i)
    counts.buckets[i] += buckets_[i].load(std::memory_order_relaxed);
  counts.sum_us += sum_us_.load(std::memory_order_relaxed);
}

CommandLatencies::~CommandLatencies() {
  for (const auto& slot : slots_) delete slot.load(std::memory_order_relaxed);
}

LatencyHistogram* CommandLatencies::make(std::size_t command) {
  auto fresh = std::make_unique<LatencyHistogram>();
  slots_[command].store(fresh.get(), std::memory_order_release);
  return fresh.release();
}

}  // namespace sluice::proxy::watch
