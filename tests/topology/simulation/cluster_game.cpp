/// One client of a simulated cluster, and a judge who knows the truth.
///
/// For a time nodes die, hang, lie, split, fail over and pass slots on; then all is healed, and
/// when the cluster has settled the client's map must come to the truth soon, and stay. All the
/// while: no slot goes back to an older epoch, no node of another cluster is in the map, the
/// questions are few and never more than one to a node.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "topology/refresher.hpp"
#include "topology/simulation/game.hpp"
#include "topology/simulation/sim_cluster.hpp"

namespace sluice::topology::simulation {
namespace {

using namespace std::chrono_literals;
struct Profile {
  std::size_t masters;
  std::size_t replicas;
  bool full_coverage;
  bool sees_all_sides;  // of a split: the client reaches the nodes that are cut off, too
  bool has_traffic;     // else it only listens: its connections tell it
  unsigned lies;        // percent of answers
};

Profile profile_of(Dice dice) {
  const bool is_large = dice.chance(6);
  return {.masters = is_large ? 20 + dice.below(100) : 3 + dice.below(6),
          .replicas = 1 + dice.below(2),
          .full_coverage = dice.chance(50),
          .sees_all_sides = dice.chance(60),
          .has_traffic = dice.chance(80),
          .lies = static_cast<unsigned>(dice.chance(50) ? dice.below(20) : 0)};
}

class ClusterGame {
 public:
  ClusterGame(std::uint64_t seed, GameFigures& figures)
      : dice_(seed),
        profile_(profile_of(dice_.split())),
        cluster_(profile_.masters, profile_.replicas, profile_.full_coverage, dice_.split()),
        refresher_(seeds(),
                   {.random = [lots = dice_.split()](
                                  std::uint64_t bound) mutable { return lots.below(bound); }}),
        figures_(figures) {}

  void play() {
    const auto disturbed_until = now() + disturbed_for;
    events_.every(50ms, [this] { cluster_.step(now()); });
    events_.every(5ms, [this] {
      if (profile_.has_traffic) call(dice_.below(blocks), 0);
    });
    events_.every(100ms, [this] { connect_again(); });
    events_.every(100ms, [this, disturbed_until] {
      if (now() < disturbed_until) disturb();
    });
    run_until(disturbed_until, [] { return false; });
    cluster_.heal(now());
    is_healed_ = true;
    if (!run_until(now() + settles_within, [this] { return cluster_.has_settled(); }))
      throw Wrong{"the simulated cluster does not settle"};
    const auto settled = now();
    if (!run_until(now() + converges_within, [this] { return is_true(); }))
      throw Wrong{"the map is not that of the cluster: " + untruth()};
    figures_.converged_ms = (now() - settled) / 1ms;
    const auto asked = figures_.questions;
    run_until(now() + watched_for, [this] {
      if (!is_true()) throw Wrong{"the map was right, and is not any more: " + untruth()};
      return false;
    });
    if (figures_.questions - asked > questions_in_peace)
      throw Wrong{fmt::format("{} questions in peace", figures_.questions - asked)};
  }

 private:
  using Life = SimCluster::Life;

  static constexpr auto disturbed_for = 15s;
  static constexpr auto settles_within = 30s;
  static constexpr auto converges_within = 20s;
  static constexpr auto watched_for = 8s;               // after that
  static constexpr std::size_t questions_in_peace = 8;  // while it is watched

  std::vector<Endpoint> seeds() const {
    std::vector<Endpoint> all;
    for (std::size_t i = 0; i < 3; ++i)
      all.push_back(SimCluster::endpoint(i * (profile_.replicas + 1)));
    return all;
  }

  bool run_until(SteadyTime end, const std::function<bool()>& is_done) {
    return events_.run_until(
        end, [this] { return refresher_.wakes(); },
        [this] {
          for (const auto& question : refresher_.act(now())) ask(question);
          judge();
        },
        is_done);
  }
  SteadyTime now() const { return events_.now(); }

  // The network.

  bool reaches(std::size_t node) const {
    return profile_.sees_all_sides || cluster_.side(node) == 0;
  }

  void ask(const RefreshQuestion& question) {
    judge_question(question.node);
    const auto node = SimCluster::at(question.node);
    if (node >= cluster_.size()) throw Wrong{"a question to " + to_string(question.node)};
    const auto life = cluster_.life(node);
    const auto end = [this, question] { in_flight_.erase(in_flight_.find(question.node)); };
    if (life == Life::dead && reaches(node)) {
      events_.at(now() + 1ms, [this, question, end] {
        end();
        refresher_.failed(now(), question.id, "connection refused");
      });
    } else if (life == Life::hanging || life == Life::dead || !reaches(node)) {
      events_.at(question.deadline - 1ns, end);
    } else {
      auto replies = cluster_.replies(node, question.form);
      if (!is_healed_ && dice_.chance(profile_.lies)) lie(replies);
      events_.at(now() + 200us + dice_.upto(dice_.chance(5) ? 400ms : 3ms),
                 [this, question, end, replies = std::move(replies)] {
                   end();
                   refresher_.answered(now(), question.id, replies);
                 });
    }
  }

