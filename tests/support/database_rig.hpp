/// A real PostgreSQL or MariaDB for a test: on a free loopback port and a unix socket, in a fresh
/// folder, as a user without rights, gone with its owner. To make one takes a second or two: a
/// program starts each once, and every test takes a database of its own.
#pragma once

#include <csignal>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/certificates.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace sluice::test {

class DatabaseServer {
 public:
  virtual ~DatabaseServer() = default;
  DatabaseServer(const DatabaseServer&) = delete;
  DatabaseServer& operator=(const DatabaseServer&) = delete;

  /// Makes an empty database, and returns its name.
  std::string make_database();
  /// postgresql://sluice@127.0.0.1:PORT/DATABASE; with another port for one who listens between.
  std::string url(const std::string& database, std::optional<std::uint16_t> port = {}) const;
  /// The same for a user who has a password, by TCP alone: `shop`, `s3cret@:/`.
  std::string url_with_password(const std::string& database,
                                const std::string& password = "s3cret%40%3A%2F") const;
  /// What the database's own client prints for these statements. Throws std::runtime_error.
  virtual std::string sql(const std::string& database, const std::string& text) const = 0;

  std::uint16_t port() const noexcept { return port_; }
  virtual std::string socket() const = 0;  ///< what the setting `socket` of a URL takes
  /// The authority of the certificate that the server shows to those who ask for TLS.
  std::string authority() const { return certificates_["ca.pem"]; }
  pid_t pid() const noexcept { return process_->pid(); }
  std::string log() const;

  void kill();   ///< SIGKILL to it and to its children
  void start();  ///< after kill(); returns when it answers
  /// It and its children are there and do not answer: none of their threads runs any more.
  void stop();
  void cont() { signal(SIGCONT); }

 protected:
  DatabaseServer(std::string scheme, std::string user);

  virtual std::vector<std::string> command() const = 0;
  virtual bool answers() const = 0;
  /// Runs as the user without rights, and returns its exit code and what it has written.
  std::pair<int, std::string> run(const std::vector<std::string>& argv) const;
  std::vector<std::string> as_nobody(std::vector<std::string> argv) const;
  void copy_certificate();
  void signal(int number);

  TempDir folder_;
  Certificates certificates_;
  std::string scheme_;
  std::string user_;
  std::uint16_t port_ = 0;
  std::optional<Process> process_;
  int databases_ = 0;
  mutable int outputs_ = 0;
};

/// `settings`: as in "max_connections=10".
std::unique_ptr<DatabaseServer> start_postgresql(std::vector<std::string> settings = {});
/// `settings`: as in "--innodb-lock-wait-timeout=1".
std::unique_ptr<DatabaseServer> start_mariadb(std::vector<std::string> settings = {});

}  // namespace sluice::test
