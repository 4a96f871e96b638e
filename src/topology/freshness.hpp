/// Which replicas of one master have all that it had acknowledged a moment ago, by the word of
/// both. Decides without I/O, without threads and without a clock; who does the I/O drives it like
/// this:
///
///     for (const auto& question : freshness.act(now)) ...  // after each event, and at wakes()
///       INFO replication, to the master or to a replica -> answered(); no answer: failed()
///     the connection to a replica was lost: failed() for what was asked, and forget()
///     a read: pick(now, as_of), to be sent by the connection that the replica has answered on
///
/// The master is asked at t, and says how long its history is. All that was acknowledged before t
/// is in it. A replica that says later that it has so much of the same history (the same
/// replication id) has it, too: it has caught up with t. So nothing is compared but offsets, and
/// times of one clock. Both are asked in the same round; the replica's answer is held against the
/// master's of some rounds before, too.
///
/// Never fresh: a replica whose link to its master is down, that has never synced, that has other
/// history, that claims more than its master has, or says what is no answer. What was known is
/// forgotten when the master has other history than before.
///
/// Nobody is asked while nobody reads.
///
/// Threads: one at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/clock.hpp"
#include "sluice/value.hpp"
#include "topology/endpoint.hpp"

namespace sluice::topology {

/// Replicas of one master that are asked; the others are left out.
constexpr std::size_t most_followed = 16;

/// What a server says of its replication.
struct ReplicationView {
  bool is_master = false;
  std::string history;  ///< master_replid
  std::uint64_t offset = 0;
  bool is_linked = false;  ///< a replica: its master is connected, and it has synced
};
/// A reply to INFO replication. Throws Error{protocol}, effect none, for what is none.
ReplicationView replication_of(const Value& reply, const Endpoint& answerer);

struct FreshnessOptions {
  /// How long ago the time may be with which a replica has caught up.
  std::chrono::milliseconds max_lag{1'000};
  std::chrono::milliseconds answer_timeout{500};
  /// Which replica is preferred, where several are fresh: so that many processes share them.
  std::size_t preferred = 0;
};

struct FreshnessQuestion {
  std::uint64_t id = 0;
  std::optional<Endpoint> replica;  ///< nothing: the master
  SteadyTime deadline;
};

class Freshness {
 public:
  explicit Freshness(FreshnessOptions options) : options_(options) {}

  /// The replicas that there are now; of those that were there before all stays known.
  void follow(std::span<const Endpoint> replicas);

  std::vector<FreshnessQuestion> act(SteadyTime now);
  SteadyTime wakes() const;

  /// `now`: after the reply came. Throws Error for a reply that is no answer, which counts as
  /// failed.
  void answered(SteadyTime now, std::uint64_t question, const Value& reply);
  void failed(std::uint64_t question);
  /// It is not fresh until it has said so again.
  void forget(const Endpoint& replica);
  /// Another server is the master now.
  void forget_all();

  /// One that may be read from: it has caught up with a time that is no more than `max_lag` ago,
  /// and not before `as_of`. Null: none, ask the master. Keeps the questions going.
  const Endpoint* pick(SteadyTime now, SteadyTime as_of);
  /// With what time a replica has caught up; min(): it is not known.
  SteadyTime caught_up(const Endpoint& replica) const;
  /// A read has come lately: somebody is asked.
  bool is_wanted(SteadyTime now) const;

  /// Between two rounds.
  std::chrono::milliseconds period() const;

 private:
  /// So many answers of the master are remembered: those of replicas come later.
  static constexpr std::size_t most_marks = 16;
  struct Mark {
    SteadyTime asked;
    std::uint64_t offset;
  };
  struct Replica {
    Endpoint endpoint;
    std::optional<ReplicationView> said{};
    SteadyTime told{};  // when `said` came
    SteadyTime caught_up = SteadyTime::min();
    bool has_lied = false;  // by this connection
  };
  struct Asked {
    std::uint64_t id;
    std::optional<Endpoint> node;
    SteadyTime asked;
    SteadyTime deadline;
  };

  void expire(SteadyTime now);
  void take_master(const Asked& asked, ReplicationView said);
  void take_replica(SteadyTime now, const Asked& asked, ReplicationView said);
  void compare(Replica& replica) const;
  Replica* find(const Endpoint& endpoint);
  std::optional<Asked> take_question(std::uint64_t id);

  const FreshnessOptions options_;
  std::vector<Replica> replicas_;
  std::size_t used_ = 0;  // of replicas_, by the last read
  std::string history_;   // of the master; empty: not known
  std::deque<Mark> marks_;
  std::vector<Asked> in_flight_;
  std::uint64_t last_question_ = 0;
  SteadyTime wanted_ = SteadyTime::min();  // by the last read
  SteadyTime next_round_{};
};

}  // namespace sluice::topology
