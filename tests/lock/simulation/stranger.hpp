/// A thread of a Java program with Redisson, as its waiters act: subscribed to the channel of the
/// lock it asks again when it hears of a release, one to three milliseconds later, or when the
/// lease that it was told is over.
#pragma once

#include <string>
#include <string_view>

#include "lock/simulation/dice.hpp"
#include "lock/simulation/sim_server.hpp"

namespace sluice::simulation {

class Stranger {
 public:
  /// `primitive`: mutex, multi, fair, shared (to write), semaphore or permit.
  Stranger(std::size_t number, std::string_view primitive, const std::string& name,
           VirtualClock& clock, SimServer& server, Journal& journal, Dice dice,
           std::chrono::seconds ahead);

  /// Begins to come and go. It holds 10 ms, and rests for up to 40.
  void start();
  /// Comes no more.
  void stop() { goes_on_ = false; }
  /// It stands still for ever: what is told to it is heard, and comes to nothing.
  void stand_still();
  /// It is gone.
  void forget();
  std::size_t entries() const noexcept { return entries_; }

 private:
  std::string now_text() const;
  void ask();
  void ask_soon();
  /// Nothing: it is in; else when to ask again, if nothing is heard.
  std::optional<std::chrono::milliseconds> try_to_enter();
  void enter();
  void leave();
  void give_back();

  const std::string who_;
  const std::string_view primitive_;
  const std::string name_;
  VirtualClock& clock_;
  SimServer& server_;
  Journal& journal_;
  Dice dice_;
  const std::chrono::seconds ahead_;  ///< of the server's clock
  Listener listener_;
  Clock::TimerId timer_ = 0;
  bool goes_on_ = true;
  bool waits_ = false;
  bool is_in_ = false;
  bool still_ = false;
  std::size_t entries_ = 0;
  std::size_t visits_ = 0;
};

}  // namespace sluice::simulation
