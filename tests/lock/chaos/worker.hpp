/// A process of its own that uses every primitive, on several threads, until SIGTERM.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace sluice::chaos {

struct WorkerOptions {
  std::string url;
  std::vector<std::string> nodes;  ///< of the QuorumLock
  std::filesystem::path journal;
  std::string who;  ///< "3.1"
  std::uint64_t seed = 0;
  int threads = 4;
  std::uint32_t replicas = 1;  ///< what durable locks demand
};

/// The exit code.
int work(const WorkerOptions& options);

}  // namespace sluice::chaos
