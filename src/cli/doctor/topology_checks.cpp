#include "cli/doctor/topology_checks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/instant.hpp"
#include "cli/doctor/deployment.hpp"
#include "cli/doctor/server_checks.hpp"
#include "sluice/store.hpp"

namespace sluice::cli {
namespace {

using topology::Endpoint;
using topology::Health;
using topology::Node;
using topology::Role;

/// What is found alike at several servers is told once; what is well is not told of each.
void check_servers(const Servers& servers, const std::vector<Endpoint>& all, Findings& findings) {
  struct Alike {
    Finding finding;
    std::vector<std::string> at;
  };
  std::vector<Alike> found;
  for (const auto& server : all) {
    Findings own;
    try {
      check_server(*servers.open_server(server), own);
    } catch (const Error& error) {
      own.add("server", Severity::danger, error.message());
    }
    own.forget_what_is_well();
    if (own.all().empty()) own.add("server", Severity::ok, "well");
    for (const auto& one : own.all()) {
      auto alike = std::ranges::find(found, one, &Alike::finding);
      if (alike == found.end()) alike = found.insert(found.end(), {one, {}});
      alike->at.push_back(topology::to_string(server));
    }
  }
  for (const auto& [one, at] : found)
    findings.add(one.check, one.severity, fmt::format("{}: {}", fmt::join(at, ", "), one.found),
                 one.advice);
}

std::string seconds_of(long milliseconds) {
  return fmt::format("{:.1f} s", static_cast<double>(milliseconds) / 1000);
}

std::string text_of(const std::vector<topology::SlotRange>& ranges) {
  std::size_t slots = 0;
  for (const auto& range : ranges) slots += range.last - range.first + std::size_t{1};
  return fmt::format("{} slots in {} ranges", slots, ranges.size());
}

}  // namespace

// --- Sentinels ---

namespace {

void check_majority(const std::vector<SentinelSaid>& all, Findings& findings) {
  std::vector<std::string> away;
  std::size_t there = 0;
  for (const auto& one : all) {
    if (one.view) {
      ++there;
    } else {
      away.push_back(fmt::format("{} ({})", topology::to_string(one.sentinel), one.why_not));
    }
  }
  const auto found = fmt::format("{} of {} Sentinels answer{}{}", there, all.size(),
                                 away.empty() ? "" : "; not: ", fmt::join(away, ", "));
  if (2 * there <= all.size())
    return findings.add("sentinels", Severity::danger, found,
                        "no failover without a majority of all Sentinels: start them, or remove "
                        "those that are gone for ever (SENTINEL RESET at each of the others)");
  if (!away.empty())
    return findings.add("sentinels", Severity::warning, found, "start it, or find out why");
  if (all.size() < 3)
    return findings.add("sentinels", Severity::warning, found,
                        "with fewer than three, one that is lost ends all failovers");
  findings.add("sentinels", Severity::ok, found);
}

void check_quorum(const std::vector<SentinelSaid>& all, Findings& findings) {
  std::set<long> quorums;
  for (const auto& one : all) {
    if (!one.view) continue;
    quorums.insert(one.quorum);
    if (!one.no_quorum.empty())
      return findings.add(
          "quorum", Severity::danger,
          fmt::format("{} says {}", topology::to_string(one.sentinel), one.no_quorum),
          "a master that is lost has no successor until this is mended");
  }
  if (quorums.size() > 1)
    return findings.add("quorum", Severity::warning,
                        fmt::format("Sentinels have different ones: {}", fmt::join(quorums, ", ")),
                        "SENTINEL SET NAME quorum N at each of them");
  for (const auto quorum : quorums)
    findings.add("quorum", Severity::ok, fmt::format("{}, and enough can be reached", quorum));
}

/// The address that the latest epoch names; nothing: none does.
std::optional<Endpoint> check_agreement(const std::vector<SentinelSaid>& all, Findings& findings) {
  std::map<Endpoint, std::uint64_t> named;
  for (const auto& one : all)
    if (one.view && one.view->master)
      named[*one.view->master] = std::max(named[*one.view->master], one.view->epoch);
  if (named.empty()) {
    findings.add("master", Severity::danger, "no Sentinel names one",
                 "is the name of the master right? SENTINEL MASTERS tells all names");
    return std::nullopt;
  }
  const auto latest =
      std::ranges::max_element(named, {}, [](const auto& one) { return one.second; });
  if (named.size() == 1) {
    findings.add(
        "master", Severity::ok,
        fmt::format("{}, by config epoch {}", topology::to_string(latest->first), latest->second));
    return latest->first;
  }
  std::vector<std::string> texts;
  for (const auto& [master, epoch] : named)
    texts.push_back(fmt::format("{} (epoch {})", topology::to_string(master), epoch));
  findings.add("master", Severity::danger,
               fmt::format("Sentinels name several: {}", fmt::join(texts, ", ")),
               "during a failover that is so for a moment; if it stays, SENTINEL RESET those that "
               "are behind");
  return latest->first;
}

void check_failover_time(const std::vector<SentinelSaid>& all, Findings& findings) {
  long longest = 0;
  for (const auto& one : all) longest = std::max(longest, one.down_after_ms);
  if (longest == 0) return;
  constexpr long behind = 1300;  // measured: docs/topology.md
  findings.add("failover", Severity::ok,
               fmt::format("down-after-milliseconds {}: a master that is lost has a successor "
                           "after about {}; a shorter lease ends before",
                           longest, seconds_of(longest + behind)));
}

}  // namespace

void check_sentinels(const Servers& servers, Findings& findings) {
  const auto all = ask_sentinels(servers);
  check_majority(all, findings);
  check_quorum(all, findings);
  const auto master = check_agreement(all, findings);
  check_failover_time(all, findings);
  if (master) check_servers(servers, {*master}, findings);
}

// --- clusters ---

namespace {

void check_nodes(const ClusterSaid& all, Findings& findings) {
  std::vector<std::string> away, cut_off;
  for (const auto& one : all.nodes) {
    if (!one.view)
      away.push_back(fmt::format("{} ({})", topology::to_string(one.node), one.why_not));
    else if (!one.view->is_ok)
      cut_off.push_back(topology::to_string(one.node));
  }
  const auto found =
      fmt::format("{} of {} nodes answer{}{}{}{}", all.nodes.size() - away.size(), all.nodes.size(),
                  away.empty() ? "" : "; not: ", fmt::join(away, ", "),
                  cut_off.empty() ? "" : "; in state fail: ", fmt::join(cut_off, ", "));
  if (!cut_off.empty())
    findings.add("nodes", Severity::danger, found,
                 "a node in state fail is cut off from the majority, or slots have no owner");
  else if (!away.empty())
    findings.add("nodes", Severity::warning, found, "start it, or CLUSTER FORGET it at all others");
  else
    findings.add("nodes", Severity::ok, found);
  if (!all.is_whole)
    findings.add("nodes", Severity::unknown,
                 fmt::format("there are more than {}, which were not asked", most_asked));
}

/// Nodes that tell an owner of slots whose epoch is older than the map's.
void check_epochs(const ClusterSaid& all, Findings& findings) {
  std::vector<std::string> behind;
  for (const auto& one : all.nodes) {
    if (!one.view || !one.view->is_ok) continue;
    const bool differs = std::ranges::any_of(one.view->nodes, [&](const auto& told) {
      return std::ranges::any_of(told.slots, [&](const topology::SlotRange& range) {
        for (std::uint32_t slot = range.first; slot <= range.last; ++slot) {
          const auto* const owner = all.map.owner(static_cast<std::uint16_t>(slot));
          if (!owner || owner->id != told.node.id) return true;
        }
        return false;
      });
    });
    if (differs) behind.push_back(topology::to_string(one.node));
  }
  if (behind.empty())
    return findings.add("epochs", Severity::ok, "all nodes tell the same owners of slots");
  findings.add("epochs", Severity::warning,
               fmt::format("behind the others: {}", fmt::join(behind, ", ")),
               "after a failover or a move that is so for a moment; if it stays, the node does not "
               "hear the others");
}

void check_coverage(const ClusterSaid& all, const std::vector<const Node*>& masters,
                    Findings& findings) {
  if (const auto uncovered = all.map.uncovered(); uncovered > 0)
    findings.add("coverage", Severity::danger, fmt::format("{} slots have no owner", uncovered),
                 "calls for their keys wait and then fail: redis-cli --cluster fix");
  else
    findings.add("coverage", Severity::ok, fmt::format("all slots, by {} masters", masters.size()));
  for (const Node* const master : masters) {
    const auto where = master->endpoint ? topology::to_string(*master->endpoint) : master->id;
    if (master->health == Health::failed)
      findings.add(
          "coverage", Severity::danger, where + " has failed and has slots",
          "a replica of it should have taken over: is there one, and is there a majority?");
    if (all.map.replicas_of(*master).empty())
      findings.add("coverage", Severity::danger,
                   fmt::format("{} has no replica ({})", where, text_of(all.map.slots_of(*master))),
                   "when it is lost, its keys are: CLUSTER REPLICATE at a node that is free");
  }
}

/// Whether one machine that is lost takes the majority of masters with it.
void check_spread(const std::vector<const Node*>& masters, Findings& findings) {
  std::map<std::string, std::size_t> hosts;
  for (const Node* const master : masters)
    if (master->endpoint) ++hosts[master->endpoint->host];
  for (const auto& [host, many] : hosts)
    if (masters.size() < 3 || 2 * many >= masters.size())
      return findings.add(
          "spread", Severity::warning,
          fmt::format("{} of {} masters are on {}", many, masters.size(), host),
          "without a majority of the masters no replica takes over: three or more, each on a "
          "machine of its own");
  findings.add("spread", Severity::ok,
               fmt::format("{} masters on {} hosts", masters.size(), hosts.size()));
}

void check_node_timeout(Store& node, Findings& findings) {
  const auto told = config_of(node, "cluster-node-timeout");
  if (!told) return;
  const long timeout = std::atol(told->c_str());
  const long until = timeout * 3 / 2 + 2000;
  const auto full = config_of(node, "cluster-require-full-coverage").value_or("yes");
  findings.add("failover", timeout > 5000 ? Severity::warning : Severity::ok,
               fmt::format("cluster-node-timeout {}: a master that is lost has a successor after "
                           "about {}; a shorter lease ends before{}",
                           timeout, seconds_of(until),
                           full == "yes" ? ". Meanwhile all slots wait for about a second "
                                           "(cluster-require-full-coverage yes)"
                                         : ""),
               timeout > 5000 ? "CONFIG SET cluster-node-timeout 5000 at each node, or leases that "
                                "are longer"
                              : "");
}

}  // namespace

void check_cluster(const Servers& servers, Findings& findings) {
  const auto all = ask_nodes(servers);
  check_nodes(all, findings);
  if (all.map.knows_nothing()) return;
  check_epochs(all, findings);
  std::vector<const Node*> masters;
  for (const Node& node : all.map.nodes())
    if (all.map.has_slots(node)) masters.push_back(&node);
  check_coverage(all, masters, findings);
  check_spread(masters, findings);
  std::vector<Endpoint> reachable;
  for (const Node* const master : masters)
    if (master->endpoint) reachable.push_back(*master->endpoint);
  if (!reachable.empty())
    findings.attempt(
        "failover", [&] { check_node_timeout(*servers.open_server(reachable.front()), findings); });
  check_servers(servers, reachable, findings);
}

// --- TLS ---

void check_certificates(const Servers& servers, Findings& findings) {
  if (!servers.is_secure()) return;
  constexpr std::chrono::days soon{30}, very_soon{7};
  for (const auto& server : servers.seeds())
    findings.attempt("certificate", [&] {
      const auto end = servers.certificate_ends(server);
      if (!end) return;
      const auto left = *end - system_clock().wall();
      const auto found =
          fmt::format("that of {} ends on {}", topology::to_string(server), to_text(*end));
      if (left > soon) return findings.add("certificate", Severity::ok, found);
      findings.add("certificate", left > very_soon ? Severity::warning : Severity::danger, found,
                   "new connections fail then: renew it");
    });
}

}  // namespace sluice::cli
