#include "proxy/support/proxy_under_test.hpp"

#include <fmt/format.h>

#include <system_error>

#include "proxy/config/read.hpp"
#include "sluice/error.hpp"
#include "support/free_port.hpp"
#include "support/plain_client.hpp"

namespace sluice::test {
namespace {

std::vector<std::string> lines_of(const std::vector<std::uint16_t>& servers,
                                  std::vector<std::string> lines) {
  lines.insert(lines.begin(), "redis: true");
  lines.emplace_back("servers:");
  for (std::size_t i = 0; i < servers.size(); ++i)
    lines.push_back(fmt::format(" - 127.0.0.1:{}:1 {}", servers[i], static_cast<char>('a' + i)));
  return lines;
}

}  // namespace

ProxyUnderTest::ProxyUnderTest(std::vector<std::uint16_t> servers,
                               std::vector<std::string> settings, std::vector<std::string> process,
                               Clock& clock)
    : ProxyUnderTest(PoolLines{lines_of(servers, std::move(settings))}, std::move(process), clock) {
}

ProxyUnderTest::ProxyUnderTest(const PoolLines& pool, std::vector<std::string> process,
                               Clock& clock)
    : clock_(clock), process_(std::move(process)) {
  for (int tries = 0; !proxy_; ++tries) {
    port_ = free_port();
    try {
      proxy_ = std::make_unique<proxy::Proxy>(clock, config(pool), proxy::default_mbuf_size);
    } catch (const std::system_error&) {
      if (tries == 10) throw;  // else another program has taken the port
    }
  }
  proxy_->start();
}

ProxyUnderTest::~ProxyUnderTest() = default;

proxy::Config ProxyUnderTest::config(const PoolLines& pool) const {
  std::string text = fmt::format("under_test:\n  listen: 127.0.0.1:{}\n", port_);
  for (const auto& line : pool.lines) text += fmt::format("  {}\n", line);
  for (const auto& line : pool.others) text += line + '\n';
  if (!process_.empty()) text += "sluice:\n";
  for (const auto& line : process_) text += fmt::format("  {}\n", line);
  return proxy::config::read(text, "under_test.yml");
}

void ProxyUnderTest::pass(std::chrono::milliseconds time) {
  dynamic_cast<VirtualClock&>(clock_).advance(time);
  const PlainClient wakes_it{port_};
}

void ProxyUnderTest::reload(std::vector<std::uint16_t> servers, std::vector<std::string> settings) {
  reload(PoolLines{lines_of(servers, std::move(settings))});
}

void ProxyUnderTest::reload(const PoolLines& pool) {
  static_cast<void>(proxy_->reload(config(pool)));
}

std::string ProxyUnderTest::key_at(std::size_t home, std::string_view prefix) const {
  const auto homes = proxy::make_homes(proxy_->config().pools.front());
  for (int i = 0;; ++i) {
    auto key = fmt::format("{}{}", prefix, i);
    if (homes.of(key, 0) == home) return key;
  }
}

}  // namespace sluice::test
