/// When which node of a cluster is asked for the map, and what becomes of the answers. Decides
/// without I/O, without threads and without a clock; who does the I/O drives it like this:
///
///     for (const auto& question : refresher.act(clock.steady()))     // after each event, and at
///       ask(question.node, commands_of(question.form), question);    // refresher.wakes()
///     ... the replies come: if (refresher.answered(clock.steady(), id, replies))
///                             take(refresher.map());     // see difference() in cluster_map.hpp
///     ... none will come:   refresher.failed(clock.steady(), id, why);
///     ... a command heard MOVED: send it there at once, and refresher.moved(now, slot, from, to)
///     ... a connection broke, or a node is silent: refresher.lost(now, node); it is there again:
///         refresher.is_back(now, node)
///     ... CLUSTERDOWN, READONLY, sunsubscribe, a slot without owner: refresher.doubt(now)
///
/// One round of questions at a time: to three nodes when trouble begins, to one while it goes on,
/// so that a failover of any length asks no more than `most_questions` a second. Nodes that have
/// not answered are asked last; when there are too few others, the seeds are asked by their names,
/// which are resolved anew with each connection. Trouble lasts until the map has changed, or while
/// an owner of slots is lost. Rounds that bring no news come more and more seldom, and more seldom
/// in a large cluster, where an answer costs milliseconds of a server (18 ms were measured).
///
/// An answer is of use at once: a node that is silent delays nothing. What the map becomes stands
/// in cluster_map.hpp. A node without a common id is of another cluster, as when an address is
/// given to another server: it is refused. Only when no node of this cluster has answered what was
/// asked for `replaced_after`, the seeds are believed, whatever they belong to, and the map begins
/// anew.
///
/// Threads: one at a time. Cost: act() O(nodes), answered() 1 ms or less a view.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.hpp"
#include "sluice/clock.hpp"
#include "topology/cluster_map.hpp"

namespace sluice::topology {

struct RefreshOptions {
  bool tls = false;  ///< which of a node's ports is asked for

  /// Between two rounds in a cluster of few nodes. It grows with the nodes, by as much again for
  /// every 64 of them, and with rounds without news, to ten times as much; 5 s are the most.
  std::chrono::milliseconds gap{100};
  /// In any second; one at least.
  std::size_t most_questions = 10;
  std::chrono::milliseconds answer_timeout{500};
  /// For a network that is far: until a node has answered, and again when none does.
  std::chrono::milliseconds longest_answer_timeout{500};
  /// Without trouble, more or less by a quarter.
  std::chrono::milliseconds period{30'000};
  /// How long a node that has not answered is asked after all others.
  std::chrono::milliseconds suspicion{5'000};
  std::chrono::milliseconds replaced_after{30'000};
  /// Uniform in [0, bound).
  std::function<std::uint64_t(std::uint64_t bound)> random = random_below;
};

struct RefreshQuestion {
  std::uint64_t id = 0;
  Endpoint node;
  Form form = Form::shards;
  SteadyTime deadline;
};

class Refresher {
 public:
  static constexpr std::size_t most_in_flight = most_views;

  /// Throws Error{bad_argument} without a seed, or if no question may be asked.
  explicit Refresher(std::vector<Endpoint> seeds, RefreshOptions options = {});

  /// What is to be asked now.
  std::vector<RefreshQuestion> act(SteadyTime now);
  /// When to call act() again if nothing happens before.
  SteadyTime wakes() const;

  /// True: there is another map. An answer that comes too late is not used.
  bool answered(SteadyTime now, std::uint64_t question, std::span<const Value> replies);
  void failed(SteadyTime now, std::uint64_t question, std::string_view why);

  /// True: there is another map.
  bool moved(SteadyTime now, std::uint16_t slot, const Endpoint& from, const Endpoint& to);
  void lost(SteadyTime now, const Endpoint& node);
  void is_back(SteadyTime now, const Endpoint& node);
  void doubt(SteadyTime now);

  /// Never null; it knows nothing before the first good answer.
  std::shared_ptr<const ClusterMap> map() const noexcept { return map_; }
  /// How often the cluster was another one, with no node of the one before: what lay there is gone.
  std::uint64_t replacements() const noexcept { return replacements_; }
  /// None of its nodes has answered for `replaced_after`: whoever is at a seed will be believed.
  bool is_lost(SteadyTime now) const noexcept {
    return unanswered_ != SteadyTime::max() && now - unanswered_ >= options_.replaced_after;
  }
  /// What the nodes have answered that gave no map, for an error message; empty: they all did.
  std::string why_not() const;
  std::size_t in_flight() const noexcept { return in_flight_.size(); }

 private:
  struct Asked {
    Endpoint node;
    SteadyTime at, deadline;
    std::uint64_t round;
    Form form;
    bool is_seed;
  };
  struct Suspect {
    SteadyTime until;
    bool is_lost;  // said by the one who uses it, not by a question
  };

  void expire(SteadyTime now);
  void note_answer(SteadyTime now, const Asked& asked);
  void begin_round(SteadyTime now, std::vector<RefreshQuestion>& questions);
  std::vector<Endpoint> candidates(SteadyTime now) const;
  void end_round(SteadyTime now);
  void end_round_if_all_have_told(SteadyTime now);
  bool take(SteadyTime now, const Asked& asked, ClusterView view);
  bool install(ClusterMap map);
  void add_heirs_of_lost_owners();
  void look_for_lost_owners();
  void suspect(SteadyTime now, const Endpoint& node, bool is_lost);
  void note(const Endpoint& node, std::string_view why);
  void trouble(SteadyTime now);
  bool is_troubled() const;
  bool is_waiting() const;
  SteadyTime next_round() const;
  SteadyTime next_free_question() const;
  std::chrono::nanoseconds gap() const;
  std::chrono::nanoseconds some_of(std::chrono::nanoseconds most) const;

  const std::vector<Endpoint> seeds_;
  const RefreshOptions options_;
  std::chrono::milliseconds patience_;  // how long an answer may take, by what was seen of late
  std::shared_ptr<const ClusterMap> map_ = std::make_shared<const ClusterMap>();
  std::shared_ptr<const ClusterMap> map_before_round_ = map_;
  std::vector<ClusterView> views_;  // of the round
  std::uint64_t round_ = 0;
  std::uint64_t last_question_ = 0;
  std::map<std::uint64_t, Asked> in_flight_;
  std::map<Endpoint, Suspect> suspects_;
  std::map<Endpoint, std::string> why_not_;
  std::set<Endpoint> hints_;          // the next round begins with them
  std::deque<SteadyTime> questions_;  // the last ones that count against most_questions
  Form form_ = Form::shards;
  std::size_t lost_owners_ = 0;
  bool is_doubted_ = true;      // something has happened since the round began
  bool is_round_open_ = false;  // some of its questions are in flight
  bool has_answer_ = true;      // the round has a good one
  bool has_news_ = false;       // the round has changed the map
  std::size_t fruitless_ = 0;   // rounds without news since trouble began
  std::uint64_t replacements_ = 0;
  SteadyTime doubted_{};  // when the last trouble came
  SteadyTime due_{};      // a troubled round, but for the gap
  SteadyTime periodic_ = SteadyTime::max();
  SteadyTime last_round_ = SteadyTime::min();
  SteadyTime unanswered_ = SteadyTime::max();  // since when no node of this cluster has answered
};

}  // namespace sluice::topology
