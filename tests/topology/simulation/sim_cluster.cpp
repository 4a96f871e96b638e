#include "topology/simulation/sim_cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/integer.hpp"

namespace sluice::topology::simulation {
namespace {

constexpr std::uint16_t first_port = 7000;

Value text(std::string_view bytes) { return Value::bulk_string(std::string{bytes}); }

std::uint64_t epoch_of(const auto& known, std::size_t node) {
  std::uint64_t epoch = 0;
  for (const auto& claim : known)
    if (claim.owner == node) epoch = std::max(epoch, claim.epoch);
  return epoch;
}

/// Ranges of slots of the blocks that `node` owns.
std::vector<SlotRange> ranges_of(const auto& known, std::size_t node) {
  std::vector<SlotRange> ranges;
  for (std::size_t block = 0; block < blocks; ++block) {
    if (known[block].owner != node) continue;
    const auto first = static_cast<std::uint16_t>(block * block_slots);
    const auto last = static_cast<std::uint16_t>(first + block_slots - 1);
    if (!ranges.empty() && ranges.back().last + 1 == first)
      ranges.back().last = last;
    else
      ranges.push_back({first, last});
  }
  return ranges;
}

}  // namespace

SimCluster::SimCluster(std::size_t masters, std::size_t replicas, bool full_coverage, Dice dice)
    : dice_(dice), full_coverage_(full_coverage) {
  Knowledge known(blocks);
  for (std::size_t block = 0; block < blocks; ++block) {
    const auto shard = block % masters;
    known[block] = {.owner = shard * (replicas + 1), .epoch = shard + 1};
  }
  for (shards_ = 0; shards_ < masters; ++shards_)
    for (std::size_t i = 0; i <= replicas; ++i) add_node(shards_, known);
}

std::size_t SimCluster::add_node(std::size_t shard, const Knowledge& known) {
  nodes_.push_back({.shard = shard, .known = known});
  return nodes_.size() - 1;
}

Endpoint SimCluster::endpoint(std::size_t node) {
  return {"10.0.0.1", static_cast<std::uint16_t>(first_port + node)};
}

std::size_t SimCluster::at(const Endpoint& endpoint) {
  return endpoint.host == "10.0.0.1" && endpoint.port >= first_port
             ? static_cast<std::size_t>(endpoint.port - first_port)
             : nobody;
}

std::string SimCluster::id(std::size_t node) { return fmt::format("{:040x}", node + 0xa0000); }

std::size_t SimCluster::one_of(const std::vector<std::size_t>& all) {
  return all.empty() ? nobody : all[dice_.below(all.size())];
}

std::uint64_t SimCluster::next_epoch() const {
  std::uint64_t last = 0;
  for (const auto& node : nodes_)
    for (const auto& claim : node.known) last = std::max(last, claim.epoch);
  return last + 1;
}

/// In truth.
std::vector<std::size_t> SimCluster::owners() const {
  std::vector<std::size_t> all;
  for (std::size_t block = 0; block < blocks; ++block) {
    const auto owner = true_owner(block);
    if (std::ranges::find(all, owner) == all.end()) all.push_back(owner);
  }
  return all;
}

std::vector<std::size_t> SimCluster::blocks_of(std::size_t node) const {
  std::vector<std::size_t> all;
  for (std::size_t block = 0; block < blocks; ++block)
    if (true_owner(block) == node) all.push_back(block);
  return all;
}

std::size_t SimCluster::true_owner(std::size_t block) const {
  Claim latest;
  for (const auto& node : nodes_)
    if (node.known[block].owner != nobody && node.known[block].epoch >= latest.epoch)
      latest = node.known[block];
  return latest.owner;
}

bool SimCluster::has_settled() const {
  const SimNode* first = nullptr;
  for (const auto& node : nodes_) {
    if (!node.is_member) continue;
    if (node.life != Life::well || !node.is_ok || node.gone) return false;
    if (!first) first = &node;
    if (node.known != first->known) return false;
  }
  return true;
}

void SimCluster::exchange(SimNode& one, SimNode& other) {
  for (std::size_t block = 0; block < blocks; ++block) {
    Claim& a = one.known[block];
    Claim& b = other.known[block];
    if (a.epoch < b.epoch)
      a = b;
    else
      b = a;
  }
}

void SimCluster::step(SteadyTime now) {
  constexpr int talks = 3;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const auto reaches = [&](std::size_t j) {
      return nodes_[j].is_member && nodes_[j].life == Life::well &&
             nodes_[j].side == nodes_[i].side;
    };
    if (!reaches(i)) continue;
    for (int talk = 0; talk < talks; ++talk)
      if (const auto j = dice_.below(nodes_.size()); reaches(j)) exchange(nodes_[i], nodes_[j]);
  }
  look_at_states(now);
  look_for_failovers(now);
}

