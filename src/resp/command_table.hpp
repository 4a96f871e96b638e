/// The one table of commands: engine, client, proxy and COMMAND read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sluice::resp {

/// As Redis's COMMAND names them, and one of ours.
enum CommandFlag : std::uint32_t {
  flag_write = 1U << 0,
  flag_readonly = 1U << 1,
  flag_denyoom = 1U << 2,
  flag_admin = 1U << 3,
  flag_pubsub = 1U << 4,
  flag_noscript = 1U << 5,
  flag_blocking = 1U << 6,      ///< may wait on the server (BLPOP, XREAD BLOCK)
  flag_loading = 1U << 7,
  flag_stale = 1U << 8,
  flag_fast = 1U << 9,
  flag_no_auth = 1U << 10,
  flag_movablekeys = 1U << 11,  ///< keys are found by keys_of(), not by position
  flag_stateful = 1U << 12,     ///< ours: changes the connection (MULTI, SELECT, SUBSCRIBE), so it may not be multiplexed
};

struct CommandSpec {
  std::string_view name;        ///< lower case; a subcommand is "xgroup|create"
  int arity;                    ///< words including the name; negative: at least that many
  std::uint32_t flags;
  int first_key;                ///< position of the first key, 0: none
  int last_key;                 ///< of the last; negative: counted from the end
  int key_step;
  std::size_t index;            ///< place in all_commands()

  bool has(CommandFlag flag) const noexcept { return (flags & flag) != 0; }
  bool arity_fits(std::size_t words) const noexcept {
    return arity >= 0 ? words == static_cast<std::size_t>(arity) : words >= static_cast<std::size_t>(-arity);
  }
};

std::span<const CommandSpec> all_commands() noexcept;

/// By name in any case; null: no such command. "xgroup" and "xgroup|create" are both found. O(1).
const CommandSpec* find_command(std::string_view name) noexcept;

}  // namespace sluice::resp
