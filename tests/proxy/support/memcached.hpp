/// A real memcached for a test: on a free loopback port, gone with its owner.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace sluice::test {

class Memcached {
 public:
  /// `arguments`: more of its command line ("-I", "2m"). Returns when it listens. Throws
  /// std::runtime_error with what it said if it does not.
  explicit Memcached(std::vector<std::string> arguments = {});

  std::uint16_t port() const noexcept { return port_; }
  std::string address() const;  ///< 127.0.0.1:PORT
  pid_t pid() const noexcept { return process_ ? process_->pid() : -1; }
  /// What it says: with -vv each line that it executes.
  std::filesystem::path output() const { return directory_ / "out.log"; }

  void kill();
  void start();  ///< again, at the same port and empty
  void stop();   ///< SIGSTOP
  void cont();   ///< SIGCONT

 private:
  bool try_start();

  TempDir directory_;
  std::vector<std::string> arguments_;
  std::uint16_t port_ = 0;
  std::optional<Process> process_;
};

}  // namespace sluice::test