void SimCluster::look_at_states(SteadyTime now) {
  const auto is_gone_long = [&](std::size_t node, auto time) {
    return nodes_[node].gone && *nodes_[node].gone + time <= now;
  };
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    auto& node = nodes_[i];
    if (is_sound(i))
      node.gone.reset();
    else if (!node.gone)
      node.gone = now;
    node.is_ok = !(node.side != 0 && is_gone_long(i, node_timeout));
    if (full_coverage_ && node.side == 0)
      for (const auto& claim : node.known)
        if (claim.owner != nobody && is_gone_long(claim.owner, node_timeout * 3 / 2))
          node.is_ok = false;
  }
}

void SimCluster::look_for_failovers(SteadyTime now) {
  for (const auto owner : owners()) {
    const auto& master = nodes_[owner];
    if (!master.gone || *master.gone + node_timeout * 2 > now) continue;
    std::vector<std::size_t> heirs;
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (nodes_[i].shard == master.shard && is_sound(i)) heirs.push_back(i);
    if (const auto heir = one_of(heirs); heir != nobody && dice_.chance(20)) promote(heir, owner);
  }
}

void SimCluster::promote(std::size_t node, std::size_t master) { give(blocks_of(master), node); }

/// The new owner knows it, and those nodes of its shard that it reaches.
void SimCluster::give(const std::vector<std::size_t>& given, std::size_t to) {
  const auto epoch = next_epoch();
  auto& known = nodes_[to].known;
  for (const auto block : given) known[block].owner = to;
  for (auto& claim : known)
    if (claim.owner == to) claim.epoch = epoch;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].shard == nodes_[to].shard && is_sound(i)) exchange(nodes_[to], nodes_[i]);
}

void SimCluster::strike_one(Life life, SteadyTime now) {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (is_sound(i)) all.push_back(i);
  if (all.size() <= nodes_.size() / 2) return;
  const auto masters = owners();
  const auto struck = one_of(dice_.chance(60) ? masters : all);
  if (!is_sound(struck)) return;
  nodes_[struck].life = life;
  nodes_[struck].gone = now;
}

void SimCluster::revive_one(SteadyTime now) {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].is_member && nodes_[i].life != Life::well) all.push_back(i);
  if (const auto revived = one_of(all); revived != nobody) nodes_[revived].life = Life::well;
  look_at_states(now);
}

void SimCluster::fail_over_one() {
  const auto master = one_of(owners());
  if (!is_sound(master)) return;
  std::vector<std::size_t> heirs;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (i != master && nodes_[i].shard == nodes_[master].shard && is_sound(i)) heirs.push_back(i);
  if (const auto heir = one_of(heirs); heir != nobody) {
    promote(heir, master);
    exchange(nodes_[heir], nodes_[master]);
  }
}

void SimCluster::move_block() {
  const auto to = one_of(owners());
  const auto block = dice_.below(blocks);
  const auto from = true_owner(block);
  if (!is_sound(to) || !is_sound(from) || to == from) return;
  exchange(nodes_[to], nodes_[from]);
  give({block}, to);
  exchange(nodes_[to], nodes_[from]);
}

void SimCluster::add_shard() {
  const auto from = one_of(owners());
  if (!is_sound(from) || nodes_.size() > 1000) return;
  const auto master = add_node(shards_, nodes_[from].known);
  add_node(shards_, nodes_[from].known);
  ++shards_;
  auto given = blocks_of(from);
  given.resize((given.size() + 1) / 2);
  give(given, master);
  exchange(nodes_[master], nodes_[from]);
}

void SimCluster::remove_shard() {
  const auto all = owners();
  const auto from = one_of(all);
  const auto to = one_of(all);
  if (all.size() <= 3 || !is_sound(to) || !is_sound(from) || nodes_[to].shard == nodes_[from].shard)
    return;
  exchange(nodes_[to], nodes_[from]);
  give(blocks_of(from), to);
  for (auto& node : nodes_)
    if (node.shard == nodes_[from].shard) {
      node.is_member = false;
      node.life = Life::dead;
    }
}

