/// One client of simulated Sentinels and the servers that they watch, and a judge who knows the
/// truth.
///
/// Sentinels learn of a failover one after another, lose messages, die, hang, come back with what
/// they knew; the address of one may become that of a Sentinel of another deployment, which has a
/// master of the same name; an old master lives on as a master for eleven seconds, as was measured.
/// A master that
/// was replaced is left within half a second of the first message, or of the next poll; when all is
/// healed the client comes to the true master soon, and stays. Questions are few.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "lock/simulation/dice.hpp"
#include "topology/sentinel_watch.hpp"
#include "topology/simulation/game.hpp"

namespace sluice::topology::simulation {
namespace {

using namespace std::chrono_literals;
using sluice::simulation::Dice;

class SentinelGame {
 public:
  SentinelGame(std::uint64_t seed, GameFigures& figures)
      : dice_(seed),
        lies_(static_cast<unsigned>(dice_.chance(50) ? dice_.below(10) : 0)),
        has_epochs_(!dice_.chance(10)),
        servers_(2 + dice_.below(4)),
        sentinels_(3 + 2 * dice_.below(3)),
        stranger_(dice_.chance(30) ? dice_.below(sentinels_.size()) : nobody),
        watch_(seeds(), {.name = "m"}),
        figures_(figures) {
    servers_[0].is_master = true;
  }

  void play() {
    begun_ = now();
    const auto disturbed_until = begun_ + disturbed_for;
    events_.every(100ms, [this, disturbed_until] {
      if (now() < disturbed_until && dice_.chance(5)) disturb();
    });
    run_until(disturbed_until, [] { return false; });
    heal();
    const auto healed = now();
    if (!run_until(now() + converges_within, [this] { return watch_.master() == server(truth_); }))
      throw Wrong{fmt::format("the master is {}, not server {}: {}",
                              watch_.master() ? to_string(*watch_.master()) : "none", truth_,
                              watch_.why_not())};
    figures_.converged_ms = (now() - healed) / 1ms;
    // A Sentinel that comes back may know of a later failover, which FAILOVER TO has undone.
    run_until(now() + all_are_heard, [] { return false; });
    const auto asked = figures_.questions;
    run_until(now() + watched_for, [this] {
      if (watch_.master() != server(truth_)) throw Wrong{"the master was right, and is left"};
      return false;
    });
    if (figures_.questions - asked > (sentinels_.size() + 2) * 7)
      throw Wrong{fmt::format("{} questions in peace", figures_.questions - asked)};
  }

 private:
  enum class Life { well, hanging, dead };

  static constexpr auto disturbed_for = 60s;
  static constexpr auto converges_within = 4s;
  static constexpr auto all_are_heard = 2s;
  static constexpr auto watched_for = 5s;
  static constexpr auto old_master_lives = 11s;
  static constexpr auto left_when_heard = 500ms;
  static constexpr auto left_by_poll = 1'700ms;
  static constexpr std::size_t most_questions_a_second = 12;  // to one node

  static constexpr std::size_t nobody = 1'000;

  struct Server {
    Life life = Life::well;
    bool is_master = false;
    std::uint64_t turn = 0;  // counts what makes it master or replica
  };
  struct SimSentinel {
    Life life = Life::well;
    std::size_t master = 0;
    std::uint64_t epoch = 1;
    SteadyTime since{};  // when its life has changed
  };

  static Endpoint server(std::size_t i) {
    return {"10.0.0.1", static_cast<std::uint16_t>(6000 + i)};
  }
  static Endpoint sentinel(std::size_t i) {
    return {"10.0.0.2", static_cast<std::uint16_t>(7000 + i)};
  }
  std::vector<Endpoint> seeds() const {
    return {sentinel(0), sentinel(1)};  // the others are learned of
  }
  SteadyTime now() const { return events_.now(); }

  /// Another Sentinel than the one that is to be taken over: a stranger alone cannot be told.
  bool is_another_heard() const {
    const auto known = watch_.sentinels();
    for (std::size_t i = 0; i < sentinels_.size(); ++i)
      if (i != stranger_ && sentinels_[i].life == Life::well &&
          std::max(sentinels_[i].since, begun_) + 3s <= now() &&
          std::ranges::find(known, sentinel(i)) != known.end())
        return true;
    return false;
  }
  bool is_strange(std::size_t i) const { return is_taken_over_ && i == stranger_; }

  bool run_until(SteadyTime end, const std::function<bool()>& is_done) {
    return events_.run_until(
        end, [this] { return watch_.wakes(); },
        [this] {
          for (const auto& question : watch_.act(now())) ask(question);
        },
        is_done);
  }

  // What happens.

