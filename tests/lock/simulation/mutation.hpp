/// Bugs that are put in on purpose, from outside: the simulation must find each that does not heal.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lock/simulation/branches.hpp"
#include "sluice/store.hpp"

namespace sluice::simulation {

/// In the script of that name the first `from` becomes `to`.
struct Swap {
  std::string_view script;
  std::string_view from;
  std::string_view to;
};

struct Mutation {
  std::string_view name;
  std::string_view about;
  std::string_view primitive = "mutex";  ///< that it is found with
  std::string_view profile = "usual";    ///< ... and this trouble
  std::vector<Swap> swaps{};
  bool renews_after_release = false;  ///< the last renewal is sent once more behind a release
  bool loses_grants = false;          ///< what is published as "grant" is heard by nobody
  bool subscribes_late = false;       ///< listen() is confirmed before the server subscribes
  bool hides_gaps = false;            ///< a lost connection leaves no gap
  bool wait_lies = false;             ///< WAIT says that a replica has what it has not
  bool stands_suspended = false;   ///< the steady clock stands still while a machine is suspended
  bool calls_back_inside = false;  ///< nothing goes on while a callback blocks
  bool hurries_renewals = false;   ///< the shortest lease of all bounds each renewal
  bool overtakes = false;          ///< durable requests go on connections of their own
  bool splits_owners = false;      ///< two acquires of one owner are those of two
  double drift = 0;                ///< of clocks, beyond the margin
  bool heals = false;              ///< the looks of those that wait make up for it within the bound
};

std::span<const Mutation> all_mutations();
/// Throws std::invalid_argument for a name that is none; "" is no mutation at all.
const Mutation& mutation_named(std::string_view name);

/// What scripts meet at a server, told by words put before their text.
struct ScriptTerms {
  bool full = false;  ///< commands that need memory are refused, as long as nothing is written
  unsigned bystanders = 0;  ///< that hear whatever is published
  unsigned node = 0;        ///< of a cluster; 0: it is none
  bool deaf = false;        ///< the slots came to this node, and no subscription yet

  friend bool operator==(const ScriptTerms&, const ScriptTerms&) = default;
};

/// The scripts as one mutation and the state of the server leave them.
class Scripts {
 public:
  /// `branches`: of which it is counted how often each is run; null: it is not counted.
  explicit Scripts(const Mutation& mutation, Branches* branches = nullptr)
      : mutation_(mutation), branches_(branches) {}

  /// Throws std::logic_error where a script has no such text any more: the mutation would test
  /// nothing.
  const Script& of(const Script& script, const ScriptTerms& terms = {});

 private:
  struct Made {
    const Script* original;
    ScriptTerms terms;
    std::string text;
    std::string sha1;
    Script script;
  };
  const Mutation& mutation_;
  Branches* const branches_;
  std::vector<std::unique_ptr<Made>> made_;
};

}  // namespace sluice::simulation
