/// What one node says of its cluster, taken from its replies.
///
/// CLUSTER NODES is the only one that tells config epochs, CLUSTER SHARDS the only one that tells
/// health, offsets and both ports; SHARDS and SLOTS tell the endpoints that clients are to use
/// (cluster-preferred-endpoint-type). CLUSTER INFO tells whether the node may be believed: one that
/// is cut off from the majority says "fail", and still names itself the owner of its slots. INFO is
/// asked last: no config epoch that was told before it is beyond its current epoch.
/// Source: Redis Cluster Specification; CLUSTER SLOTS, SHARDS, NODES, INFO of Redis 7.
///
/// Replies come from outside: one that is no map (two owners of a slot, a node twice, numbers out
/// of range, too much of it) is an Error{protocol} as a whole; half a map is never made.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/value.hpp"
#include "topology/endpoint.hpp"

namespace sluice::topology {

/// Nodes of one view; more is no cluster: a thousand are the most that Redis advises.
constexpr std::size_t most_nodes = 10'000;
/// Bytes of one reply of CLUSTER NODES: 16,384 slots of their own have 112 KB.
constexpr std::size_t most_nodes_text = 16 << 20;

enum class Role : std::uint8_t { master, replica };
enum class Health : std::uint8_t {
  online,
  loading,    ///< it has not all data yet
  suspected,  ///< does not answer the node that tells ("fail?")
  failed,     ///< a majority of masters says so
};

struct Node {
  std::string id;                    ///< empty: only its endpoint is known yet
  std::optional<Endpoint> endpoint;  ///< nothing: no client can reach it
  std::string hostname;              ///< what its certificate may bear; empty: none was announced
  Role role = Role::master;
  Health health = Health::online;
  std::string master;                   ///< of a replica: the id of its master, if it is known
  std::uint64_t epoch = 0;              ///< config epoch; 0: not told
  std::optional<std::uint64_t> offset;  ///< of replication

  friend bool operator==(const Node&, const Node&) = default;
};

struct SlotRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;  ///< this one too

  friend bool operator==(const SlotRange&, const SlotRange&) = default;
};

struct NodeView {
  Node node;
  bool is_answerer = false;
  std::vector<SlotRange> slots;  ///< in ascending order

  friend bool operator==(const NodeView&, const NodeView&) = default;
};

struct ClusterView {
  Endpoint answerer;
  bool is_ok = false;  ///< cluster_state; false: nothing of it is to be believed
  std::uint64_t current_epoch = 0;
  std::vector<NodeView> nodes;
};

/// What a node is asked, in one pipeline. `slots` is for servers without CLUSTER SHARDS.
enum class Form : std::uint8_t { shards, slots };
using Command = std::array<std::string_view, 2>;
constexpr std::array<Command, 3> commands_of(Form form) noexcept {
  return {{{"CLUSTER", "NODES"},
           {"CLUSTER", form == Form::shards ? "SHARDS" : "SLOTS"},
           {"CLUSTER", "INFO"}}};
}

/// The replies to commands_of(form). One of the first two may be an error reply. Throws Error, with
/// effect none.
ClusterView view_of(std::span<const Value> replies, Form form, const Endpoint& answerer, bool tls);
/// Whether the server knows no CLUSTER SHARDS, and is to be asked for SLOTS.
bool lacks_shards(std::span<const Value> replies);

/// One reply alone. Throw Error{protocol}, with effect none.
std::vector<NodeView> parse_nodes(const Value& reply, const Endpoint& answerer);
std::vector<NodeView> parse_shards(const Value& reply, const Endpoint& answerer, bool tls);
std::vector<NodeView> parse_slots(const Value& reply, const Endpoint& answerer);

}  // namespace sluice::topology
