/// Tables of commands with the replies that they must give, in RESP3, and what they must log.
///
/// They run on the engine (commands_test) and, for the replies, on a real redis-server
/// (commands_redistest), so that a table cannot be wrong about Redis.
#pragma once

#include <span>
#include <string_view>

namespace sluice::engine {

struct CommandCase {
  std::string_view command;  ///< as words_of() reads it; "@250" lets 250 ms pass
  std::string_view reply;    ///< as to_string(Value) writes it
  /// What is logged, effects joined by "; ". Empty: nothing. "=": the command itself.
  std::string_view effects = "";
};

struct CommandTable {
  std::string_view name;
  std::span<const CommandCase> cases;
  /// Whether a redis-server gives the same: not where time passes or chance decides, nor where 7.2
  /// differs from 7.0.
  bool same_on_redis = true;
};

// One file each. A table begins with an empty database at 2023-11-14T22:13:20Z (1,700,000,000,000
// ms).
std::span<const CommandTable> string_tables();
std::span<const CommandTable> bit_tables();
std::span<const CommandTable> key_and_server_tables();
std::span<const CommandTable> hash_tables();
std::span<const CommandTable> list_tables();
std::span<const CommandTable> set_tables();
std::span<const CommandTable> sorted_set_tables();
std::span<const CommandTable> script_tables();
std::span<const CommandTable> script_library_tables();
std::span<const CommandTable> stream_tables();

inline constexpr std::span<const CommandTable> (*all_tables[])() = {
    string_tables, bit_tables,        key_and_server_tables, hash_tables,           list_tables,
    set_tables,    sorted_set_tables, script_tables,         script_library_tables, stream_tables};

}  // namespace sluice::engine
