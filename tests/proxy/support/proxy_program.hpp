/// The program itself as a proxy in front of servers, on free loopback ports; gone with its owner.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/plain_client.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace sluice::test {

struct ProgramOptions {
  std::vector<std::string> process;    ///< lines of the map `sluice:`; `admin:` is there already
  std::vector<std::string> arguments;  ///< beside -c, -o and -s
  bool as_nutcracker = false;          ///< through a link of that name
  int descriptors = 0;                 ///< that it may have; 0: as we
  std::string program = {};            ///< a sluice-proxy; empty: that of this tree
  std::vector<std::pair<std::string, std::string>> environment = {};  ///< added to ours
};

class ProxyProgram {
 public:
  /// A pool "alpha" that listens on port(), with these lines, as in Nutcracker.
  explicit ProxyProgram(std::vector<std::string> pool, ProgramOptions options = {});

  ~ProxyProgram();
  ProxyProgram(const ProxyProgram&) = delete;
  ProxyProgram& operator=(const ProxyProgram&) = delete;

  std::uint16_t port() const noexcept { return port_; }
  std::uint16_t stats_port() const noexcept { return stats_port_; }
  std::string admin() const { return (directory_ / "admin").string(); }
  std::string config() const { return (directory_ / "nutcracker.yml").string(); }
  std::string pid_file() const { return (directory_ / "pid").string(); }
  std::string log() const;
  std::filesystem::path log_file() const { return directory_ / "log"; }
  /// Of the one that serves now: that of a successor, after an upgrade. -1: nobody.
  pid_t serving_pid() const;
  /// Other lines of the map `sluice:`, with the next write().
  void set_process(std::vector<std::string> lines) { options_.process = std::move(lines); }
  Process& process() { return *process_; }
  const TempDir& directory() const noexcept { return directory_; }

  /// The file anew: the pool "alpha" of these lines, then `more` as it is.
  void write(const std::vector<std::string>& pool, const std::string& more = {});
  void write_text(const std::string& text);
  /// The reply of the administration to a command; an error is a Value.
  Value ask(std::initializer_list<std::string_view> words);
  /// What it says on its port of statistics.
  std::string statistics() const;

 private:
  bool has_started();
  bool try_start(const std::vector<std::string>& pool);

  TempDir directory_;
  ProgramOptions options_;
  std::uint16_t port_ = 0, stats_port_ = 0;
  std::optional<Process> process_;
};

/// The document on a port of statistics, nutcracker's or ours.
std::string statistics_at(std::uint16_t port);

}  // namespace sluice::test
