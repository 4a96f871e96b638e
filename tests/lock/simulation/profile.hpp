/// What a seed plays: how many, for how long, and which faults there are. Each seed leaves out some
/// of them ("swarm testing", Groce and others, ISSTA 2012): what never fails hides what fails.
#pragma once

#include "lock/simulation/connection.hpp"
#include "sluice/mutex.hpp"

namespace sluice::simulation {

struct Profile {
  explicit Profile(std::uint64_t seed);

  /// Nothing fails and nobody stands still; messages take their time, and patience may end.
  bool is_calm() const noexcept { return !cuts && !pauses && !restarts; }
  std::string text() const;

  Dice dice;  ///< for all that is played
  std::size_t processes;
  std::size_t actors;  ///< in each process
  std::size_t names;
  std::size_t rounds;  ///< of each actor
  std::chrono::milliseconds lease;
  bool watched;
  bool prefers_readers;
  HandOff hand_off;
  std::chrono::nanoseconds longest_hold;
  std::chrono::nanoseconds longest_rest;  ///< between two visits
  std::chrono::nanoseconds jitter;
  LineTerms line;
  bool cuts;      ///< connections
  bool pauses;    ///< processes stand still
  bool restarts;  ///< the server
  bool forgets;   ///< ... without its data, sometimes
  std::chrono::nanoseconds between_faults;
  std::chrono::nanoseconds faults_for;
};

}  // namespace sluice::simulation
