#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "base/hash_slot.hpp"
#include "lock/chaos/deployment.hpp"
#include "lock/chaos/names.hpp"
#include "sluice/error.hpp"
#include "sluice/open.hpp"
#include "support/cluster_rig.hpp"
#include "support/partition.hpp"
#include "support/plain_client.hpp"
#include "support/process.hpp"
#include "topology/cluster_view.hpp"

namespace sluice::chaos {
namespace {

using namespace std::chrono_literals;
using Kind = Trouble::Kind;

/// Of the nodes and their clients.
struct Papers : test::Certificates {
  Papers() { renew(); }

  void renew() {
    std::string names = "IP:127.0.0.1";
    for (int node = 1; node <= 6; ++node) names += ",IP:" + test::Partition::place(node);
    make("server", names);
    make("client", "DNS:client");
  }
};

class Cluster final : public Deployment {
 public:
  Cluster(Stage& stage, bool has_network) : stage_(stage), has_network_(has_network) {}

  void set_up() override { set_permits(*open_calmly()); }

  std::vector<Deed> deeds() override {
    std::vector<Deed> deeds{
        {8, true, "failovers by hand", [this] { fail_over(); }},
        {6, true, "takeovers", [this] { take_over(); }},
        {5, true, "masters that refuse WAIT", [this] { refuse_wait(); }},
        {5, true, "killed masters", [this] { kill_master(); }},
        {5, true, "masters that stand still until they are replaced", [this] { stop_master(); }},
        {8, true, "short stops of a node", [this] { stop_briefly(); }},
        {8, true, "slots that move", [this] { move_slot(); }},
        {4, true, "redis-cli --cluster reshard", [this] { reshard(); }},
        {2, true, "masters that come back empty", [this] { empty_master(); }},
        {6, true, "killed clients", [this] { kill_clients(); }},
        {5, true, "certificates replaced", [this] { replace_certificates(); }},
    };
    if (!has_network_) return deeds;
    deeds.push_back({5, true, "masters cut off from the others", [this] { cut_off_master(); }});
    deeds.push_back({4, true, "masters cut off from all", [this] { cut_off_from_all(); }});
    deeds.push_back({3, true, "nodes out of reach", [this] { cut_off_from_clients(); }});
    return deeds;
  }

  /// Half of them by TLS.
  std::string url(std::size_t place) const override {
    if (place % 2 == 0) return rig_.url();
    return fmt::format("{}?tls_ca={}&tls_certificate={}&tls_key={}", rig_.secure_url(),
                       certificates_["ca.pem"], certificates_["client.pem"],
                       certificates_["client.key"]);
  }
  std::unique_ptr<Store> open_calmly() const override { return open(rig_.url()); }

  std::vector<std::uint16_t> masters() const override {
    std::vector<std::uint16_t> ports;
    for (const auto& [port, master] : view())
      if (!master.slots.empty()) ports.push_back(port);
    return ports;
  }

 private:
  /// What a node that answers says of all; empty: none does.
  std::map<std::uint16_t, topology::NodeView> view() const {
    std::map<std::uint16_t, topology::NodeView> nodes;
    for (std::size_t i = 0; i < rig_.size() && nodes.empty(); ++i) {
      const auto port = rig_.node(i).port();
      for (auto& node : view_of(port)) {
        const bool is_there = node.node.endpoint && node.node.health != topology::Health::failed;
        if (is_there) nodes.emplace(node.node.endpoint->port, std::move(node));
      }
    }
    return nodes;
  }

  static std::vector<topology::NodeView> view_of(std::uint16_t port) try {
    test::PlainClient client{port};
    client.patience = 200ms;
    const auto info = client.command({"CLUSTER", "INFO"});
    if (info.is_error() || info.as_text().find("cluster_state:ok") == std::string::npos) return {};
    return topology::parse_nodes(client.command({"CLUSTER", "NODES"}), {"127.0.0.1", port});
  } catch (const std::system_error&) {
    return {};  // it is killed, or stands still
  }

