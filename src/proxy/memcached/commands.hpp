/// The table of memcached's commands, and what their lines say.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
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

  bool has_data() const noexcept {
    return kind == MemcachedKind::store || kind == MemcachedKind::meta_set;
  }
  bool takes_noreply() const noexcept {
    return kind == MemcachedKind::store || kind == MemcachedKind::change ||
           kind == MemcachedKind::all_ok;
  }
};

std::span<const MemcachedCommand> memcached_commands() noexcept;
/// Lower case alone, as in memcached. Null: unknown.
const MemcachedCommand* find_memcached_command(std::string_view name) noexcept;

/// The size of the data that follow this line, when it is one that memcached understands: then a
/// server takes the data as data, and not as commands. Empty: none follow.
std::optional<std::size_t> memcached_data_size(Words line) noexcept;

/// Compat::strict: twemproxy 0.5.0 takes this line. `line` is without the data, `has_data` tells
/// that they are there.
bool twemproxy_takes(const MemcachedCommand& command, Words line, bool has_data) noexcept;

inline constexpr std::size_t longest_memcached_key = 250;

/// Digits that make a number up to `most`; with `negative` a '-' may stand before them.
bool is_number_up_to(std::string_view text, std::uint64_t most, bool negative = false) noexcept;

}  // namespace sluice::proxy
