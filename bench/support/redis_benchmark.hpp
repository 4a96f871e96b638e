/// The peer: redis-benchmark, run as a program in the same round.
#pragma once

#include <string>
#include <vector>

namespace sluice::bench {

/// Requests a second that redis-benchmark reports for `arguments` (clients, pipeline, count, command) on `port`.
double redis_benchmark(int port, const std::vector<std::string>& arguments);

}  // namespace sluice::bench
