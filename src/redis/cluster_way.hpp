/// The way of one call through a cluster: where it is sent next, and what becomes of a refusal.
#pragma once

#include <string>

#include "base/random.hpp"
#include "redis/cluster.hpp"

namespace sluice::redis {

/// `of_script`: of a program's own (Request::runs_foreign_script()), which may say anything itself.
/// `slot`: of the call, or Operation::no_slot.
bool is_refusal(std::string_view error, bool of_script, int slot) noexcept;

class Way {
 public:
  /// `slot`: Operation::no_slot: any master will do.
  Way(Cluster& cluster, int slot, SteadyTime now)
      : cluster_(cluster), slot_(slot), next_(find(now)) {}

  /// Whom to ask now; without a node there is a pause first.
  const Course& next() const noexcept { return next_; }
  int slot() const noexcept { return slot_; }

  /// Another node has the slot now.
  void returned(SteadyTime now) { next_ = find(now); }
  /// REQUIRES: is_refusal(error). `of_script`: as there; it leads to nodes that are known, and
  /// nowhere else.
  void refused(const Node& by, const std::string& error, bool of_script = false);
  /// Nobody has the slot.
  void found_nobody();
  /// The time was over before a reply to the fence.
  void held_up();
  bool must_pause() const noexcept { return pauses_; }
  /// How long, before the next attempt; then it is found. In a crowd longer: each asks.
  std::chrono::microseconds pause() noexcept {
    return backoff_.next() * (cluster_.pausing() > crowd ? 3 : 1);
  }
  void paused(SteadyTime now);
  /// The refusal that was heard last, and the node that held the call up; empty: neither.
  const std::string& refusal() const noexcept { return refusal_; }

 private:
  /// So many redirections in a row are followed at once; more are a circle.
  static constexpr int most_hops = 4;
  static constexpr int crowd = 64;

  Course find(SteadyTime now);

  Cluster& cluster_;
  const int slot_;
  Course next_;
  int hops_ = 0;
  bool pauses_ = false;
  Backoff backoff_{std::chrono::milliseconds{2}, std::chrono::milliseconds{16}};
  std::string refusal_;
};

/// Before the first call by a new course: all calls by the one before have gone on. At `deadline`
/// the way must pause. REQUIRES: way.next().before
Task<void> pass_fence(Cluster& cluster, Way& way, SteadyTime deadline);

/// The turn of a call among those of its thread in a slot that gets another master: each finds its
/// course when the one before it has been sent, whichever fence that had to pass. Calls that no
/// thread waits for take no turns: each would go on inside of the one before it.
class Turn {
 public:
  Turn(Cluster& cluster, int slot, const Course& course);
  ~Turn() { sent(0); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  /// Another call comes before it.
  bool follows() const noexcept { return before_ != nullptr; }
  /// It has come, or it is `deadline`: those behind this one come after the one before it then.
  Task<void> wait(SteadyTime deadline);
  /// The call before it has passed the fence of that course.
  bool has_passed(const Course& course) const noexcept {
    return before_ && before_->version == course.version;
  }
  /// It has come; the course is found, and its fence passed. At `deadline` the way must pause.
  Task<void> come(Way& way, SteadyTime deadline);
  /// By a course of that version.
  void sent(std::uint64_t version);

 private:
  Cluster& cluster_;
  const Cluster::GateKey key_;
  std::shared_ptr<Gate> gate_;
  std::shared_ptr<Gate> before_;
};

/// There was no time for another attempt. `what`: was refused.
Error overdue(Cluster& cluster, const Way& way, const std::string& what, bool was_sent);
Error closed(const Cluster& cluster, bool was_sent);

/// Waits before the next attempt. Throws overdue() when there is no time for one before `deadline`,
/// closed() when the Store is.
Task<void> pause(Cluster& cluster, Way& way, const std::string& what, SteadyTime deadline,
                 bool was_sent);

}  // namespace sluice::redis