  /// All nodes know the same masters, of which each has a replica that follows it.
  bool is_whole() const {
    std::optional<std::map<std::uint16_t, std::vector<topology::SlotRange>>> first;
    for (std::size_t i = 0; i < rig_.size(); ++i) {
      std::map<std::uint16_t, std::vector<topology::SlotRange>> masters;
      std::map<std::string, int> replicas;
      for (const auto& node : view_of(rig_.node(i).port())) {
        if (!node.node.endpoint || node.node.health != topology::Health::online) return false;
        if (node.node.role == topology::Role::master)
          masters[node.node.endpoint->port] = node.slots;
        else
          ++replicas[node.node.master];
      }
      if (masters.empty() || replicas.size() != masters.size() || (first && *first != masters))
        return false;
      first = std::move(masters);
      const auto replication = tell(rig_.node(i).port(), {"INFO", "replication"}).as_text();
      if (replication.find("master_link_status:down") != std::string::npos) return false;
    }
    return true;
  }

  /// Ends the trouble when the cluster is whole again, and lets the next come.
  void heal(std::size_t trouble, Stamp since = stamp()) {
    constexpr Stamp patience = 60s;
    const bool is_late = stamp() > since + 5s;
    if (!is_whole() && stamp() < since + patience) {
      if (is_late) end_moves();
      return stage_.later(100ms, [this, trouble, since] { heal(trouble, since); });
    }
    restore_permits(trouble, since + patience);
  }

  void restore_permits(std::size_t trouble, Stamp until) try {
    set_permits(*open_calmly());
    stage_.end(trouble);
    stage_.servers_are_well();
  } catch (const Error& error) {
    if (stamp() >= until)
      throw std::runtime_error{fmt::format("{}\n{}", error.what(), what_nodes_say())};
    end_moves();
    stage_.later(100ms, [this, trouble, until] { restore_permits(trouble, until); });
  }

  /// For people, when the cluster does not become whole.
  std::string what_nodes_say() const {
    std::string all;
    for (std::size_t i = 0; i < rig_.size(); ++i) try {
        const auto port = rig_.node(i).port();
        all += fmt::format("{}: {}{}\n", port, tell(port, {"CLUSTER", "INFO"}).as_text(),
                           tell(port, {"CLUSTER", "NODES"}).as_text());
      } catch (const std::system_error& error) {
        all += fmt::format("{}\n", error.what());
      }
    return all;
  }

  /// One that has slots, or, where `replica`, one that has none. Null: there is none just now.
  test::RedisServer* any(bool replica) {
    std::vector<test::RedisServer*> all;
    const auto nodes = view();
    for (std::size_t i = 0; i < rig_.size(); ++i) {
      const auto node = nodes.find(rig_.node(i).port());
      if (node != nodes.end() && (node->second.node.role == topology::Role::replica) == replica)
        all.push_back(&rig_.node(i));
    }
    return all.empty() ? nullptr : all.at(stage_.up_to(all.size() - 1));
  }

  void fail_over() {
    auto* const replica = any(true);
    if (!replica) return stage_.servers_are_well();
    const auto trouble = stage_.begin(Kind::server, "a replica takes over, asked by hand");
    tell(replica->port(), {"CLUSTER", "FAILOVER"});
    stage_.later(50ms, [this, trouble] { heal(trouble); });
  }

  /// It asks nobody, so that its master goes on until it hears of it.
  void take_over() {
    auto* const replica = any(true);
    if (!replica) return stage_.servers_are_well();
    const auto trouble = stage_.begin(Kind::promotion, "a replica takes over without asking");
    tell(replica->port(), {"CLUSTER", "FAILOVER", "TAKEOVER"});
    stage_.later(50ms, [this, trouble] { heal(trouble); });
  }

  void refuse_wait() {
    auto* const master = any(false);
    if (!master) return stage_.servers_are_well();
    const auto trouble = stage_.begin(Kind::server, "a master refuses WAIT");
    allow_wait(master->port(), false);
    stage_.later(stage_.between(200ms, 3000ms), [this, master, trouble] {
      allow_wait(master->port(), true);
      heal(trouble);
    });
  }

