/// A real redis-server for a test: on a free loopback port (or a unix socket), in a fresh folder,
/// gone with its owner.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace sluice::test {

class RedisServer {
 public:
  enum class Address { port, unix_socket };

  /// `config`: lines as in redis.conf ("appendonly yes"). Without any it keeps nothing on disk.
  /// Returns when the server answers. Throws std::runtime_error with the end of its log if it does
  /// not.
  explicit RedisServer(std::vector<std::string> config = {}, Address address = Address::port);
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  std::uint16_t port() const noexcept { return port_; }  ///< 0 on a unix socket
  std::string socket_path() const;
  std::string url() const;  ///< redis://127.0.0.1:PORT or redis+unix:///path, without a password
  pid_t pid() const noexcept { return process_ ? process_->pid() : -1; }
  const TempDir& directory() const noexcept { return directory_; }
  std::string log() const;

  /// Ends it and starts it again at the same address. `keep_data`: what was in it is there again
  /// (by the append-only file if the configuration has one, else by a snapshot); otherwise it comes
  /// back empty.
  void restart(bool keep_data = true);
  /// SIGKILL; start() brings it back with what lies on its disk.
  void kill();
  void start();
  void stop();  ///< SIGSTOP: it is there and does not answer
  void cont();  ///< SIGCONT

 private:
  bool try_start();
  bool answers() const;
  void write_config() const;

  TempDir directory_;
  std::vector<std::string> config_;
  Address address_;
  std::uint16_t port_ = 0;
  std::optional<Process> process_;
};

}  // namespace sluice::test
