/// An authority of the test, and certificates that it signs, made with the openssl program in a
/// folder that is gone with it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/temp_dir.hpp"

namespace sluice::test {

class Certificates {
 public:
  /// ca.pem, and with their keys server.pem for localhost and the addresses of this machine, and
  /// client.pem.
  Certificates();

  /// NAME.pem and NAME.key, in place of those of before. `names`: as in "DNS:localhost,IP:::1".
  /// `days` from now on; -1: it has ended.
  void make(const std::string& name, const std::string& names, int days = 60);
  std::string operator[](std::string_view file) const { return (folder_ / file).string(); }
  std::string folder() const { return folder_.str(); }
  /// Runs a line in the folder: its exit code, and what it has written.
  std::pair<int, std::string> shell(const std::string& line);

  /// Lines for a redis-server that speaks TLS on `port`.
  std::vector<std::string> redis(std::uint16_t port, const std::string& auth_clients = "optional",
                                 const std::string& name = "server") const;

 private:
  TempDir folder_;
  int lines_ = 0;  // that were run
};

}  // namespace sluice::test
