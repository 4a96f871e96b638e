#include "support/cluster_rig.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "base/hash_slot.hpp"
#include "support/comes_true.hpp"
#include "support/free_port.hpp"
#include "support/partition.hpp"

namespace sluice::test {
namespace {

bool says(RedisServer& server, std::string_view section, std::string_view line) try {
  PlainClient client{server.port()};
  return client.command({"INFO", section}).as_text().find(line) != std::string::npos;
} catch (const std::system_error&) {
  return false;
}

void expect(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error{"the cluster of this test: " + what};
}

/// The port of the master of a slot; 0: none is known.
std::int64_t owner_by(PlainClient& client, int slot) {
  const auto slots = client.command({"CLUSTER", "SLOTS"});
  for (const auto& range : slots.as_items()) {
    const auto& items = range.as_items();
    if (slot >= items.at(0).as_integer() && slot <= items.at(1).as_integer())
      return items.at(2).as_items().at(1).as_integer();
  }
  return 0;
}

/// The config epoch of a node, as another one knows it.
std::string epoch_by(PlainClient& client, const std::string& id) {
  const auto nodes = "\n" + client.command({"CLUSTER", "NODES"}).as_text();
  std::istringstream line{nodes.substr(std::min(nodes.find("\n" + id), nodes.size()))};
  std::string word;
  for (int i = 0; i < 7; ++i) line >> word;
  return word;
}

void do_on(PlainClient& client, std::initializer_list<std::string_view> words) {
  const auto reply = client.command(words);
  expect(!reply.is_error(), to_string(reply));
}

}  // namespace

ClusterRig::ClusterRig() : ClusterRig(Options{}) {}

ClusterRig::ClusterRig(Options options) {
  const auto count = static_cast<std::size_t>(options.masters * (1 + options.replicas));
  slaves_ = static_cast<std::size_t>(options.replicas);
  is_apart_ = options.apart;
  for (std::size_t i = 0; i < count; ++i) {
    auto config = options.config;
    config.insert(config.end(), {"cluster-enabled yes", "cluster-config-file nodes.conf",
                                 "cluster-node-timeout 1000", "repl-ping-replica-period 1",
                                 "cluster-allow-replica-migration no",
                                 fmt::format("cluster-port {}", free_port())});
    if (options.own_config)
      for (auto& line : options.own_config(i)) config.push_back(std::move(line));
    if (is_apart_) {
      Partition::add_place(static_cast<int>(i) + 1);
      config.insert(config.end(), {"bind 127.0.0.1 " + host(i), "bind-source-addr " + host(i),
                                   "cluster-announce-ip " + host(i)});
    }
    if (options.certificates) {
      tls_ports_.push_back(free_port());
      std::ranges::move(options.certificates->redis(tls_ports_.back(), "yes"),
                        std::back_inserter(config));
      config.insert(config.end(), {"tls-cluster yes", "tls-replication yes"});
    }
    nodes_.push_back(std::make_unique<RedisServer>(std::move(config)));
  }
  create(options);
}

void ClusterRig::create(const Options& options) {
  const auto masters = static_cast<std::size_t>(options.masters);
  for (std::size_t i = 0; i < size(); ++i) {
    auto client = client_of(i);
    do_on(client, {"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
    if (i < masters)
      do_on(client, {"CLUSTER", "ADDSLOTSRANGE", std::to_string(16384 * i / masters),
                     std::to_string(16384 * (i + 1) / masters - 1)});
    if (i == 0) continue;
    auto first = client_of(0);
    const auto bus = client.command({"CONFIG", "GET", "cluster-port"}).as_items().at(1).as_text();
    do_on(first, {"CLUSTER", "MEET", host(i), std::to_string(node(i).port()), bus});
  }
  for (std::size_t i = masters; i < size(); ++i) {
    auto client = client_of(i);
    const auto id = id_of(i % masters);
    expect(comes_true([&] {
             return !client.command({"CLUSTER", "REPLICATE", id}).is_error();
           }),
           "a replica does not find its master");
  }
  // A replica without anything to copy is told of by nobody.
  for (std::size_t i = 0; i < masters; ++i) {
    auto client = client_of(i);
    do_on(client, {"FLUSHALL"});
  }
  expect(comes_true([&] { return is_whole(); }), "it does not become whole");
}

std::string ClusterRig::host(std::size_t number) const {
  return is_apart_ ? Partition::place(static_cast<int>(number) + 1) : "127.0.0.1";
}

std::string ClusterRig::url_of(std::string_view scheme,
                               const std::vector<std::uint16_t>& ports) const {
  std::string hosts;
  for (std::size_t i = 0; i < ports.size(); ++i)
    hosts += fmt::format("{}{}:{}", hosts.empty() ? "" : ",", host(i), ports[i]);
  return fmt::format("{}://{}", scheme, hosts);
}

std::string ClusterRig::url() const {
  std::vector<std::uint16_t> ports;
  for (const auto& node : nodes_) ports.push_back(node->port());
  return url_of("redis+cluster", ports);
}

std::string ClusterRig::secure_url() const { return url_of("rediss+cluster", tls_ports_); }

std::string ClusterRig::id_of(std::size_t number) {
  return client_of(number).command({"CLUSTER", "MYID"}).as_text();
}

std::size_t ClusterRig::master_of(const std::string& key) { return master_of_slot(hash_slot(key)); }

std::size_t ClusterRig::master_of_slot(int slot) {
  std::optional<std::size_t> owner;
  const auto is_known = [&] {
    for (std::size_t i = 0; i < size(); ++i) try {
        if (node(i).pid() < 0) continue;
        auto client = client_of(i);
        client.patience = std::chrono::seconds{1};
        if (client.command({"ROLE"}).as_items().at(0).as_text() != "master") continue;
        if (owner_by(client, slot) == node(i).port()) owner = i;
      } catch (const std::system_error&) {  // stopped, or gone
      }
    return owner.has_value();
  };
  expect(comes_true(is_known), "a slot has no master");
  return *owner;
}

std::size_t ClusterRig::replica_of(std::size_t master) {
  std::optional<std::size_t> replica;
  const auto id = id_of(master);
  auto client = client_of(master);
  const auto is_known = [&] {
    const auto replicas = client.command({"CLUSTER", "REPLICAS", id});
    for (std::size_t i = 0; i < size(); ++i)
      for (const auto& line : replicas.as_items())
        if (line.as_text().find(fmt::format(":{}@", node(i).port())) != std::string::npos)
          replica = i;
    return replica.has_value();
  };
  expect(comes_true(is_known), "a master has no replica");
  return *replica;
}

std::size_t ClusterRig::fail_over(std::size_t master) {
  const auto replica = replica_of(master);
  auto client = client_of(replica);
  const auto is_done = [&] {
    return says(node(replica), "replication", "role:master") &&
           says(node(master), "replication", "role:slave");
  };
  // The masters vote once in two node-timeouts for a replica of the same one: asked in vain, a
  // replica does not ask again.
  auto again = std::chrono::steady_clock::now();
  const auto comes_about = [&] {
    if (std::chrono::steady_clock::now() >= again) {
      client.command({"CLUSTER", "FAILOVER"});
      again = std::chrono::steady_clock::now() + std::chrono::seconds{1};
    }
    return is_done();
  };
  expect(comes_true(comes_about), "a replica does not become the master");
  return replica;
}

void ClusterRig::begin_move(int slot, std::size_t from, std::size_t to) {
  auto source = client_of(from);
  auto target = client_of(to);
  do_on(target, {"CLUSTER", "SETSLOT", std::to_string(slot), "IMPORTING", id_of(from)});
  do_on(source, {"CLUSTER", "SETSLOT", std::to_string(slot), "MIGRATING", id_of(to)});
}

void ClusterRig::move_keys(int slot, std::size_t from, std::size_t to) {
  auto source = client_of(from);
  const auto number = std::to_string(slot);
  const auto port = std::to_string(node(to).port());
  for (;;) {
    const auto keys = source.command({"CLUSTER", "GETKEYSINSLOT", number, "10"});
    if (keys.as_items().empty()) return;
    for (const auto& key : keys.as_items()) {
      Value reply;
      const auto is_done = [&] {  // a slow machine's cluster may be down for a while
        reply =
            source.command({"MIGRATE", "127.0.0.1", port, key.as_text(), "0", "5000", "REPLACE"});
        return !reply.is_error();
      };
      expect(comes_true(is_done), to_string(reply));
    }
  }
}

void ClusterRig::end_move(int slot, std::size_t from, std::size_t to) {
  const auto id = id_of(to);
  for (const auto number : {to, from}) {
    auto client = client_of(number);
    do_on(client, {"CLUSTER", "SETSLOT", std::to_string(slot), "NODE", id});
  }
  // Who moves it again before all have heard may take a config epoch that is another's, or keep one
  // that is too small.
  auto target = client_of(to);
  for (std::size_t i = 0; i < size(); ++i) {
    auto client = client_of(i);
    const auto has_heard = [&] {
      return owner_by(client, slot) == node(to).port() &&
             epoch_by(client, id) == epoch_by(target, id);
    };
    expect(comes_true(has_heard), "a node does not hear of a slot's new master");
  }
}

void ClusterRig::move_slot(int slot, std::size_t from, std::size_t to) {
  begin_move(slot, from, to);
  move_keys(slot, from, to);
  end_move(slot, from, to);
}

void ClusterRig::heal() {
  for (const auto& node : nodes_) {
    node->start();
    node->cont();
  }
  expect(comes_true([&] { return is_whole(); }), "it does not become whole again");
}

bool ClusterRig::agrees(std::size_t number) try {
  auto client = client_of(number);
  client.patience = std::chrono::seconds{1};
  if (client.command({"CLUSTER", "INFO"}).as_text().find("cluster_state:ok") == std::string::npos)
    return false;
  const auto nodes = client.command({"CLUSTER", "NODES"}).as_text();
  if (nodes.find("fail") != std::string::npos || nodes.find("handshake") != std::string::npos)
    return false;
  const auto slots = client.command({"CLUSTER", "SLOTS"});
  for (const auto& range : slots.as_items())
    if (range.as_items().size() != 3 + slaves_) return false;
  const auto role = client.command({"ROLE"});
  const auto& items = role.as_items();
  if (items.at(0).as_text() == "slave") return items.at(3).as_text() == "connected";
  return items.at(2).as_items().size() == slaves_;
} catch (const std::system_error&) {
  return false;
}

bool ClusterRig::is_whole() {
  for (std::size_t i = 0; i < size(); ++i)
    if (!agrees(i)) return false;
  return true;
}

}  // namespace sluice::test