  void kill_master() {
    auto* const master = any(false);
    if (!master) return stage_.servers_are_well();
    const auto trouble = stage_.begin(Kind::promotion, "a master is killed");
    master->kill();
    stage_.later(stage_.between(4000ms, 6000ms), [this, master, trouble] {
      master->start();
      heal(trouble);
    });
  }

  void stop_master() {
    auto* const master = any(false);
    if (!master) return stage_.servers_are_well();
    const auto trouble = stage_.begin(Kind::promotion, "a master stands still, and is replaced");
    master->stop();
    stage_.later(stage_.between(3000ms, 5000ms), [this, master, trouble] {
      master->cont();
      heal(trouble);
    });
  }

  void stop_briefly() {
    auto& node = rig_.node(stage_.up_to(rig_.size() - 1));
    const auto trouble = stage_.begin(Kind::server, "a node stands still");
    node.stop();
    stage_.later(stage_.between(20ms, 600ms), [this, &node, trouble] {
      node.cont();
      heal(trouble);
    });
  }

  /// A master that restarts before it is missed has nothing, and its replica follows it.
  void empty_master() {
    auto* const master = any(false);
    if (!master) return stage_.servers_are_well();
    const auto trouble = stage_.begin(Kind::snapshot, "a master restarts with nothing");
    master->kill();
    master->start();
    heal(trouble);
  }

  void kill_clients() {
    constexpr std::array<std::string_view, 2> types{"normal", "pubsub"};
    auto& node = rig_.node(stage_.up_to(rig_.size() - 1));
    const auto trouble = stage_.begin(Kind::server, "connections are killed by a node");
    tell(node.port(), {"CLIENT", "KILL", "TYPE", types.at(stage_.up_to(1))});
    heal(trouble);
  }

  /// Ours and the servers', while connections stand; those that come afterwards have the new ones.
  void replace_certificates() {
    const auto trouble = stage_.begin(Kind::server, "certificates are replaced");
    certificates_.renew();
    for (std::size_t i = 0; i < rig_.size(); ++i) {
      const auto port = rig_.node(i).port();
      tell(port, {"CONFIG", "SET", "tls-cert-file", certificates_["server.pem"], "tls-key-file",
                  certificates_["server.key"]});
      tell(port, {"CLIENT", "KILL", "TYPE", "normal"});
    }
    heal(trouble);
  }

  /// The number of a node that is a master.
  std::optional<std::size_t> any_master() {
    const auto* const master = any(false);
    for (std::size_t i = 0; master && i < rig_.size(); ++i)
      if (&rig_.node(i) == master) return i;
    return std::nullopt;
  }

  /// Clients reach both sides.
  void cut_off_master() {
    const auto master = any_master();
    if (!master) return stage_.servers_are_well();
    const auto trouble = stage_.begin(Kind::promotion, "a master is cut off from the others");
    cut_off(*master);
    join(trouble, stage_.between(200ms, 5000ms));
  }

  void cut_off_from_all() {
    const auto master = any_master();
    if (!master) return stage_.servers_are_well();
    const auto trouble = stage_.begin(Kind::promotion, "a master is cut off from all");
    cut_off(*master);
    test::Partition::cut(rig_.host(*master), rig_.host(*master));
    join(trouble, stage_.between(200ms, 5000ms));
  }

  void cut_off_from_clients() {
    const auto node = stage_.up_to(rig_.size() - 1);
    const auto trouble = stage_.begin(Kind::server, "clients do not reach a node");
    test::Partition::cut(rig_.host(node), rig_.host(node));
    join(trouble, stage_.between(100ms, 4000ms));
  }

  void cut_off(std::size_t node) {
    for (std::size_t i = 0; i < rig_.size(); ++i)
      if (i != node) test::Partition::cut(rig_.host(node), rig_.host(i));
  }

