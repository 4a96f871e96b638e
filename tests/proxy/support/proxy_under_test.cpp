#include "proxy/support/proxy_under_test.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "proxy/config/read.hpp"
#include "support/redis_server.hpp"

namespace sluice::test {

ProxyUnderTest::ProxyUnderTest(std::vector<std::string> lines, std::vector<std::string> process)
    : process_(std::move(process)) {
  constexpr int tries = 5;  // another program may take the free port before it does
  for (int left = tries; !proxy_; --left) {
    port_ = free_port();
    try {
      proxy_ = std::make_unique<proxy::Proxy>(system_clock(), config(lines),
                                              proxy::default_mbuf_size);
    } catch (const std::system_error&) {
      if (left == 1) throw;
    }
  }
  proxy_->start();
}

proxy::Config ProxyUnderTest::config(const std::vector<std::string>& lines) const {
  std::string text;
  if (!process_.empty()) text += "sluice:\n";
  for (const auto& line : process_) text += "  " + line + '\n';
  text += "alpha:\n  listen: 127.0.0.1:" + std::to_string(port_) + '\n';
  for (const auto& line : lines) text += "  " + line + '\n';
  return proxy::read_config(text, "proxy_under_test.yml");
}

proxy::PoolTotals ProxyUnderTest::totals() {
  return proxy_->registry().snapshot().pools.at(0).totals;
}

proxy::ServerTotals ProxyUnderTest::totals(std::string_view server) {
  const auto snapshot = proxy_->registry().snapshot();
  const auto& servers = snapshot.pools.at(0).servers;
  const auto found = std::ranges::find(servers, server, &proxy::ServerFigures::name);
  if (found == servers.end()) throw std::out_of_range{"no server " + std::string{server}};
  return found->totals;
}

void ProxyUnderTest::reload(std::vector<std::string> lines) { proxy_->reload(config(lines)); }

}  // namespace sluice::test
