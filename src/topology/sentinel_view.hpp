/// What one Sentinel says of one master, and what a server says of its role, taken from replies.
/// Source: Redis, "Sentinel"; SENTINEL and ROLE of Redis 7.
///
/// Replies come from outside: one that is none of these is an Error{protocol} as a whole.
#pragma once

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

/// More is no deployment.
constexpr std::size_t most_sentinels = 64;
constexpr std::size_t most_replicas = 1'000;

struct SentinelView {
  std::optional<Endpoint> master;  ///< nothing: it knows no master of this name
  /// Config epoch of what it says: the latest failover of this master that it knows of. 0: not
  /// told.
  std::uint64_t epoch = 0;
  std::vector<Endpoint> replicas;   ///< those that it reaches
  std::vector<Endpoint> known;      ///< and the others
  std::vector<Endpoint> sentinels;  ///< the others that watch this master
};

/// What a Sentinel is asked, in one pipeline.
std::vector<std::vector<std::string>> sentinel_commands(const std::string& name);
/// The replies to them; those behind the first may be error replies. Throws Error, effect none.
SentinelView sentinel_view_of(std::span<const Value> replies, const Endpoint& answerer);

/// A reply to ROLE.
struct RoleView {
  bool is_master = false;
  std::optional<Endpoint> master;  ///< of a replica
};
/// Throws Error, effect none.
RoleView parse_role(const Value& reply, const Endpoint& answerer);

/// The channel on which a Sentinel tells of each failover.
constexpr std::string_view switch_channel = "+switch-master";
/// Whether a message of that channel is about the master `name`.
bool is_switch_of(std::string_view message, std::string_view name) noexcept;

}  // namespace sluice::topology