/// Fewer than half of the masters, with some other nodes, are cut off.
void SimCluster::split(SteadyTime now) {
  auto left = (owners().size() - 1) / 2;
  for (const auto owner : owners())
    if (left > 0 && dice_.chance(50)) {
      nodes_[owner].side = 1;
      --left;
    }
  const auto masters = owners();
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (dice_.chance(20) && std::ranges::find(masters, i) == masters.end()) nodes_[i].side = 1;
  look_at_states(now);
}

void SimCluster::heal(SteadyTime now) {
  for (auto& node : nodes_) {
    node.side = 0;
    if (node.is_member) node.life = Life::well;
  }
  look_at_states(now);
}

/// The owner in its shard; itself where that shard owns nothing.
std::size_t SimCluster::master_of(const Knowledge& known, std::size_t node) const {
  std::size_t master = node;
  for (const auto& claim : known) {
    if (claim.owner == node) return node;
    if (claim.owner != nobody && nodes_[claim.owner].shard == nodes_[node].shard)
      master = claim.owner;
  }
  return master;
}

std::string SimCluster::nodes_text(std::size_t self) const {
  const auto& known = nodes_[self].known;
  std::string all;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].is_member) continue;
    const auto master = master_of(known, i);
    all +=
        fmt::format("{} {}:{}@17000 {}{}{} {} 0 0 {} connected", id(i), endpoint(i).host,
                    endpoint(i).port, i == self ? "myself," : "", master == i ? "master" : "slave",
                    nodes_[i].gone && i != self ? ",fail?" : "", master == i ? "-" : id(master),
                    epoch_of(known, master));
    for (const auto& [first, last] : ranges_of(known, i)) all += fmt::format(" {}-{}", first, last);
    all += '\n';
  }
  return all;
}

Value SimCluster::shards_reply(std::size_t self) const {
  const auto& known = nodes_[self].known;
  std::map<std::size_t, Value::Items> shards;  // by master
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].is_member) continue;
    const auto master = master_of(known, i);
    shards[master].push_back(Value::aggregate(
        Value::Type::map,
        {text("id"), text(id(i)), text("port"), Value::integer(endpoint(i).port), text("ip"),
         text(endpoint(i).host), text("endpoint"), text(endpoint(i).host), text("role"),
         text(master == i ? "master" : "replica"), text("replication-offset"),
         Value::integer(static_cast<std::int64_t>(i)), text("health"), text("online")}));
  }
  Value::Items all;
  for (auto& [master, nodes] : shards) {
    Value::Items slots;
    for (const auto& [first, last] : ranges_of(known, master)) {
      slots.push_back(Value::integer(first));
      slots.push_back(Value::integer(last));
    }
    all.push_back(
        Value::aggregate(Value::Type::map, {text("slots"), Value::array(std::move(slots)),
                                            text("nodes"), Value::array(std::move(nodes))}));
  }
  return Value::array(std::move(all));
}

Value SimCluster::slots_reply(std::size_t self) const {
  const auto& known = nodes_[self].known;
  const auto node = [](std::size_t i) {
    return Value::array(
        {text(endpoint(i).host), Value::integer(endpoint(i).port), text(id(i)), Value::array({})});
  };
  Value::Items all;
  for (std::size_t master = 0; master < nodes_.size(); ++master)
    for (const auto& [first, last] : ranges_of(known, master)) {
      Value::Items range{Value::integer(first), Value::integer(last), node(master)};
      for (std::size_t i = 0; i < nodes_.size(); ++i)
        if (i != master && nodes_[i].is_member && master_of(known, i) == master)
          range.push_back(node(i));
      all.push_back(Value::array(std::move(range)));
    }
  return Value::array(std::move(all));
}

std::vector<Value> SimCluster::replies(std::size_t node, Form form) const {
  if (life(node) == Life::blank || life(node) == Life::foreign) {
    const bool is_blank = life(node) == Life::blank;
    return {text(fmt::format("{:040x} {}:{}@17000 myself,master - 0 0 {} connected{}\n",
                             0xf0000 + node, endpoint(node).host, endpoint(node).port,
                             is_blank ? 0 : 1'000, is_blank ? "" : " 0-16383")),
            Value::error("ERR Unknown subcommand"),
            text(fmt::format("cluster_state:{}\r\ncluster_current_epoch:1000\r\n",
                             is_blank ? "fail" : "ok"))};
  }
  return {text(nodes_text(node)), form == Form::shards ? shards_reply(node) : slots_reply(node),
          text(fmt::format("cluster_state:{}\r\ncluster_current_epoch:{}\r\n",
                           nodes_[node].is_ok ? "ok" : "fail", next_epoch() - 1))};
}

}  // namespace sluice::topology::simulation
