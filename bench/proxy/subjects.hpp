/// The programs under comparison, each in front of the same two servers: ours, nutcracker, and the
/// floor.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "support/process.hpp"
#include "support/redis_server.hpp"
#include "support/temp_dir.hpp"

namespace sluice::bench {

struct Subject {
  std::string name;
  std::uint16_t port = 0;
  test::Process process;

  /// CPU time of all its threads so far, in microseconds (as the scheduler counts it).
  double cpu_us() const;
  /// Resident memory, in bytes.
  double memory() const;
};

/// A folder for their files, two redis-servers, and what stands in front of them.
class Subjects {
 public:
  /// `programs`: the folder of the build tree where `sluice` and `proxy_floor` are.
  explicit Subjects(std::filesystem::path build_tree);

  Subject sluice(int workers = 1);
  Subject nutcracker();
  Subject floor();

 private:
  std::string config(std::uint16_t port, const std::string& more) const;
  Subject start(std::string name, std::uint16_t port, const std::vector<std::string>& argv);

  std::filesystem::path build_tree_;
  test::TempDir directory_;
  test::RedisServer first_, second_;
  int started_ = 0;
};

}  // namespace sluice::bench
