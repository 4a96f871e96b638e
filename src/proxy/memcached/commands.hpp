/// The table of memcached's commands, and what their lines say.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "proxy/protocol/protocol.hpp"

namespace sluice::proxy {

enum class MemcachedKind : std::uint8_t {
  get,            ///< keys to the end of the line
  get_and_touch,  ///< the same behind a time
  store,          ///< with a block of data
  change,         ///< one key, no data
  meta_get,
  meta_set,  ///< with a block of data
  meta_change,
  meta_debug,
  meta_no_op,
  version,
  quit,
  all_stats,
  all_ok,
  never,
};

struct MemcachedCommand {
  std::string_view name;
  MemcachedKind kind;
  std::uint8_t least, most;  ///< words of the line; most 0: any number
  std::uint8_t key_at;
  std::uint8_t silent_from;  ///< so many words, the last of them "noreply": no reply; 0: never

  bool has_data() const noexcept {
    return kind == MemcachedKind::store || kind == MemcachedKind::meta_set;
  }
  /// `line` is without the data.
  bool is_silent(Words line) const noexcept {
    return silent_from != 0 && line.size() >= silent_from && line.back() == "noreply";
  }
};

std::span<const MemcachedCommand> memcached_commands() noexcept;
/// Lower case alone, as in memcached. Null: unknown.
const MemcachedCommand* find_memcached_command(std::string_view name) noexcept;

/// What to answer to a line that memcached 1.6 refuses, or that its versions could read in two
/// ways: no server gets to see it. Empty: the server gives one reply, or none if is_silent(). All
/// lines here are without their data.
std::string_view fault_of(const MemcachedCommand& command, Words line) noexcept;

/// Compat::strict: twemproxy 0.5.0 takes this line, and a server reads the same in it.
bool twemproxy_takes(const MemcachedCommand& command, Words line) noexcept;

/// REQUIRES: has_data(), and the line is without fault, or twemproxy takes it.
std::size_t memcached_data_size(const MemcachedCommand& command, Words line) noexcept;

/// In canonical form: single blanks, CR LF.
void append_memcached_line(std::string& out, Words line);

inline constexpr std::size_t longest_memcached_key = 250;
/// Without its line end. memcached gives up a connection on which more has come without one, but
/// for get and gets.
inline constexpr std::size_t longest_memcached_line = 2047;

}  // namespace sluice::proxy