  void join(std::size_t trouble, Stamp time) {
    stage_.later(time, [this, trouble] {
      test::Partition::heal();
      heal(trouble);
    });
  }

  /// That of a lock, key by key, while it is used.
  void move_slot() {
    const auto& names = agreed_rules().names;
    const auto name =
        std::next(names.begin(), static_cast<std::ptrdiff_t>(stage_.up_to(names.size() - 1)))
            ->first;
    const auto slot = hash_slot(name);
    std::vector<std::uint16_t> others;
    std::optional<std::uint16_t> from;
    for (const auto& [port, node] : view()) {
      const auto has = [&](const auto& range) { return range.first <= slot && slot <= range.last; };
      if (std::ranges::any_of(node.slots, has))
        from = port;
      else if (!node.slots.empty())
        others.push_back(port);
    }
    if (!from || others.empty()) return stage_.servers_are_well();
    const auto to = others.at(stage_.up_to(others.size() - 1));
    const auto trouble = stage_.begin(Kind::server, "the slot of " + name + " moves");
    const auto number = std::to_string(slot);
    begin_move(number, *from, to);
    failed_steps_ = 0;
    stage_.later(stage_.between(0ms, 800ms), [this, trouble, number, from = *from, to] {
      move_keys(trouble, number, from, to);
    });
  }

  static void begin_move(const std::string& slot, std::uint16_t from, std::uint16_t to) {
    const auto id_from = tell(from, {"CLUSTER", "MYID"}).as_text();
    const auto id_to = tell(to, {"CLUSTER", "MYID"}).as_text();
    tell(to, {"CLUSTER", "SETSLOT", slot, "IMPORTING", id_from});
    tell(from, {"CLUSTER", "SETSLOT", slot, "MIGRATING", id_to});
  }

  /// The node, or the one that took its place and has what was moved there.
  std::uint16_t master_at(std::uint16_t port) const {
    const auto nodes = view();
    const auto found = nodes.find(port);
    if (found == nodes.end() || found->second.node.role == topology::Role::master) return port;
    for (const auto& [other, node] : nodes)
      if (node.node.id == found->second.node.master) return other;
    return port;
  }

  void move_keys(std::size_t trouble, const std::string& slot, std::uint16_t from,
                 std::uint16_t to) {
    const auto keys = tell(from, {"CLUSTER", "GETKEYSINSLOT", slot, "1"});
    if (keys.is_error()) {  // it is no master any more
      end_moves();
      return heal(trouble);
    }
    if (keys.as_items().empty()) {
      const auto id_to = tell(to, {"CLUSTER", "MYID"}).as_text();
      tell(to, {"CLUSTER", "SETSLOT", slot, "NODE", id_to});
      tell(from, {"CLUSTER", "SETSLOT", slot, "NODE", id_to});
      return heal(trouble);
    }
    const auto migrated = tell(from, {"MIGRATE", "127.0.0.1", std::to_string(tls_port_of(to)),
                                      keys.as_items().front().as_text(), "0", "5000", "REPLACE"});
    // What has gone is lost if the slot stays: it is moved to the end.
    if (migrated.is_error() && ++failed_steps_ > 100)
      throw std::runtime_error{"moving slot " + slot + ": " + migrated.as_text()};
    if (migrated.is_error() && migrated.as_text().find("MOVED ") != std::string::npos) {
      to = master_at(to);  // nobody waits for the slot there any more: a failover has seen to that
      begin_move(slot, from, to);
    }
    stage_.later(stage_.between(0ms, 100ms),
                 [this, trouble, slot, from, to] { move_keys(trouble, slot, from, to); });
  }

