/// The one table of commands: engine, client, proxy and COMMAND read it. The rows are in
/// commands.def.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace sluice::resp {

/// As Redis's COMMAND names them, and two of ours.
enum CommandFlag : std::uint32_t {
  flag_write = 1U << 0,
  flag_readonly = 1U << 1,
  flag_denyoom = 1U << 2,
  flag_admin = 1U << 3,
  flag_pubsub = 1U << 4,
  flag_noscript = 1U << 5,
  flag_blocking = 1U << 6,  ///< may wait on the server (BLPOP, XREAD BLOCK)
  flag_loading = 1U << 7,
  flag_stale = 1U << 8,
  flag_fast = 1U << 9,
  flag_no_auth = 1U << 10,
  flag_movablekeys = 1U << 11,  ///< keys are found by keys_of(), not by position
  flag_stateful = 1U << 12,     ///< ours: changes the connection, so it may not be multiplexed
  flag_container = 1U << 13,    ///< ours: has subcommands, which are rows of their own
  flag_no_multi = 1U << 14,
  flag_allow_busy = 1U << 15,
  flag_no_mandatory_keys = 1U << 16,
  flag_no_async_loading = 1U << 17,
  flag_skip_monitor = 1U << 18,
  flag_skip_slowlog = 1U << 19,
  flag_asking = 1U << 20,
};

/// Where keys are that have no fixed position.
enum class KeyRule : std::uint8_t {
  none,
  counted,   ///< a number at `rule_at`, then as many keys: EVAL, ZUNION
  streams,   ///< half of the words behind STREAMS: XREAD
  stored,    ///< the word behind STORE or STOREDIST: GEORADIUS
  sorted,    ///< the word behind STORE, where BY, GET and LIMIT have been stepped over: SORT
  migrated,  ///< the words behind KEYS, when the key at the fixed position is empty: MIGRATE
};

struct CommandSpec {
  std::string_view name;  ///< lower case; a subcommand is "xgroup|create"
  int arity;              ///< words including the name; negative: at least that many
  std::uint32_t flags;
  int first_key;  ///< position of the first key, 0: none
  int last_key;   ///< of the last; negative: counted from the end
  int key_step;
  std::size_t index;  ///< place in all_commands()
  KeyRule rule = KeyRule::none;
  std::uint8_t rule_at = 0;

  bool has(CommandFlag flag) const noexcept { return (flags & flag) != 0; }
  bool arity_fits(std::size_t words) const noexcept {
    return arity >= 0 ? words == static_cast<std::size_t>(arity)
                      : words >= static_cast<std::size_t>(-arity);
  }
};

/// Sorted by name.
std::span<const CommandSpec> all_commands() noexcept;

/// By name in any case; null: no such command. "xgroup" and "xgroup|create" are both found. O(1).
const CommandSpec* find_command(std::string_view name) noexcept;
/// Of a container, by the subcommand's name in any case; null: it has none such. O(1).
const CommandSpec* find_subcommand(const CommandSpec& container, std::string_view name) noexcept;
/// The row that rules this request: the subcommand's where there is one. Null: unknown, or no
/// words.
const CommandSpec* find_command(std::span<const std::string_view> words) noexcept;

/// The positions of the keys in `words`, in `positions`, which is overwritten. False: the words do
/// not fit the command (too few of them, a count of keys beyond them), and nothing is known of
/// their keys. Of the sharded publish/subscribe family the channels are given, since they route
/// like keys. O(number of words).
bool keys_of(const CommandSpec& spec, std::span<const std::string_view> words,
             std::vector<std::size_t>& positions);

}  // namespace sluice::resp
