#include "proxy/memcached/commands.hpp"

#include <algorithm>
#include <limits>

#include "base/integer.hpp"

namespace sluice::proxy {
namespace {

using enum MemcachedKind;

// The frequent ones first: the table is searched from its beginning.
constexpr MemcachedCommand rows[] = {
#define COMMAND(name, kind, least, most, key_at) {name, kind, least, most, key_at},
#include "proxy/memcached/commands.def"
#undef COMMAND
};

constexpr std::uint64_t most_length = std::numeric_limits<std::int32_t>::max() - 2;
constexpr std::uint64_t most_flags = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t most_time = std::numeric_limits<std::int32_t>::max();
constexpr std::uint64_t most_unique = std::numeric_limits<std::uint64_t>::max();

std::size_t length_at(const MemcachedCommand& command) noexcept {
  return command.kind == meta_set ? 2 : 4;
}

/// NAME KEY FLAGS TIME LENGTH [UNIQUE]
bool storage_line_is_right(const MemcachedCommand& command, Words line) noexcept {
  return is_number_up_to(line[2], most_flags) && is_number_up_to(line[3], most_time, true) &&
         (command.name != "cas" || is_number_up_to(line[5], most_unique));
}

// Compat::strict: the lines that twemproxy 0.5.0 takes, as a running one showed.

/// Of incr, decr and touch: a sign may stand alone.
bool is_twemproxys_number(std::string_view text) noexcept {
  return text == "-" || is_digits(text.starts_with('-') ? text.substr(1) : text);
}

bool is_short(std::string_view key) noexcept { return key.size() <= longest_memcached_key; }

/// As many words as the command needs, and perhaps "noreply".
bool ends_right(const MemcachedCommand& command, Words line) noexcept {
  return line.size() == command.least ||
         (line.size() == command.least + 1U && line.back() == "noreply");
}

}  // namespace

std::span<const MemcachedCommand> memcached_commands() noexcept { return rows; }

const MemcachedCommand* find_memcached_command(std::string_view name) noexcept {
  const auto* const row = std::ranges::find(rows, name, &MemcachedCommand::name);
  return row == std::end(rows) ? nullptr : row;
}

bool is_number_up_to(std::string_view text, std::uint64_t most, bool negative) noexcept {
  if (negative && text.starts_with('-')) text.remove_prefix(1);
  const auto number = parse_integer<std::uint64_t>(text);
  return number && *number <= most;
}

std::optional<std::size_t> memcached_data_size(Words line) noexcept {
  const auto* const command = line.empty() ? nullptr : find_memcached_command(line[0]);
  if (command == nullptr || !command->has_data() || line.size() < command->least)
    return std::nullopt;
  const auto length = parse_integer<std::uint64_t>(line[length_at(*command)]);
  if (!length || *length > most_length) return std::nullopt;
  if (command->kind == store && !storage_line_is_right(*command, line)) return std::nullopt;
  return *length;
}

bool twemproxy_takes(const MemcachedCommand& command, Words line, bool has_data) noexcept {
  if (line.size() < command.least) return false;
  switch (command.kind) {
    case get: return std::ranges::all_of(line.subspan(1), is_short);
    case store:
      return has_data && is_short(line[1]) && is_digits(line[2]) && is_digits(line[3]) &&
             ends_right(command, line);
    case change:
      return is_short(line[1]) && ends_right(command, line) &&
             (command.least == 2 || is_twemproxys_number(line[2]));
    case version:
    case quit: return line.size() == 1;
    default: return false;
  }
}

}  // namespace sluice::proxy