  void disturb() {
    if (watch_.master() && stranger_ != nobody && dice_.chance(20) && is_another_heard())
      is_taken_over_ = true;
    const auto any_server = dice_.below(servers_.size());
    auto& any_sentinel = sentinels_[dice_.below(sentinels_.size())];
    switch (dice_.below(10)) {
      case 0:
      case 1:
      case 2: return fail_over(truth_);
      case 3:
        servers_[truth_].life = dice_.chance(50) ? Life::dead : Life::hanging;
        events_.at(now() + 2s, [this, gone = truth_] {
          if (gone == truth_ && servers_[gone].life != Life::well) fail_over(gone);
        });
        return;
      case 4:
        if (servers_[any_server].life != Life::well) revive(any_server);
        return;
      case 5: return change(any_sentinel, Life::dead);
      case 6: return change(any_sentinel, Life::hanging);
      case 7:
      case 8: return change(any_sentinel, Life::well);
      default: return fail_over_to();
    }
  }

  void change(SimSentinel& one, Life life) {
    one.life = life;
    one.since = now();
  }

  std::size_t heir() {
    std::vector<std::size_t> heirs;
    for (std::size_t i = 0; i < servers_.size(); ++i)
      if (i != truth_ && servers_[i].life == Life::well && !servers_[i].is_master)
        heirs.push_back(i);
    return heirs.empty() ? truth_ : heirs[dice_.below(heirs.size())];
  }

  void fail_over(std::size_t old) {
    std::size_t well = 0;
    for (std::size_t i = 0; i < sentinels_.size(); ++i)
      if (sentinels_[i].life == Life::well && !is_strange(i)) ++well;
    const auto next = heir();
    if (well * 2 <= sentinels_.size() || next == old) return;
    truth_ = next;
    servers_[next].is_master = true;
    ++servers_[next].turn;
    const auto epoch = ++epoch_;
    bool is_first = true;
    for (std::size_t i = 0; i < sentinels_.size(); ++i) {
      if (sentinels_[i].life != Life::well || is_strange(i)) continue;
      const auto learns = is_first ? 0ns : dice_.upto(2s);
      events_.at(now() + learns, [this, i, old, next, epoch, is_first] {
        switch_to(i, old, next, epoch, is_first);
      });
      is_first = false;
    }
    if (servers_[old].life == Life::well) demote_later(old);
  }

  void switch_to(std::size_t i, std::size_t old, std::size_t next, std::uint64_t epoch,
                 bool is_first) {
    auto& told = sentinels_[i];
    if (told.epoch >= epoch || told.life != Life::well || is_strange(i)) return;
    told.master = next;
    told.epoch = epoch;
    const bool is_heard = dice_.chance(70);
    if (is_heard)
      watch_.heard(now(), fmt::format("m {} {} {} {}", server(old).host, server(old).port,
                                      server(next).host, server(next).port));
    watch_.heard(now(), "other 10.0.0.1 6000 10.0.0.1 6001");
    if (!is_first || !has_epochs_ || lies_ > 0 || told.since + 3s > now()) return;
    const auto turn = servers_[old].turn;
    events_.at(now() + (is_heard ? left_when_heard : left_by_poll), [this, i, old, epoch, turn] {
      if (sentinels_[i].life == Life::well && !is_strange(i) && sentinels_[i].since + 3s <= now() &&
          epoch == epoch_ && servers_[old].turn == turn && watch_.master() == server(old) &&
          watch_.sentinels().size() > i)
        throw Wrong{fmt::format("server {} is not left, though epoch {} is known", old, epoch)};
    });
  }

  void demote_later(std::size_t old) {
    events_.at(now() + old_master_lives, [this, old, turn = servers_[old].turn] {
      if (servers_[old].turn != turn || old == truth_) return;
      servers_[old].is_master = false;
      ++servers_[old].turn;
    });
  }

  /// FAILOVER TO, of which no Sentinel knows.
  void fail_over_to() {
    const auto next = heir();
    if (next == truth_ || servers_[truth_].life != Life::well) return;
    servers_[truth_].is_master = false;
    servers_[next].is_master = true;
    ++servers_[truth_].turn;
    ++servers_[next].turn;
    truth_ = next;
  }

  void revive(std::size_t i) {
    servers_[i].life = Life::well;
    if (i != truth_) demote_later(i);
  }

  void heal() {
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      servers_[i] = {.life = Life::well, .is_master = i == truth_, .turn = servers_[i].turn + 1};
    }
    // After FAILOVER TO the Sentinels may go on with the old one's name.
    const bool is_told = dice_.chance(70);
    if (is_told) ++epoch_;
    std::uint64_t latest = 0;
    std::size_t master = truth_;
    for (const auto& one : sentinels_)
      if (one.epoch >= latest) std::tie(latest, master) = std::pair{one.epoch, one.master};
    for (auto& one : sentinels_)
      one = {.life = Life::well,
             .master = is_told ? truth_ : master,
             .epoch = is_told ? epoch_ : latest};
  }