  /// The lowest slots of a master, at least up to one that is used. The program goes on to its end,
  /// as a slot of which it leaves half behind has keys in two places.
  void reshard() {
    std::vector<const topology::NodeView*> masters;
    const auto nodes = view();
    for (const auto& [port, node] : nodes)
      if (!node.slots.empty()) masters.push_back(&node);
    if (masters.size() < 2) return stage_.servers_are_well();
    std::swap(masters.front(), masters.at(stage_.up_to(masters.size() - 1)));
    const auto& from = *masters.front();
    const auto& to = *masters.at(1 + stage_.up_to(masters.size() - 2));
    const auto trouble = stage_.begin(Kind::server, "redis-cli moves slots");
    run_redis_cli(
        {"reshard", place_of(from), "--cluster-from", from.node.id, "--cluster-to", to.node.id,
         "--cluster-slots", std::to_string(slots_up_to_a_used_one(from) + stage_.up_to(20)),
         "--cluster-yes", "--cluster-replace"},
        [this, trouble] { heal(trouble); });
  }

  static std::size_t slots_up_to_a_used_one(const topology::NodeView& master) {
    constexpr std::size_t most = 1000;
    std::size_t slots = 0;
    const auto names = agreed_rules().names;
    for (const auto& range : master.slots)
      for (int slot = range.first; slot <= range.last && slots < most; ++slot) {
        ++slots;
        if (std::ranges::any_of(names,
                                [&](const auto& one) { return hash_slot(one.first) == slot; }))
          return slots;
      }
    return slots;
  }

  std::string place_of(const topology::NodeView& node) {
    return fmt::format("127.0.0.1:{}", tls_port_of(node.node.endpoint->port));
  }

  /// By TLS, as the nodes speak to each other. Where it fails, it is asked to mend what it left.
  void run_redis_cli(std::vector<std::string> words, const std::function<void()>& then) {
    std::vector<std::string> command{"redis-cli", "--tls",
                                     "--cacert",  certificates_["ca.pem"],
                                     "--cert",    certificates_["client.pem"],
                                     "--key",     certificates_["client.key"],
                                     "--cluster"};
    command.insert(command.end(), words.begin(), words.end());
    redis_cli_.emplace(
        command, test::ProcessOptions{
                     .directory = {}, .environment = {}, .output = certificates_["redis-cli.log"]});
    await_redis_cli(words.at(0) == "fix" ? "" : words.at(1), then);
  }

  /// `mend_at`: a node; empty: nothing is mended.
  void await_redis_cli(const std::string& mend_at, const std::function<void()>& then) {
    if (redis_cli_->running())
      return stage_.later(20ms, [=, this] { await_redis_cli(mend_at, then); });
    if (redis_cli_->wait() == 0 || mend_at.empty()) return then();
    stage_.later(500ms, [=, this] { run_redis_cli({"fix", mend_at, "--cluster-yes"}, then); });
  }

  /// The nodes speak TLS to each other.
  std::uint16_t tls_port_of(std::uint16_t port) {
    std::size_t node = 0;
    while (rig_.node(node).port() != port) ++node;
    return rig_.tls_port(node);
  }

  /// A move whose source was replaced in the middle leaves a node that waits for the slot for ever,
  /// and takes no other's word on it: "[1389-<-ID]" in what it says of itself.
  void end_moves() try {
    for (std::size_t i = 0; i < rig_.size(); ++i) {
      const auto port = rig_.node(i).port();
      const auto nodes = tell(port, {"CLUSTER", "NODES"}).as_text();
      for (auto at = nodes.find('['); at != nodes.npos; at = nodes.find('[', at + 1))
        tell(port,
             {"CLUSTER", "SETSLOT", nodes.substr(at + 1, nodes.find('-', at) - at - 1), "STABLE"});
    }
  } catch (const std::system_error&) {
    // one is down, and is asked again
  }

  Stage& stage_;
  const bool has_network_;
  Papers certificates_;
  mutable test::ClusterRig rig_{{.apart = has_network_, .certificates = &certificates_}};
  int failed_steps_ = 0;
  std::optional<test::Process> redis_cli_;
};

}  // namespace

std::unique_ptr<Deployment> make_cluster(Stage& stage, bool has_network) {
  return std::make_unique<Cluster>(stage, has_network);
}

}  // namespace sluice::chaos
