#include "proxy/memcached/commands.hpp"

#include <algorithm>
#include <limits>

#include "base/integer.hpp"

namespace sluice::proxy {
namespace {

using enum MemcachedKind;

// The frequent ones first: the table is searched from its beginning.
constexpr MemcachedCommand command_rows[] = {
#define COMMAND(name, kind, least, most, key_at, silent_from) \
  {name, kind, least, most, key_at, silent_from},
#include "proxy/memcached/commands.def"
#undef COMMAND
};

constexpr std::uint64_t most_length = std::numeric_limits<std::int32_t>::max() - 2;

constexpr std::string_view wrong_command = "ERROR\r\n";
constexpr std::string_view wrong_line = "CLIENT_ERROR bad command line format\r\n";

bool is_meta(const MemcachedCommand& command) noexcept {
  return command.kind == meta_get || command.kind == meta_set || command.kind == meta_change ||
         command.kind == meta_debug;
}

/// A C string ends with a NUL, a line with LF, and the rest could stand in a reply.
bool has_control_character(Words line) noexcept {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  return std::ranges::any_of(
      line, [=](std::string_view word) { return std::ranges::any_of(word, is_control); });
}

bool has_long_key(const MemcachedCommand& command, Words line) noexcept {
  if (command.key_at == 0) return false;
  const bool many = command.kind == get || command.kind == get_and_touch;
  return std::ranges::any_of(
      line.subspan(command.key_at, many ? std::dynamic_extent : 1),
      [](std::string_view key) { return key.size() > longest_memcached_key; });
}

/// Digits that make a number up to `most`; with `negative` a '-' may stand before them.
bool is_number_up_to(std::string_view text, std::uint64_t most, bool negative = false) noexcept {
  if (negative && text.starts_with('-')) text.remove_prefix(1);
  const auto number = parse_integer<std::uint64_t>(text);
  return number && *number <= most;
}

std::optional<std::size_t> length_of(const MemcachedCommand& command, Words line) noexcept {
  const auto length = parse_integer<std::uint64_t>(line[command.kind == meta_set ? 2 : 4]);
  return length && *length <= most_length ? length : std::nullopt;
}

/// NAME KEY FLAGS TIME LENGTH [UNIQUE]
bool storage_line_is_right(const MemcachedCommand& command, Words line) noexcept {
  constexpr std::uint64_t most_flags = std::numeric_limits<std::uint32_t>::max();
  constexpr std::uint64_t most_time = std::numeric_limits<std::int32_t>::max();
  constexpr std::uint64_t most_unique = std::numeric_limits<std::uint64_t>::max();
  return is_number_up_to(line[2], most_flags) && is_number_up_to(line[3], most_time, true) &&
         (command.name != "cas" || is_number_up_to(line[5], most_unique));
}

/// memcached looks for the word wherever the line ends, and the versions differ in what they say.
bool has_noreply_in_another_place(const MemcachedCommand& command, Words line) noexcept {
  return command.silent_from != 0 && line.size() < command.silent_from &&
         line.size() > command.key_at + 1U && line.back() == "noreply";
}

/// What `stats sizes_enable` says has no end (1.6.18).
bool is_endless(const MemcachedCommand& command, Words line) noexcept {
  return command.kind == all_stats && line.size() > 1 && line[1].starts_with("sizes_");
}

// Compat::strict: the lines that twemproxy 0.5.0 takes, as a running one showed.

/// Of incr, decr and touch: a sign may stand alone.
bool is_twemproxys_number(std::string_view text) noexcept {
  return text == "-" || is_digits(text.starts_with('-') ? text.substr(1) : text);
}

bool is_short(std::string_view key) noexcept { return key.size() <= longest_memcached_key; }

/// Where the server's line would end, and twemproxy's does not.
bool has_line_end(Words line) noexcept {
  return std::ranges::any_of(line, [](std::string_view word) {
    return word.find_first_of(std::string_view{"\0\n\r", 3}) != std::string_view::npos;
  });
}

/// As many words as the command needs, and perhaps "noreply".
bool ends_right(const MemcachedCommand& command, Words line) noexcept {
  return line.size() == command.least ||
         (line.size() == command.least + 1U && line.back() == "noreply");
}

}  // namespace

std::span<const MemcachedCommand> memcached_commands() noexcept { return command_rows; }

const MemcachedCommand* find_memcached_command(std::string_view name) noexcept {
  const auto* const row = std::ranges::find(command_rows, name, &MemcachedCommand::name);
  return row == std::end(command_rows) ? nullptr : row;
}

std::string_view fault_of(const MemcachedCommand& command, Words line) noexcept {
  if (line.size() < command.least) return wrong_command;
  if (command.most != 0 && line.size() > command.most)
    return is_meta(command) ? "CLIENT_ERROR options flags too long\r\n" : wrong_command;
  if (has_control_character(line)) return "CLIENT_ERROR the line has a control character\r\n";
  if (has_long_key(command, line)) return "CLIENT_ERROR a key is longer than 250 bytes\r\n";
  if (has_noreply_in_another_place(command, line))
    return "CLIENT_ERROR noreply stands in the place of another word\r\n";
  if (command.kind == store && !storage_line_is_right(command, line)) return wrong_line;
  if (command.has_data() && !length_of(command, line)) return wrong_line;
  if (is_endless(command, line))
    return "CLIENT_ERROR its reply has no end: ask the server itself\r\n";
  return {};
}

std::size_t memcached_data_size(const MemcachedCommand& command, Words line) noexcept {
  return length_of(command, line).value_or(0);
}

void append_memcached_line(std::string& out, Words line) {
  for (const auto& word : line) {
    out += word;
    out += &word == &line.back() ? "\r\n" : " ";
  }
}

bool twemproxy_takes(const MemcachedCommand& command, Words line) noexcept {
  if (line.size() < command.least || has_line_end(line)) return false;
  switch (command.kind) {
    case get: return std::ranges::all_of(line.subspan(1), is_short);
    case store:
      return is_short(line[1]) && is_digits(line[3]) && storage_line_is_right(command, line) &&
             length_of(command, line) && ends_right(command, line);
    case change:
      return is_short(line[1]) && ends_right(command, line) &&
             (command.least == 2 || is_twemproxys_number(line[2]));
    case version:
    case quit: return line.size() == 1;
    default: return false;
  }
}

}  // namespace sluice::proxy
