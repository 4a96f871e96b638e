/// The one table of commands: engine, client, proxy and COMMAND read it. The rows are in
/// commands.def.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::resp {

/// flag_write, flag_readonly ...: one bit for each row of command_flags.def.
enum FlagPlace : std::uint32_t {
#define FLAG(name) flag_place_##name,
#include "resp/command_flags.def"
#undef FLAG
};
enum CommandFlag : std::uint32_t {
#define FLAG(name) flag_##name = 1U << flag_place_##name,
#include "resp/command_flags.def"
#undef FLAG
};

struct FlagName {
  CommandFlag flag;
  std::string_view name;
};
/// As COMMAND names them; without ours.
std::span<const FlagName> flag_names() noexcept;

/// Where keys are that have no fixed position.
enum class KeyRule : std::uint8_t {
  none,
  counted,   ///< a number at `rule_at`, then as many keys, each `key_step` words: EVAL, MSETEX
  streams,   ///< half of the words behind STREAMS: XREAD
  stored,    ///< the word behind STORE or STOREDIST: GEORADIUS
  sorted,    ///< the word behind STORE, where BY, GET and LIMIT have been stepped over: SORT
  migrated,  ///< the words behind KEYS, when the key at the fixed position is empty: MIGRATE
  behind,    ///< the words behind `keyword`
};

/// Where a blocking command says how long it may wait.
struct TimeoutRule {
  enum class Form : std::uint8_t {
    none,
    seconds,  ///< the word at `at`, which counts from the end where it is negative
    block,    ///< milliseconds, behind the option BLOCK of XREAD and XREADGROUP
  };
  Form form = Form::none;
  std::int8_t at = 0;
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
  TimeoutRule timeout = {};
  std::string_view keyword = {};  ///< of KeyRule::behind, lower case

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

/// What Redis 7 says of words of which keys_of() knows nothing. REQUIRES: the arity fits.
std::string unknown_keys(const CommandSpec& spec, std::span<const std::string_view> words);

/// How long a command with flag_blocking may wait, as its words say; max(): for ever; 0: not known,
/// or a text that the server will refuse. Empty: it does not wait (XREAD without BLOCK).
std::optional<std::chrono::milliseconds> waiting_time(const CommandSpec& spec,
                                                      std::span<const std::string_view> words);
/// Which word says so; empty: none.
std::optional<std::size_t> place_of_waiting_time(const CommandSpec& spec,
                                                 std::span<const std::string_view> words);
/// The word that says `time`.
std::string waiting_text(const CommandSpec& spec, std::chrono::milliseconds time);

}  // namespace sluice::resp
