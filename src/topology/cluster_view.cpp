#include "topology/cluster_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/hash_slot.hpp"
#include "base/integer.hpp"

namespace sluice::topology {
namespace {

constexpr std::size_t longest_id = 64;

[[noreturn]] void refuse_view(const std::string& why) { throw Error{Errc::protocol, why}; }

/// Calls `parse`. What it throws says who has answered what.
template <class Parse>
auto told_by(const Endpoint& answerer, std::string_view command, Parse parse) {
  try {
    return parse();
  } catch (const Error& error) {
    throw Error{error.errc(), fmt::format("{} gives no map of its cluster in {}: {}",
                                          to_string(answerer), command, error.message())};
  }
}

/// Cuts the first part of `rest`, up to `mark` or its end.
std::string_view next_part(std::string_view& rest, char mark) {
  const auto end = std::min(rest.find(mark), rest.size());
  const auto part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

std::string told_id(std::string_view id) {
  if (id.empty() || id.size() > longest_id ||
      !std::ranges::all_of(id, [](char c) { return c > ' ' && c < 0x7f; }))
    refuse_view("a node has an id that is none");
  return std::string{id};
}

SlotRange told_range(std::int64_t first, std::int64_t last) {
  if (first < 0 || last < first || last >= hash_slots)
    refuse_view(fmt::format("{}-{} are no slots", first, last));
  return {static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(last)};
}

SlotRange parse_range(std::string_view text) {
  const auto first = next_part(text, '-');
  const auto from = parse_integer<std::int64_t>(first);
  const auto to = text.empty() ? from : parse_integer<std::int64_t>(text);
  if (!from || !to) refuse_view(fmt::format("'{}' is no range of slots", first.substr(0, 20)));
  return told_range(*from, *to);
}

/// The nodes of a view while it is made: each id once, each slot of one owner.
class Draft {
 public:
  NodeView& add(NodeView node) {
    if (nodes_.size() >= most_nodes)
      refuse_view(fmt::format("it has more than {} nodes", most_nodes));
    if (!places_.emplace(node.node.id, nodes_.size()).second)
      refuse_view(fmt::format("the node {} is there twice", node.node.id));
    return nodes_.emplace_back(std::move(node));
  }

  NodeView* find(const std::string& id) {
    const auto place = places_.find(id);
    return place == places_.end() ? nullptr : &nodes_[place->second];
  }

  void own(NodeView& owner, SlotRange range) {
    if (owner.node.role == Role::replica)
      refuse_view(fmt::format("the replica {} has slots", owner.node.id));
    for (std::size_t slot = range.first; slot <= range.last; ++slot) {
      if (owned_[slot]) refuse_view(fmt::format("slot {} has two owners", slot));
      owned_.set(slot);
    }
    owner.slots.push_back(range);
  }

  std::vector<NodeView> finish() {
    for (auto& node : nodes_)
      std::ranges::sort(node.slots, {}, [](const SlotRange& range) { return range.first; });
    return std::move(nodes_);
  }

 private:
  std::vector<NodeView> nodes_;
  std::unordered_map<std::string, std::size_t> places_;
  std::bitset<hash_slots> owned_;
};

/// "ip:port@bus,hostname,more": the ip may be empty, and have colons.
void read_address(std::string_view text, const Endpoint& answerer, Node& node) {
  auto address = next_part(text, ',');
  node.hostname = std::string{next_part(text, ',')};
  if (!node.hostname.empty()) node.hostname = told_host(node.hostname, answerer).value_or("");
  address = next_part(address, '@');
  const auto colon = address.rfind(':');
  if (colon == address.npos) refuse_view(fmt::format("the node {} has no port", node.id));
  const auto port = address.substr(colon + 1);
  if (port == "0") return;  // it has none for this kind of client
  auto host = told_host(address.substr(0, colon), answerer);
  if (host) node.endpoint = Endpoint{std::move(*host), told_port(port)};
}

/// False: the node is not one of the cluster yet.
bool read_flags(std::string_view flags, NodeView& view) {
  bool is_known = true;
  bool has_address = true;
  while (!flags.empty()) {
    const auto flag = next_part(flags, ',');
    if (flag == "myself") view.is_answerer = true;
    if (flag == "slave" || flag == "replica") view.node.role = Role::replica;
    if (flag == "fail") view.node.health = Health::failed;
    if (flag == "fail?") view.node.health = Health::suspected;
    if (flag == "handshake") is_known = false;
    if (flag == "noaddr") has_address = false;
  }
  if (!has_address) view.node.endpoint.reset();
  return is_known;
}

/// id address flags master ping pong epoch link slot...
void read_line(std::string_view line, const Endpoint& answerer, Draft& draft) {
  NodeView view;
  Node& node = view.node;
  node.id = told_id(next_part(line, ' '));
  read_address(next_part(line, ' '), answerer, node);
  const bool is_known = read_flags(next_part(line, ' '), view);
  const auto master = next_part(line, ' ');
  next_part(line, ' ');  // ping
  next_part(line, ' ');  // pong
  const auto epoch = parse_integer<std::uint64_t>(next_part(line, ' '));
  if (!epoch) refuse_view(fmt::format("the node {} has no config epoch", node.id));
  if (next_part(line, ' ').empty()) refuse_view(fmt::format("the line of {} is cut", node.id));
  node.epoch = *epoch;
  if (node.role == Role::replica && master != "-") node.master = told_id(master);
  if (!is_known) return;

  NodeView& added = draft.add(std::move(view));
  while (!line.empty()) {
    const auto range = next_part(line, ' ');
    if (range.empty() || range.starts_with('[')) continue;  // "[93->-id": a slot that moves
    draft.own(added, parse_range(range));
  }
}

/// A map of RESP3, or its keys and values in turn in an array of RESP2.
class Fields {
 public:
  explicit Fields(const Value& reply) : items_(reply.as_items()) {
    if (items_.size() % 2 != 0) refuse_view("a map has a key without a value");
  }
  const Value* find(std::string_view name) const {
    for (std::size_t i = 0; i < items_.size(); i += 2)
      if (items_[i].is_text() && items_[i].as_text() == name) return &items_[i + 1];
    return nullptr;
  }
  const Value& at(std::string_view name) const {
    if (const auto* value = find(name)) return *value;
    refuse_view(fmt::format("there is no '{}'", name));
  }
  std::string_view text(std::string_view name) const {
    const auto* value = find(name);
    return value && !value->is_null() ? std::string_view{value->as_text()} : std::string_view{};
  }

 private:
  const Value::Items& items_;
};

std::string_view text_or_empty(const Value& value) {
  return value.is_null() ? std::string_view{} : std::string_view{value.as_text()};
}

Health told_health(std::string_view health) {
  if (health == "fail" || health == "failed") return Health::failed;
  return health == "loading" ? Health::loading : Health::online;
}

NodeView node_of_shard(const Fields& fields, const Endpoint& answerer, bool tls) {
  NodeView view;
  Node& node = view.node;
  node.id = told_id(fields.text("id"));
  node.hostname = fields.text("hostname");
  if (!node.hostname.empty()) node.hostname = told_host(node.hostname, answerer).value_or("");
  node.role = fields.text("role") == "master" ? Role::master : Role::replica;
  node.health = told_health(fields.text("health"));
  if (const auto* offset = fields.find("replication-offset"))
    node.offset = static_cast<std::uint64_t>(std::max<std::int64_t>(offset->as_integer(), 0));
  // A server that speaks to this kind of client has this port.
  const auto* const port = fields.find(tls ? "tls-port" : "port");
  auto host = told_host(text_or_empty(fields.at("endpoint")), answerer);
  if (host && port) node.endpoint = Endpoint{std::move(*host), told_port(port->as_integer())};
  return view;
}

/// The live master of a shard has its slots: after a failover the failed one is listed beside it.
void read_shard(const Fields& shard, const Endpoint& answerer, bool tls, Draft& draft) {
  std::string owner;
  bool is_alive = false;
  std::vector<std::string> ids;
  for (const Value& one : shard.at("nodes").as_items()) {
    NodeView& node = draft.add(node_of_shard(Fields{one}, answerer, tls));
    ids.push_back(node.node.id);
    const bool lives = node.node.health != Health::failed;
    if (node.node.role == Role::master && (owner.empty() || (lives && !is_alive))) {
      owner = node.node.id;
      is_alive = lives;
    }
  }
  for (const auto& id : ids)
    if (NodeView& node = *draft.find(id); node.node.role == Role::replica) node.node.master = owner;
  const auto& slots = shard.at("slots").as_items();
  if (slots.size() % 2 != 0) refuse_view("a range of slots has no end");
  if (!slots.empty() && owner.empty()) refuse_view("slots have no master");
  for (std::size_t i = 0; i < slots.size(); i += 2)
    draft.own(*draft.find(owner), told_range(slots[i].as_integer(), slots[i + 1].as_integer()));
}

/// [endpoint, port, id, metadata]; old servers leave out the last ones.
NodeView node_of_slots(const Value& reply, const Endpoint& answerer) {
  const auto& items = reply.as_items();
  if (items.size() < 2) refuse_view("a node has no port");
  NodeView view;
  Node& node = view.node;
  auto host = told_host(text_or_empty(items[0]), answerer);
  const auto port = items[1].as_integer();
  if (host && port != 0) node.endpoint = Endpoint{std::move(*host), told_port(port)};
  if (items.size() < 3 && !node.endpoint) refuse_view("a node has neither endpoint nor id");
  node.id = items.size() > 2 ? told_id(items[2].as_text()) : to_string(*node.endpoint);
  if (items.size() > 3 && items[3].is_aggregate())
    if (const auto name = Fields{items[3]}.text("hostname"); !name.empty())
      node.hostname = told_host(name, answerer).value_or("");
  return view;
}

/// [first, last, master, replica...]
void read_slots(const Value& reply, const Endpoint& answerer, Draft& draft) {
  const auto& items = reply.as_items();
  if (items.size() < 3) refuse_view("a range of slots has no master");
  const auto range = told_range(items[0].as_integer(), items[1].as_integer());
  std::string master;
  for (std::size_t i = 2; i < items.size(); ++i) {
    NodeView node = node_of_slots(items[i], answerer);
    node.node.role = i == 2 ? Role::master : Role::replica;
    node.node.master = master;
    NodeView* known = draft.find(node.node.id);
    if (!known) known = &draft.add(std::move(node));
    if (i != 2) continue;
    master = known->node.id;
    draft.own(*known, range);
  }
}

struct State {
  bool is_ok = false;
  std::uint64_t current_epoch = 0;
};

State parse_info(const Value& reply) {
  if (reply.is_error()) throw error_of_reply(reply.as_text());
  State state;
  bool has_state = false;
  std::string_view rest = reply.as_text();
  while (!rest.empty()) {
    auto line = next_part(rest, '\n');
    if (line.ends_with('\r')) line.remove_suffix(1);
    const auto name = next_part(line, ':');
    if (name == "cluster_state") {
      has_state = true;
      state.is_ok = line == "ok";
    } else if (name == "cluster_current_epoch") {
      state.current_epoch = parse_integer<std::uint64_t>(line).value_or(0);
    }
  }
  if (!has_state) refuse_view("there is no cluster_state");
  return state;
}

/// Gives the nodes of `view` what SHARDS or SLOTS tells of them. What is not in both has come or
/// gone between the two commands.
void add_endpoints(std::vector<NodeView>& view, const std::vector<NodeView>& told) {
  std::map<std::string_view, const Node*> by_id;
  for (const auto& one : told) by_id.emplace(one.node.id, &one.node);
  for (auto& one : view) {
    const auto found = by_id.find(one.node.id);
    if (found == by_id.end()) continue;
    const Node& node = *found->second;
    one.node.endpoint = node.endpoint;
    if (!node.hostname.empty()) one.node.hostname = node.hostname;
    one.node.offset = node.offset;
    if (one.node.health == Health::online) one.node.health = node.health;
  }
}

}  // namespace

std::vector<NodeView> parse_nodes(const Value& reply, const Endpoint& answerer) {
  return told_by(answerer, "CLUSTER NODES", [&] {
    std::string_view rest = reply.as_text();
    if (rest.size() > most_nodes_text)
      refuse_view(fmt::format("it has {} bytes; {} are the most", rest.size(), most_nodes_text));
    Draft draft;
    while (!rest.empty()) {
      auto line = next_part(rest, '\n');
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!line.empty()) read_line(line, answerer, draft);
    }
    return draft.finish();
  });
}

std::vector<NodeView> parse_shards(const Value& reply, const Endpoint& answerer, bool tls) {
  return told_by(answerer, "CLUSTER SHARDS", [&] {
    Draft draft;
    for (const Value& shard : reply.as_items()) read_shard(Fields{shard}, answerer, tls, draft);
    return draft.finish();
  });
}

std::vector<NodeView> parse_slots(const Value& reply, const Endpoint& answerer) {
  return told_by(answerer, "CLUSTER SLOTS", [&] {
    Draft draft;
    for (const Value& range : reply.as_items()) read_slots(range, answerer, draft);
    return draft.finish();
  });
}

bool lacks_shards(std::span<const Value> replies) {
  return replies.size() > 1 && replies[1].is_error() &&
         replies[1].as_text().find("nknown subcommand") != std::string::npos;
}

ClusterView view_of(std::span<const Value> replies, Form form, const Endpoint& answerer, bool tls) {
  if (replies.size() != commands_of(form).size())
    refuse_view(
        fmt::format("{} gives {} replies to three questions", to_string(answerer), replies.size()));
  const Value& nodes = replies[0];
  const Value& endpoints = replies[1];
  if (nodes.is_error() && endpoints.is_error())
    told_by(answerer, "CLUSTER NODES", [&] { throw error_of_reply(nodes.as_text()); });
  const auto state = told_by(answerer, "CLUSTER INFO", [&] { return parse_info(replies[2]); });

  ClusterView view{.answerer = answerer,
                   .is_ok = state.is_ok,
                   .current_epoch = state.current_epoch,
                   .nodes = {}};
  std::vector<NodeView> told;
  if (!endpoints.is_error())
    told = form == Form::shards ? parse_shards(endpoints, answerer, tls)
                                : parse_slots(endpoints, answerer);
  if (nodes.is_error()) {
    view.nodes = std::move(told);
    return view;
  }
  view.nodes = parse_nodes(nodes, answerer);
  add_endpoints(view.nodes, told);
  for (const auto& one : view.nodes)
    if (one.node.epoch > view.current_epoch)
      refuse_view(fmt::format("{} gives the node {} the config epoch {}, but its cluster is at {}",
                              to_string(answerer), one.node.id, one.node.epoch,
                              view.current_epoch));
  return view;
}

}  // namespace sluice::topology
