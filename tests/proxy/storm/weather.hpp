/// Longer trials by hand: the proxy is reloaded, upgraded and robbed of its servers while the storm
/// goes on; and what hostile clients cost the others.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "proxy/storm/stage.hpp"

namespace sluice::test {

/// What befalls the proxy between two rounds, drawn by lot.
class Chaos {
 public:
  explicit Chaos(Tongue& tongue) : tongue_(tongue) {}

  void act(Stage& stage, Random& random);
  /// All servers are back.
  void calm();
  /// "12 reloads, 3 upgrades ..."
  std::string told() const;

 private:
  void reload(ProxyProgram& program, Random& random);
  void upgrade(ProxyProgram& program);
  void kill(Random& random);
  void freeze(Random& random);

  Tongue& tongue_;
  int dead_ = -1;  // a server
  std::map<std::string, int> deeds_;
};

/// Sends `batches` to the proxy at `port` from so many connections until it is killed: the next one
/// of a connection follows after `pause`. Reads what comes.
[[noreturn]] void harass(std::uint16_t port, std::size_t clients, const std::vector<Batch>& batches,
                         std::chrono::milliseconds pause);

}  // namespace sluice::test
