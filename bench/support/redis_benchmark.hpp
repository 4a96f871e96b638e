/// The peer: redis-benchmark, run as a program in the same round.
#pragma once

#include <string>
#include <vector>

namespace sluice::bench {

struct LoadFigures {
  double per_second = 0;
  double p50_ms = 0, p99_ms = 0;
};

/// What redis-benchmark reports for `arguments` (clients, pipeline, count, command) on `port`.
LoadFigures load(int port, const std::vector<std::string>& arguments);
/// Requests a second alone.
double redis_benchmark(int port, const std::vector<std::string>& arguments);

}  // namespace sluice::bench
