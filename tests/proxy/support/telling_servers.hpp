/// Servers that answer each Redis request with their own number, so that a client behind a proxy
/// learns where a key went. All of them live in one thread; they are gone with their owner.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.hpp"
#include "support/temp_dir.hpp"

namespace sluice::test {

class TellingServers {
 public:
  /// Tries to listen on each: "host:0" is any free port; "/name" a unix socket in a fresh folder.
  /// One that another program has is left out.
  explicit TellingServers(const std::vector<std::string>& wanted);
  ~TellingServers();
  TellingServers(const TellingServers&) = delete;
  TellingServers& operator=(const TellingServers&) = delete;

  /// "host:port" or "/path": the place here is the number that it tells.
  const std::vector<std::string>& addresses() const noexcept { return addresses_; }

 private:
  void serve();

  TempDir directory_;
  std::vector<std::string> addresses_;
  std::vector<Descriptor> listeners_;
  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace sluice::test
