/// Our proxy within the test's own process: one pool on a free loopback port, served by its own threads, gone with its
/// owner.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "proxy/flow/proxy.hpp"
#include "sluice/clock.hpp"

namespace sluice::test {

class ProxyUnderTest {
 public:
  /// A pool "alpha" that listens on port(). `lines`: the other directives and the servers, as Nutcracker takes them.
  /// `process`: those of the map `sluice` ("workers: 2").
  explicit ProxyUnderTest(std::vector<std::string> lines, std::vector<std::string> process = {});

  std::uint16_t port() const noexcept { return port_; }
  proxy::Proxy& proxy() noexcept { return *proxy_; }
  /// What is counted, of the pool and of one of its servers. Throws std::out_of_range for a name that it has not.
  proxy::PoolTotals totals();
  proxy::ServerTotals totals(std::string_view server);
  /// The same file with other lines.
  void reload(std::vector<std::string> lines);

 private:
  proxy::Config config(const std::vector<std::string>& lines) const;

  std::vector<std::string> process_;
  std::uint16_t port_ = 0;
  std::unique_ptr<proxy::Proxy> proxy_;
};

}  // namespace sluice::test
