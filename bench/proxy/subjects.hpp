/// The programs under comparison, each in front of the same two servers: ours, nutcracker, and the
/// floor.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "support/cluster_rig.hpp"
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
  /// Before three plain servers, or before a cluster of three masters.
  Subject sluice_before_three();
  Subject sluice_before_cluster();
  Subject nutcracker();
  Subject floor();

 private:
  std::string config(std::uint16_t port, const std::string& more) const;
  Subject sluice_by(std::string name, std::uint16_t port, const std::string& text);
  Subject start(std::string name, std::uint16_t port, const std::vector<std::string>& argv);

  std::filesystem::path build_tree_;
  test::TempDir directory_;
  test::RedisServer first_, second_;
  std::optional<test::RedisServer> third_;
  std::optional<test::ClusterRig> cluster_;
  int started_ = 0;
};

}  // namespace sluice::bench
