/// A whole proxy inside the test: the text of a configuration goes in, clients connect to its port.
/// Gone with its owner.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/flow/proxy.hpp"
#include "sluice/clock.hpp"

namespace sluice::test {

/// All of a pool but where it listens, as Nutcracker takes it.
struct PoolLines {
  std::vector<std::string> lines;
  std::vector<std::string> others = {};  ///< of other pools, as the file has them
};

class ProxyUnderTest {
 public:
  /// One pool of Redis servers at these ports of 127.0.0.1, named "a", "b" ...; `settings`: further
  /// lines of it, each "name: value". `process`: lines of the map `sluice:`.
  explicit ProxyUnderTest(std::vector<std::uint16_t> servers,
                          std::vector<std::string> settings = {},
                          std::vector<std::string> process = {}, Clock& clock = system_clock());
  explicit ProxyUnderTest(const PoolLines& pool, std::vector<std::string> process = {},
                          Clock& clock = system_clock());
  ~ProxyUnderTest();

  std::uint16_t port() const noexcept { return port_; }
  proxy::Proxy& proxy() noexcept { return *proxy_; }
  /// Other servers and settings from now on, at the same port.
  void reload(std::vector<std::uint16_t> servers, std::vector<std::string> settings = {});
  void reload(const PoolLines& pool);
  /// Moves its clock, a VirtualClock. While that stands still nothing times out, however slow the
  /// machine is.
  void pass(std::chrono::milliseconds time);
  /// "PREFIX0", "PREFIX1" ...: the first whose home is the server number `home`.
  std::string key_at(std::size_t home, std::string_view prefix = "key") const;

 private:
  proxy::Config config(const PoolLines& pool) const;

  Clock& clock_;
  std::uint16_t port_;
  std::vector<std::string> process_;
  std::unique_ptr<proxy::Proxy> proxy_;
};

/// What it has counted: of its pool, and of a server of it.
inline auto totals(ProxyUnderTest& proxy) {
  return proxy.proxy().registry().snapshot().pools.front().totals;
}
inline auto totals(ProxyUnderTest& proxy, std::size_t server) {
  return proxy.proxy().registry().snapshot().pools.front().servers.at(server).totals;
}

}  // namespace sluice::test
