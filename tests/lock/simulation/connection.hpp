/// One connection: what travels on it, in order in each direction, and how it ends.
///
/// A connection that is cut loses what the client had not received, and of what the server had not
/// received all after some point; what is before that point gets there, perhaps much later. Either
/// side learns of the end in its own time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lock/simulation/dice.hpp"
#include "lock/simulation/sim_server.hpp"

namespace sluice::simulation {

/// How long things take on a line.
struct LineTerms {
  std::chrono::nanoseconds longest_delay{};    ///< one way; one in twenty takes five times that
  std::chrono::nanoseconds longest_late{};     ///< how late something gets there after a cut
  std::chrono::nanoseconds slowness{};         ///< of whatever the server says
  std::chrono::nanoseconds longest_unaware{};  ///< until a side learns that it was cut
  bool push_after_reply =
      true;  ///< what a script publishes to its own caller comes behind its reply
};

class SimConnection : public std::enable_shared_from_this<SimConnection> {
 public:
  using Work = std::function<void()>;

  SimConnection(VirtualClock& clock, SimServer& server, Journal& journal, const Mutation& mutation,
                const LineTerms& terms, Dice dice);

  /// From the client: `arrives` runs at the server.
  void send(Work arrives);
  /// From the server: `arrives` runs where the client is.
  void say(Work arrives);
  /// At the server: runs `batch` and says the replies.
  void execute(const Batch& batch, std::function<void(const std::vector<Value>&)> answered);
  /// At the server: whatever is published goes to `heard`.
  void subscribe(const std::string& channel, std::function<void(const Message&)> heard);
  void unsubscribe(const std::string& channel) { subscriptions_.erase(channel); }
  /// At the server: the slots of all channels went to another node.
  void end_subscriptions() { subscriptions_.clear(); }

  /// The line is cut. After the returned time the client learns of it.
  std::chrono::nanoseconds cut();
  bool is_cut() const noexcept { return cut_; }
  /// The server learns of the end at once.
  void close();
  unsigned life() const noexcept { return life_; }
  /// How many requests were executed after the cut.
  std::size_t late() const noexcept { return late_; }

 private:
  std::chrono::nanoseconds delay();
  void arrive(std::uint64_t number, const Work& arrives);
  void reach_server(std::uint64_t number, const Work& arrives);
  void renew_behind(const Batch& batch);
  void reply(const std::vector<Value>& replies,
             std::function<void(const std::vector<Value>&)> answered);

  VirtualClock& clock_;
  SimServer& server_;
  Journal& journal_;
  const Mutation& mutation_;
  const LineTerms& terms_;
  Dice dice_;
  const unsigned life_;
  SteadyTime last_arrival_{};
  SteadyTime last_reply_{};
  SteadyTime read_again_at_ = SteadyTime::min();  // after the server has hung
  std::uint64_t sent_ = 0;
  std::uint64_t arrived_ = 0;
  std::uint64_t gets_through_ = 0;  // after a cut: up to this number
  std::chrono::nanoseconds lateness_{};
  bool cut_ = false;
  bool closed_ = false;  // the server has learnt that it is cut
  bool executing_ = false;
  std::size_t late_ = 0;
  std::vector<Work> pushes_;  // of the execution under way
  Batch last_renewal_;        // for the mutation that sends it once more
  std::map<std::string, Listener> subscriptions_;
};

}  // namespace sluice::simulation
