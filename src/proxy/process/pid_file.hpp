/// The file that names the process, as nutcracker's -p. It is overwritten whatever it says, since
/// twemproxy does so and a number in a file proves nothing; that two do not serve the same ports,
/// the ports see to.
#pragma once

#include <string>

namespace sluice::proxy {

class PidFile {
 public:
  /// Throws Error{bad_argument} "opening pid file '...' failed: ...".
  explicit PidFile(std::string path);
  /// Removes it, unless it names another process by now: the successor in an upgrade.
  ~PidFile();
  PidFile(const PidFile&) = delete;
  PidFile& operator=(const PidFile&) = delete;

 private:
  std::string path_;
  std::string pid_;
};

}  // namespace sluice::proxy
