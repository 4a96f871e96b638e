/// What a seed plays: how many, for how long, and which faults there are. Each seed leaves out some
/// of them ("swarm testing", Groce and others, ISSTA 2012): what never fails hides what fails.
///
/// A profile has a name: "usual" has the faults that any network has, each of the others one more
/// kind of trouble (see all_troubles()).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lock/simulation/connection.hpp"
#include "sluice/mutex.hpp"

namespace sluice::simulation {

/// What may happen to a world beside the usual.
enum class Fault {
  cut,            ///< all connections of a process
  cut_lent,       ///< one of those that a process has beside
  stop,           ///< a process stands still for a while
  suspend,        ///< ... with its steady clock
  kill,           ///< a process, for ever
  kill_others,    ///< all processes but the first
  kill_stranger,  ///< a program with Redisson
  save,           ///< the server writes its data to disk
  restore,        ///< the server restarts with what it wrote
  lag,            ///< the replica gets nothing for a while
  promote,        ///< the replica takes over
  fill,           ///< the server has no memory for a while
  refuse,         ///< the server answers everybody with an error
  hang,           ///< the server reads nothing for some seconds, and then what has piled up
  outage,         ///< the server is away for some seconds
  end_outside,    ///< somebody deletes a lock, or all keys, or lets it expire
  operate,        ///< an operator looks at a lock, changes its permits, or forces it open
  spoil,          ///< somebody puts something else under the name of a lock
  set_wall,       ///< a process's wall clock is set
  move_slots,     ///< the slots of a cluster move to another node
};

struct Profile;

/// A kind of trouble.
struct Trouble {
  std::string_view name;
  std::string_view about;
  void (*add)(Profile& profile);
  /// That it is played with; empty: all.
  std::span<const std::string_view> primitives{};

  bool plays(std::string_view primitive) const;
};

std::span<const Trouble> all_troubles();
/// Throws std::invalid_argument.
const Trouble& trouble_named(std::string_view name);

struct Profile {
  Profile(std::uint64_t number, const Trouble& trouble);

  /// Nothing fails and nobody stands still; messages take their time, and patience may end.
  bool is_calm() const noexcept { return !cuts && !pauses && !restarts && faults.empty(); }
  std::string text() const;

  std::uint64_t seed;
  Dice dice;  ///< for all that is played
  std::string_view trouble;
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

  // Of the other profiles:
  std::vector<Fault> faults{};  ///< one of them at a time
  std::size_t most_faults = 1000;
  Durability durability{};
  unsigned bystanders = 0;
  std::uint32_t permits = 3;   ///< in all, where there are permits
  std::size_t strangers = 0;   ///< that act as Redisson's waiters do
  double drift = 0;            ///< how far a process's clock is off at most
  bool operators = false;      ///< change the number of permits
  bool cluster = false;        ///< the server is one
  bool throws = false;         ///< callbacks do
  bool patient = false;        ///< nobody gives up
  bool common_owners = false;  ///< actors of a process share one, and acquire twice at once
  std::chrono::seconds strangers_ahead{};   ///< their clocks
  bool even = false;                        ///< strangers get their share
  bool counters = false;                    ///< whatever the server loses, tokens rise
  bool strict = false;                      ///< how long a waiter is passed over is counted
  bool lasting = false;                     ///< no hold is lost without a cause
  bool outlives = false;                    ///< no wait without an end fails
  std::chrono::nanoseconds blocks{};        ///< a callback
  std::chrono::milliseconds other_lease{};  ///< of all names but the first
  std::chrono::nanoseconds longest_stop{};
  std::chrono::nanoseconds longest_hang{};  ///< of the server; 0: 2 to 5 s
  bool prompt = false;                      ///< no lock is free for long while somebody waits
  std::chrono::nanoseconds comes_late{};    ///< the first process
};

}  // namespace sluice::simulation