  void lie(std::vector<Value>& replies) {
    Value& reply = replies[dice_.below(2)];
    switch (dice_.below(7)) {
      case 0: reply = Value::error("LOADING Redis is loading the dataset in memory"); break;
      case 1: reply = Value{}; break;
      case 2: reply = Value::array({Value::integer(1)}); break;
      case 3: replies.pop_back(); break;
      case 4: reply = Value::bulk_string(""); break;
      case 5: replies[2] = Value::error("NOPERM this user has no permissions"); break;
      default:
        if (auto& first = replies[0]; first.is_text()) {
          auto& text = first.as_text();
          text.resize(dice_.below(text.size() + 1));  // cut, and perhaps still a map
          replies[1] = Value::error("ERR Unknown subcommand");
          replies[2] = Value{};
        }
    }
  }

  // The caller's commands.

  void call(std::size_t block, int hops) {
    const auto slot = static_cast<std::uint16_t>(block * block_slots + dice_.below(block_slots));
    const Node* const owner = refresher_.map()->owner(slot);
    if (!owner || !owner->endpoint) return refresher_.doubt(now());
    send(slot, SimCluster::at(*owner->endpoint), hops);
  }

  void send(std::uint16_t slot, std::size_t node, int hops) {
    const auto endpoint = SimCluster::endpoint(node);
    if (lost_.contains(node)) return;
    if (!is_there(node)) {
      lost_.insert(node);
      return refresher_.lost(now(), endpoint);
    }
    const auto owner = cluster_.owner(node, slot / block_slots);
    if (!cluster_.is_ok(node)) return refresher_.doubt(now());
    if (owner == node || hops > 5) return;
    const auto redirection =
        parse_redirection(fmt::format("MOVED {} :{}", slot, SimCluster::endpoint(owner).port),
                          endpoint)
            .value();
    refresher_.moved(now(), slot, endpoint, redirection.to.value());
    send(slot, owner, hops + 1);
  }

  bool is_there(std::size_t node) const {
    return cluster_.life(node) == Life::well && reaches(node);
  }

  /// What the owner of connections does for all nodes of the map.
  void connect_again() {
    std::erase_if(lost_, [&](std::size_t node) {
      if (!refresher_.map()->find(SimCluster::endpoint(node))) return true;
      if (is_there(node)) {
        refresher_.is_back(now(), SimCluster::endpoint(node));
        return true;
      }
      refresher_.lost(now(), SimCluster::endpoint(node));
      return false;
    });
    for (const Node& node : refresher_.map()->nodes()) {
      const auto i = SimCluster::at(*node.endpoint);
      if (i >= cluster_.size() || is_there(i) || lost_.contains(i)) continue;
      lost_.insert(i);
      refresher_.lost(now(), *node.endpoint);
    }
  }

  void disturb() {
    if (!dice_.chance(15)) return;
    switch (dice_.below(13)) {
      case 0:
      case 1: return cluster_.strike_one(Life::dead, now());
      case 2: return cluster_.strike_one(Life::hanging, now());
      case 3: return cluster_.strike_one(Life::blank, now());
      case 4: return cluster_.strike_one(Life::foreign, now());
      case 5:
      case 6: return cluster_.revive_one(now());
      case 7: return cluster_.fail_over_one();
      case 8: return cluster_.add_shard();
      case 9: return cluster_.remove_shard();
      case 10: return cluster_.split(now());
      case 11:
        for (int i = 0; i < 10; ++i) cluster_.move_block();
        return;
      default: return cluster_.move_block();
    }
  }

  // The judge.

  void judge_question(const Endpoint& node) {
    ++figures_.questions;
    if (!in_flight_.insert(node).second) throw Wrong{"two questions at a time to one node"};
    if (in_flight_.size() > Refresher::most_in_flight) throw Wrong{"too many questions in flight"};
    asked_.push_back(now());
    if (asked_.size() > 10 && asked_[asked_.size() - 11] + 1s > now())
      throw Wrong{"more than ten questions in a second"};
  }

  void judge() {
    const auto map = refresher_.map();
    if (map == judged_) return;
    if (refresher_.replacements() > 0) throw Wrong{"another cluster was believed"};
    for (std::size_t block = 0; block < blocks; ++block) {
      const auto slot = static_cast<std::uint16_t>(block * block_slots);
      if (judged_ && map->epoch(slot) < judged_->epoch(slot))
        throw Wrong{fmt::format("slot {} goes back from epoch {} to {}", slot, judged_->epoch(slot),
                                map->epoch(slot))};
    }
    for (const Node& node : map->nodes())
      if (node.id.starts_with("00000000000000000000000000000000000f"))
        throw Wrong{"a node of another cluster is in the map"};
    judged_ = map;
  }

  bool is_true() const { return untruth().empty(); }
  std::string untruth() const {
    const auto map = refresher_.map();
    for (std::size_t block = 0; block < blocks; ++block) {
      const Node* const owner = map->owner(static_cast<std::uint16_t>(block * block_slots));
      const auto in_truth = cluster_.true_owner(block);
      if (!owner || owner->endpoint != SimCluster::endpoint(in_truth))
        return fmt::format("block {} is of {}, not of {}", block,
                           SimCluster::endpoint(in_truth).port,
                           owner ? to_string(owner->endpoint.value()) : "nobody");
    }
    return {};
  }

  Dice dice_;
  Profile profile_;
  SimCluster cluster_;
  Refresher refresher_;
  GameFigures& figures_;
  Events events_;
  std::set<Endpoint> in_flight_;
  std::deque<SteadyTime> asked_;
  std::set<std::size_t> lost_;
  std::shared_ptr<const ClusterMap> judged_;
  bool is_healed_ = false;
};

}  // namespace

Verdict play_cluster(std::uint64_t seed, GameFigures* figures) {
  return play<ClusterGame>(seed, figures);
}

}  // namespace sluice::topology::simulation
