#include "resp/server_words.hpp"

#include <array>

namespace sluice::resp {
namespace {

struct StateWords {
  ServerState state;
  std::string_view code;
  std::string_view own{};      ///< what a server says behind it; empty: it is followed by data
  bool code_is_enough = true;  ///< where no script has run
};

// Redis 6.0 to 8, Valkey 7.2 to 8. The names of both are left out where they differ in that alone.
constexpr std::array state_words{
    StateWords{ServerState::moved, "MOVED "},
    StateWords{ServerState::asking, "ASK "},
    StateWords{ServerState::moving, "TRYAGAIN ", "Multiple keys request during rehashing of slot"},
    StateWords{ServerState::down, "CLUSTERDOWN ", "The cluster is down"},
    StateWords{ServerState::down, "CLUSTERDOWN ", "Hash slot not served"},
    StateWords{ServerState::down, "MASTERDOWN ", "Link with MASTER is down"},
    StateWords{ServerState::loading, "LOADING ", " is loading the dataset in memory"},
    StateWords{ServerState::replica, "READONLY ", "You can't write against a read only"},
    StateWords{ServerState::replica, "READONLY ", "Can not run script with write flag"},
    StateWords{ServerState::demoted, "UNBLOCKED ", "instance state changed", false},
    StateWords{ServerState::busy, "BUSY ", " is busy running a script"},
    StateWords{ServerState::locked, "NOAUTH ", "Authentication required"},
    StateWords{ServerState::locked, "WRONGPASS ", "invalid username-password pair"},
    StateWords{ServerState::locked, "NOPERM ", "this user has no permissions"},
    StateWords{ServerState::locked, "NOPERM ", "No permissions to access a"},
    StateWords{ServerState::locked, "NOPERM ", "User "},
    StateWords{ServerState::unscripted, "NOSCRIPT ", "No matching script"},
    StateWords{ServerState::refusing, "NOREPLICAS ", "Not enough good replicas to write"},
    StateWords{ServerState::refusing, "MISCONF ", "Redis is configured to save RDB snapshots"},
    StateWords{ServerState::refusing, "MISCONF ", "Errors writing to the AOF file"},
    StateWords{ServerState::full, "OOM ", "allow-oom flag is not set"},
};

}  // namespace

bool runs_script(const CommandSpec* command) noexcept {
  return command && (command->name.starts_with("eval") || command->name.starts_with("fcall"));
}

std::optional<ServerState> state_told(std::string_view error, bool of_script) noexcept {
  // A script that was refused in its middle has perhaps written before.
  if (error.find("@user_script") != error.npos) return std::nullopt;
  for (const auto& row : state_words) {
    if (!error.starts_with(row.code)) continue;
    const bool is_own = error.find(row.own) != error.npos;
    if (is_own || (!of_script && row.code_is_enough)) return row.state;
  }
  return std::nullopt;
}

bool is_passing(ServerState state) noexcept { return state <= ServerState::demoted; }

}  // namespace sluice::resp
