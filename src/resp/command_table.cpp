// A hash table with open addressing, made when it is first asked: four times as many slots as
// commands, so that nearly every name lies in its first slot, and one comparison finds it.
#include "resp/command_table.hpp"

#include <algorithm>
#include <array>

#include "resp/letters.hpp"

namespace sluice::resp {
namespace {

// The flags as commands.def writes them.
constexpr std::uint32_t none = 0;
#define FLAG(name) constexpr std::uint32_t name = flag_##name;
#include "resp/command_flags.def"
#undef FLAG

#define FLAG(name) FlagName{flag_##name, #name},
constexpr FlagName named_flags[] = {
#include "resp/command_flags.def"
};
#undef FLAG
constexpr std::size_t own_flags = 2;

constexpr TimeoutRule seconds_at(std::int8_t at) { return {TimeoutRule::Form::seconds, at}; }
constexpr TimeoutRule behind_block{TimeoutRule::Form::block};

/// What is compiled in of a row has no pointer: with names as string views the table was 30 kB
/// larger in each program, a third of it relocations.
struct PackedRow {
  std::uint32_t flags;
  std::int8_t arity;
  std::int8_t first_key;
  std::int8_t last_key;
  std::int8_t key_step;
  KeyRule rule;
  std::uint8_t rule_at;
  TimeoutRule timeout;
};

#define COMMAND(name, arity, flags, first, last, step, ...) \
  PackedRow{flags, arity, first, last, step, KeyRule::none, 0, {__VA_ARGS__}},
#define MOVABLE(name, arity, flags, first, last, step, rule, at, ...) \
  PackedRow{flags, arity, first, last, step, KeyRule::rule, at, {__VA_ARGS__}},
constexpr PackedRow rows[] = {
#include "resp/commands.def"
};
#undef COMMAND
#undef MOVABLE

// Each ends with a zero.
#define COMMAND(name, ...) name "\0"
#define MOVABLE(name, ...) name "\0"
constexpr char names[] =
#include "resp/commands.def"
    ;
#undef COMMAND
#undef MOVABLE

/// FNV-1a, 32 bits (Fowler, Noll, Vo), over lower-case letters.
constexpr std::uint32_t hash(std::string_view name, std::uint32_t seed = 2166136261U) noexcept {
  for (const char c : name) seed = (seed ^ static_cast<unsigned char>(lower(c))) * 16777619U;
  return seed;
}

constexpr std::size_t slot_count = 2048;
constexpr std::uint16_t empty_slot = 0xffff;
static_assert(std::size(rows) * 4 <= slot_count);

constexpr std::size_t slot_of(std::uint32_t hashed) noexcept {
  return (hashed ^ (hashed >> 16)) % slot_count;
}

struct Table {
  std::array<CommandSpec, std::size(rows)> commands;
  std::array<std::uint16_t, slot_count> slots;
  std::size_t longest_name = 0;
};

Table unpacked() noexcept {
  Table table;
  table.slots.fill(empty_slot);
  const char* next = names;
  for (std::uint16_t index = 0; index < std::size(rows); ++index) {
    const auto& row = rows[index];
    const std::string_view name{next};
    table.commands[index] = {name,         row.arity,    row.flags, row.first_key,
                             row.last_key, row.key_step, index,     row.rule,
                             row.rule_at,  row.timeout,  {}};
    auto slot = slot_of(hash(name));
    while (table.slots[slot] != empty_slot) slot = (slot + 1) % slot_count;
    table.slots[slot] = index;
    table.longest_name = std::max(table.longest_name, name.size());
    next += name.size() + 1;
  }
  return table;
}

const Table& command_table() noexcept {
  static const Table made = unpacked();
  return made;
}

template <class Same>
const CommandSpec* look_up(const Table& table, std::uint32_t hashed, Same same) noexcept {
  for (auto slot = slot_of(hashed); table.slots[slot] != empty_slot; slot = (slot + 1) % slot_count)
    if (const auto& spec = table.commands[table.slots[slot]]; same(spec.name)) return &spec;
  return nullptr;
}

}  // namespace

std::span<const CommandSpec> all_commands() noexcept { return command_table().commands; }

std::span<const FlagName> flag_names() noexcept {
  return std::span{named_flags}.first<std::size(named_flags) - own_flags>();
}

const CommandSpec* find_command(std::string_view name) noexcept {
  const auto& known = command_table();
  if (name.size() > known.longest_name) return nullptr;
  return look_up(known, hash(name),
                 [name](std::string_view candidate) { return is_word(name, candidate); });
}

const CommandSpec* find_subcommand(const CommandSpec& spec, std::string_view name) noexcept {
  const auto& known = command_table();
  if (!spec.has(flag_container) || name.size() > known.longest_name) return nullptr;
  return look_up(known, hash(name, hash("|", hash(spec.name))), [&](std::string_view candidate) {
    const auto before = spec.name.size();
    return candidate.size() == before + 1 + name.size() && candidate.starts_with(spec.name) &&
           candidate[before] == '|' && is_word(name, candidate.substr(before + 1));
  });
}

const CommandSpec* find_command(std::span<const std::string_view> words) noexcept {
  if (words.empty()) return nullptr;
  const auto* spec = find_command(words[0]);
  if (spec == nullptr || words.size() < 2 || !spec->has(flag_container)) return spec;
  return find_subcommand(*spec, words[1]);
}

}  // namespace sluice::resp
