#include "support/sentinel_rig.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "support/comes_true.hpp"
#include "support/free_port.hpp"
#include "support/plain_client.hpp"

namespace sluice::test {
namespace {

std::filesystem::path written(const std::filesystem::path& path,
                              const std::vector<std::string>& lines) {
  std::ofstream file{path};
  for (const auto& line : lines) file << line << '\n';
  return path;
}

/// By which Sentinels know each other.
std::string id_of(std::uint16_t port) { return fmt::format("{:040x}", port); }

/// False: it is not there, or says another thing.
template <class Holds>
bool says(std::uint16_t port, std::initializer_list<std::string_view> command, Holds holds) try {
  return holds(PlainClient{port}.command(command));
} catch (const std::system_error&) {
  return false;
}

}  // namespace

SentinelRig::Sentinel::Sentinel(std::uint16_t port, const std::vector<std::string>& config)
    : port_(port),
      process_(
          {"redis-server", written(directory_ / "sentinel.conf", config).string(), "--sentinel"},
          ProcessOptions{.directory = directory_.path(),
                         .environment = {},
                         .output = directory_ / "out.log"}) {
  const auto listens = [&] {
    try {
      const PlainClient client{port};
      return true;
    } catch (const std::system_error&) {
      return false;
    }
  };
  if (!comes_true(listens)) throw std::runtime_error{"a Sentinel does not start"};
}

SentinelRig::SentinelRig(const Options& options) {
  auto of_master = options.server_config;
  of_master.insert(of_master.end(), options.master_config.begin(), options.master_config.end());
  servers_.push_back(std::make_unique<RedisServer>(of_master));
  const auto master = servers_.front()->port();
  auto of_replica = options.server_config;
  of_replica.push_back(fmt::format("replicaof 127.0.0.1 {}", master));
  for (std::size_t i = 0; i < options.replicas; ++i)
    servers_.push_back(std::make_unique<RedisServer>(of_replica));

  std::vector<std::uint16_t> ports(options.sentinels);
  for (auto& port : ports) port = free_port();
  for (const auto port : ports) {
    std::vector<std::string> config{
        fmt::format("port {}", port),
        "bind 127.0.0.1",
        fmt::format("sentinel myid {}", id_of(port)),
        fmt::format("sentinel monitor {} 127.0.0.1 {} {}", name, master, ports.size() / 2 + 1),
        fmt::format("sentinel down-after-milliseconds {} 1000", name),
        fmt::format("sentinel failover-timeout {} 10000", name),
        fmt::format("sentinel parallel-syncs {} 1", name)};
    for (const auto fellow : ports)
      if (fellow != port)
        config.push_back(
            fmt::format("sentinel known-sentinel {} 127.0.0.1 {} {}", name, fellow, id_of(fellow)));
    for (std::size_t i = 1; i < servers_.size(); ++i)
      config.push_back(
          fmt::format("sentinel known-replica {} 127.0.0.1 {}", name, servers_[i]->port()));
    config.insert(config.end(), options.sentinel_config.begin(), options.sentinel_config.end());
    sentinels_.push_back(std::make_unique<Sentinel>(port, config));
  }
  wait_until_ready();
}

void SentinelRig::wait_until_ready() {
  const auto is_linked = [](const Value& replicas) {
    return !replicas.is_error() && std::ranges::all_of(replicas.as_items(), [](const Value& one) {
      const auto text = to_string(one, 10'000);
      return text.find("disconnected") == std::string::npos &&
             text.find("s_down") == std::string::npos;
    });
  };
  const auto is_ready = [&](std::uint16_t port) {
    return says(port, {"SENTINEL", "CKQUORUM", name},
                [](const Value& reply) { return !reply.is_error(); }) &&
           says(port, {"SENTINEL", "REPLICAS", name}, is_linked);
  };
  for (std::size_t i = 1; i < servers_.size(); ++i)
    if (!comes_true([&] {
          return says(servers_[i]->port(), {"INFO", "replication"}, [](const Value& reply) {
            return reply.as_text().find("master_link_status:up") != std::string::npos;
          });
        }))
      throw std::runtime_error{"a replica does not follow"};
  for (const auto& sentinel : sentinels_)
    if (!comes_true([&] { return is_ready(sentinel->port()); }))
      throw std::runtime_error{"a Sentinel does not get ready"};
}

std::string SentinelRig::url(const std::vector<std::uint16_t>& ports) const {
  std::vector<std::string> hosts;
  for (const auto port : ports) hosts.push_back(fmt::format("127.0.0.1:{}", port));
  if (ports.empty())
    for (const auto& sentinel : sentinels_)
      hosts.push_back(fmt::format("127.0.0.1:{}", sentinel->port()));
  return fmt::format("redis+sentinel://{}/{}", fmt::join(hosts, ","), name);
}

void SentinelRig::fail_over(std::size_t sentinel) {
  // It wants to have heard of the replica a moment ago.
  const auto port = sentinels_.at(sentinel)->port();
  const auto is_begun = [](const Value& reply) { return !reply.is_error(); };
  if (!comes_true([&] { return says(port, {"SENTINEL", "FAILOVER", name}, is_begun); }))
    throw std::runtime_error{"the Sentinel does not fail over"};
}

void SentinelRig::kill_sentinels() {
  for (const auto& sentinel : sentinels_) sentinel->process().kill();
}

}  // namespace sluice::test