  // The network.

  void ask(const SentinelQuestion& question) {
    judge_question(question.node);
    const bool is_sentinel = question.to == SentinelQuestion::To::sentinel;
    const auto i = static_cast<std::size_t>(question.node.port - (is_sentinel ? 7000 : 6000));
    if (i >= 100) throw Wrong{to_string(question.node) + " of another deployment is asked"};
    const auto life = is_sentinel ? sentinels_[i].life : servers_[i].life;
    const auto end = [this, node = question.node] { in_flight_.erase(node); };
    if (life == Life::hanging) return events_.at(question.deadline - 1ns, end);
    if (life == Life::dead)
      return events_.at(now() + 1ms, [this, question, end] {
        end();
        watch_.failed(now(), question.id, "connection refused");
      });
    auto replies = is_sentinel ? sentinel_replies(i) : role_replies(i);
    if (dice_.chance(lies_)) replies.front() = Value::error("LOADING");
    events_.at(now() + 200us + dice_.upto(3ms),
               [this, question, end, replies = std::move(replies)] {
                 end();
                 watch_.answered(now(), question.id, replies);
               });
  }

  static Value words(std::vector<std::string> all) {
    Value::Items items;
    for (auto& word : all) items.push_back(Value::bulk_string(std::move(word)));
    return Value::array(std::move(items));
  }
  static std::string port(const Endpoint& endpoint) { return std::to_string(endpoint.port); }

  static std::vector<Value> strange_replies() {
    return {words({"10.0.0.3", "6900"}), words({"name", "m", "config-epoch", "1000"}),
            Value::array({words({"ip", "10.0.0.3", "port", "6901", "flags", "slave"})}),
            Value::array({words({"ip", "10.0.0.3", "port", "7900", "flags", "sentinel"})})};
  }

  std::vector<Value> sentinel_replies(std::size_t i) const {
    if (is_strange(i)) return strange_replies();
    const auto& told = sentinels_[i];
    Value::Items replicas;
    for (std::size_t j = 0; j < servers_.size(); ++j)
      if (j != told.master)
        replicas.push_back(words({"ip", server(j).host, "port", port(server(j)), "flags",
                                  servers_[j].life == Life::well ? "slave" : "s_down,slave"}));
    Value::Items others;
    for (std::size_t j = 0; j < sentinels_.size(); ++j)
      if (j != i)
        others.push_back(
            words({"ip", sentinel(j).host, "port", port(sentinel(j)), "flags", "sentinel"}));
    return {words({server(told.master).host, port(server(told.master))}),
            has_epochs_ ? words({"name", "m", "config-epoch", std::to_string(told.epoch)})
                        : Value::error("NOPERM"),
            Value::array(std::move(replicas)), Value::array(std::move(others))};
  }

  std::vector<Value> role_replies(std::size_t i) const {
    if (servers_[i].is_master)
      return {Value::array({Value::bulk_string("master"), Value::integer(1), Value::array({})})};
    return {Value::array({Value::bulk_string("slave"), Value::bulk_string(server(truth_).host),
                          Value::integer(server(truth_).port), Value::bulk_string("connected"),
                          Value::integer(1)})};
  }

  void judge_question(const Endpoint& node) {
    ++figures_.questions;
    if (!in_flight_.insert(node).second) throw Wrong{"two questions at a time to one node"};
    auto& asked = asked_[node];
    asked.push_back(now());
    if (asked.size() <= most_questions_a_second) return;
    if (asked.front() + 1s > now()) throw Wrong{"too many questions to " + to_string(node)};
    asked.pop_front();
  }

  Dice dice_;
  unsigned lies_;
  bool has_epochs_;
  std::vector<Server> servers_;
  std::vector<SimSentinel> sentinels_;
  const std::size_t stranger_;  // whose address another deployment gets
  bool is_taken_over_ = false;
  SteadyTime begun_{};
  std::size_t truth_ = 0;
  std::uint64_t epoch_ = 1;
  SentinelWatch watch_;
  GameFigures& figures_;
  Events events_;
  std::set<Endpoint> in_flight_;
  std::map<Endpoint, std::deque<SteadyTime>> asked_;
};

}  // namespace

Verdict play_sentinels(std::uint64_t seed, GameFigures* figures) {
  return play<SentinelGame>(seed, figures);
}

}  // namespace sluice::topology::simulation
