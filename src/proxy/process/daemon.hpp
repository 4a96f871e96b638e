/// What a daemon settles with its system: the background (-d), the pid file (-p), the limit of
/// descriptors.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "base/descriptor.hpp"
#include "proxy/config/config.hpp"

namespace sluice::proxy::process {

/// Going into the background. The process that was started waits until its child in the background
/// serves or has failed, and exits with 0 or 1; twemproxy's parent always exits with 0.
class Daemon {
 public:
  /// Forks twice; returns in the background process, in a session of its own, with its parent's
  /// stderr. Call it before there are threads, locks or sockets. Throws std::system_error.
  static Daemon start();

  /// The sockets are open and served: stdin, stdout and stderr become /dev/null, and the parent
  /// exits with 0. A Daemon that ends without it: the parent exits with 1.
  void ready();

 private:
  explicit Daemon(Descriptor ready) noexcept : ready_(std::move(ready)) {}
  Descriptor ready_;
};

/// The file that names the process. An old one is overwritten, as by twemproxy: its number proves
/// nothing, and two processes cannot serve the same ports anyway.
class PidFile {
 public:
  /// Throws Error{bad_argument} "opening pid file '...' failed: ...".
  explicit PidFile(std::string path);
  /// Removes it, unless it names another process: the successor in an upgrade.
  ~PidFile();
  PidFile(const PidFile&) = delete;
  PidFile& operator=(const PidFile&) = delete;

 private:
  std::string path_;
  std::string pid_;
};

/// What becomes of the files that the process may have open.
struct DescriptorPlan {
  std::size_t limit;        ///< all
  std::size_t connections;  ///< those with clients and servers
  std::size_t clients;      ///< so many of these with clients at most
};
/// Raises the soft limit to the hard one. By twemproxy's rule: each listening socket takes one, the
/// shared connections to servers theirs, and 32 are kept for the rest. Throws Error{bad_argument}
/// that says how many are needed when nothing is left for clients.
DescriptorPlan plan_descriptors(const Config& config);
std::string to_string(const DescriptorPlan& plan);

}  // namespace sluice::proxy::process
