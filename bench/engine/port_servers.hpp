/// The servers under comparison: the engine at a port, and redis-server.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/plain_client.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace sluice::bench {

enum class Kind { engine, redis };

/// Whether there is a log, which the operating system writes to the disk when it likes.
enum class Log { none, never_synced };

/// A server of its own, on a free port and a unix socket, gone with its owner.
class PortServer {
 public:
  explicit PortServer(Kind kind, Log log = Log::none);
  /// The folder is another's, and is loaded: returns when the server answers.
  PortServer(Kind kind, const std::string& folder);

  std::uint16_t port() const noexcept { return port_; }
  std::string socket() const { return folder_.str() + "/s"; }
  test::PlainClient client() const { return test::PlainClient{port_}; }
  /// What it has cost so far: time of the processor, and bytes.
  double cpu_us() const;
  double memory() const;

 private:
  void start(std::vector<std::string> argv);

  test::TempDir folder_;
  std::uint16_t port_;
  std::optional<test::Process> process_;
};

}  // namespace sluice::bench
