/// What the Sentinels of a master, or the nodes of a cluster, say, each by itself.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "open/servers.hpp"
#include "topology/cluster_map.hpp"
#include "topology/sentinel_view.hpp"

namespace sluice::cli {

/// Servers that are asked; the others of a larger deployment are not.
constexpr std::size_t most_asked = 128;

struct SentinelSaid {
  topology::Endpoint sentinel;
  std::optional<topology::SentinelView> view;
  std::string why_not;  ///< there is no view
  long quorum = 0;
  long down_after_ms = 0;
  std::string no_quorum;  ///< why a failover cannot be agreed on; empty: it can
};
/// Those of the URL, and all that they list.
std::vector<SentinelSaid> ask_sentinels(const Servers& servers);

struct NodeSaid {
  topology::Endpoint node;
  std::optional<topology::ClusterView> view;
  std::string why_not;  ///< there is no view
};
struct ClusterSaid {
  std::vector<NodeSaid> nodes;  ///< those of the URL, and all that they list
  topology::ClusterMap map;     ///< by the latest config epochs
  bool is_whole = true;         ///< false: there are more nodes than were asked
};
ClusterSaid ask_nodes(const Servers& servers);

}  // namespace sluice::cli
