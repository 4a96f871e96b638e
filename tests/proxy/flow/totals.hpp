/// What a proxy under test has counted.
#pragma once

#include "proxy/support/proxy_under_test.hpp"

namespace sluice::test {

inline proxy::PoolTotals totals(ProxyUnderTest& proxy) {
  return proxy.proxy().registry().snapshot().pools.front().totals;
}

inline proxy::ServerTotals totals(ProxyUnderTest& proxy, std::size_t server) {
  return proxy.proxy().registry().snapshot().pools.front().servers.at(server).totals;
}

}  // namespace sluice::test
