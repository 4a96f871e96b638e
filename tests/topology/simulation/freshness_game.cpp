/// One reader of simulated servers that replicate, and a judge who knows what each of them has.
///
/// Replicas stand still, fall behind, lose their master and do not know yet, come back empty,
/// answer late, not at all, or nonsense; a master comes back with other history, or a replica is
/// promoted and the reader hears of it later. A replica that is read from has all that was
/// acknowledged by the reader's master `max_lag` before, and all before the time that the reader
/// asks for. When all is well again replicas are read from.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "lock/simulation/dice.hpp"
#include "topology/freshness.hpp"
#include "topology/simulation/game.hpp"

namespace sluice::topology::simulation {
namespace {

using namespace std::chrono_literals;
using sluice::simulation::Dice;

class FreshnessGame {
 public:
  FreshnessGame(std::uint64_t seed, GameFigures& figures)
      : dice_(seed),
        servers_(2 + dice_.below(3)),
        max_lag_(100 + static_cast<int>(dice_.below(3'000))),
        freshness_({.max_lag = max_lag_, .preferred = static_cast<std::size_t>(dice_.below(5))}),
        figures_(figures) {
    servers_[0].is_master = true;
    for (auto& server : servers_) server.history = servers_[0].history;
    follow();
  }

  void play() {
    events_.every(7ms, [this] { write(); });
    events_.every(5ms, [this] { replicate(); });
    events_.every(11ms, [this] { read(); });
    events_.every(300ms, [this] {
      if (!is_well_) disturb();
    });
    run(20s);
    is_well_ = true;
    for (auto& server : servers_) server.stands = server.talks_nonsense = server.is_silent = false;
    known_ = truth_;
    freshness_.forget_all();
    follow();
    const auto before = served_;
    run(10s);  // answers are late now, too
    if (served_ == before) throw Wrong{"all is well, and no replica is read from"};
    figures_.questions = asked_;
    if (asked_ > 30 * 20 * servers_.size()) throw Wrong{fmt::format("{} questions", asked_)};
  }

 private:
  struct Server {
    bool is_master = false;
    std::uint64_t history = 1;
    std::uint64_t offset = 0;
    bool stands = false;  // hears nothing of its master
    bool is_linked = true;
    bool talks_nonsense = false;
    bool is_silent = false;
    std::uint64_t connection = 1;
  };
  struct Write {
    SteadyTime acknowledged;
    std::uint64_t offset;
  };

  SteadyTime now() const { return events_.now(); }
  static Endpoint endpoint(std::size_t server) {
    return {"10.0.0.1", static_cast<std::uint16_t>(1 + server)};
  }
  static std::size_t server_at(const Endpoint& endpoint) { return endpoint.port - 1U; }

  void run(std::chrono::nanoseconds time) {
    events_.run_until(
        now() + time, [this] { return freshness_.wakes(); }, [this] { act(); },
        [] { return false; });
  }

  std::chrono::microseconds way() {
    return std::chrono::microseconds{50 + dice_.below(dice_.chance(5) ? 700'000 : 3'000)};
  }

  void follow() {
    std::vector<Endpoint> replicas;
    for (std::size_t i = 0; i < servers_.size(); ++i)
      if (i != known_) replicas.push_back(endpoint(i));
    freshness_.follow(replicas);
  }

  void act() {
    for (const auto& question : freshness_.act(now())) {
      ++asked_;
      const auto to = question.replica ? server_at(*question.replica) : known_;
      const auto arrives = way();
      const auto returns = way();
      const auto connection = servers_[to].connection;
      events_.at(now() + arrives, [=, this, id = question.id] {
        const auto& server = servers_[to];
        if (server.is_silent || server.connection != connection) return;
        events_.at(now() + returns, [=, this, reply = answer_of(server)] {
          if (servers_[to].connection != connection) return;
          try {
            freshness_.answered(now(), id, reply);
          } catch (const Error&) {
            if (!reply.is_error()) throw Wrong{"an answer was not understood"};
          }
        });
      });
    }
  }

  static Value answer_of(const Server& server) {
    if (server.talks_nonsense) return Value::error("LOADING");
    return Value::bulk_string(fmt::format(
        "role:{}\r\nmaster_replid:{}\r\nmaster_repl_offset:{}\r\nslave_repl_offset:{}\r\n"
        "master_link_status:{}\r\n",
        server.is_master ? "master" : "slave", server.history, server.offset, server.offset,
        server.is_linked ? "up" : "down"));
  }

  void write() {
    if (dice_.chance(30)) return;
    auto& master = servers_[truth_];
    master.offset += 1 + dice_.below(300);
    writes_.push_back({now(), master.offset});
  }

  void replicate() {
    const auto& master = servers_[truth_];
    for (auto& server : servers_) {
      if (server.is_master || server.stands || dice_.chance(30)) continue;
      if (server.history != master.history || server.offset > master.offset) {
        server.offset = master.offset;  // as a whole
        server.history = master.history;
      }
      server.is_linked = true;
      server.offset += dice_.below(master.offset - server.offset + 1);
    }
  }

  void disturb() {
    auto& server = servers_[dice_.below(servers_.size())];
    switch (dice_.below(8)) {
      case 0: server.stands = !server.is_master && !server.stands; break;
      case 1: server.is_linked = server.is_master || !server.stands; break;
      case 2: server.talks_nonsense = !server.talks_nonsense; break;
      case 3: server.is_silent = !server.is_silent; break;
      case 4:
        if (!server.is_master) restart(server, 0, 1'000'000 + dice_.below(1'000));
        break;
      case 5:
        if (dice_.chance(20) && known_ == truth_) {  // the master, empty
          writes_.clear();
          restart(servers_[truth_], 0, ++histories_);
        }
        break;
      case 6:
        if (dice_.chance(30) && known_ == truth_) promote();
        break;
      default: break;
    }
  }

  /// Every connection to it is lost.
  void restart(Server& server, std::uint64_t offset, std::uint64_t history) {
    server.offset = offset;
    server.history = history;
    server.is_linked = server.is_master;
    ++server.connection;
    freshness_.forget(endpoint(static_cast<std::size_t>(&server - servers_.data())));
  }

  void promote() {
    const auto next = dice_.below(servers_.size());
    if (next == truth_) return;
    auto& heir = servers_[next];
    if (heir.history != servers_[truth_].history) return;
    servers_[truth_].is_master = false;
    servers_[truth_].stands = true;
    heir.is_master = true;
    heir.stands = false;
    heir.history = ++histories_;
    std::erase_if(writes_, [&](const Write& one) { return one.offset > heir.offset; });
    truth_ = next;
    events_.at(now() + std::chrono::milliseconds{dice_.below(2'000)}, [this] {
      known_ = truth_;
      freshness_.forget_all();
      follow();
    });
  }

  void read() {
    const auto as_of = dice_.chance(30) ? now() - std::chrono::milliseconds{dice_.below(2'000)}
                                        : SteadyTime::min();
    const auto* const picked = freshness_.pick(now(), as_of);
    // Between two masters the reader's own word is worth no more than a replica's.
    if (!picked || known_ != truth_) return;
    ++served_;
    const auto& replica = servers_[server_at(*picked)];
    std::uint64_t needed = 0;
    for (const auto& write : writes_)
      if (write.acknowledged < std::max(now() - max_lag_, as_of))
        needed = std::max(needed, write.offset);
    if (needed == 0) return;
    if (replica.history != servers_[truth_].history || replica.offset < needed)
      throw Wrong{fmt::format("{} is read from, with {} of {}, and has {} of {}",
                              to_string(*picked), replica.offset, replica.history, needed,
                              servers_[truth_].history)};
  }

  Dice dice_;
  Events events_;
  std::vector<Server> servers_;
  std::size_t truth_ = 0;  // the master
  std::size_t known_ = 0;  // as the reader knows it
  std::uint64_t histories_ = 1;
  std::vector<Write> writes_;  // that the master has
  const std::chrono::milliseconds max_lag_;
  Freshness freshness_;
  bool is_well_ = false;
  std::size_t asked_ = 0;
  std::size_t served_ = 0;
  GameFigures& figures_;
};

}  // namespace

Verdict play_freshness(std::uint64_t seed, GameFigures* figures) {
  return play<FreshnessGame>(seed, figures);
}

}  // namespace sluice::topology::simulation
