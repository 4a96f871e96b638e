// A hash table with open addressing, built by the compiler: four times as many slots as commands,
// so that nearly every name lies in its first slot, and one comparison finds it.
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

#define COMMAND(name, arity, flags, first, last, step, ...) \
  CommandSpec{name, arity, flags, first, last, step, 0, KeyRule::none, 0, {__VA_ARGS__}, {}},
#define MOVABLE(name, arity, flags, first, last, step, rule, at, ...) \
  CommandSpec{name, arity, flags, first, last, step, 0, KeyRule::rule, at, {__VA_ARGS__}, {}},
constexpr CommandSpec rows[] = {
#include "resp/commands.def"
};
#undef COMMAND
#undef MOVABLE

constexpr auto commands = [] {  // by hand: std::to_array nests deeper than clang goes
  std::array<CommandSpec, std::size(rows)> numbered{};
  for (std::size_t i = 0; i < numbered.size(); ++i) {
    numbered[i] = rows[i];
    numbered[i].index = i;
  }
  return numbered;
}();

constexpr std::size_t longest_name =
    std::ranges::max_element(commands, {}, [](const CommandSpec& spec) {
      return spec.name.size();
    })->name.size();

/// FNV-1a, 32 bits (Fowler, Noll, Vo), over lower-case letters.
constexpr std::uint32_t hash(std::string_view name, std::uint32_t seed = 2166136261U) noexcept {
  for (const char c : name) seed = (seed ^ static_cast<unsigned char>(lower(c))) * 16777619U;
  return seed;
}

constexpr std::size_t slot_count = 2048;
constexpr std::uint16_t empty_slot = 0xffff;
static_assert(commands.size() * 4 <= slot_count);

constexpr std::size_t slot_of(std::uint32_t hashed) noexcept {
  return (hashed ^ (hashed >> 16)) % slot_count;
}

constexpr auto slots = [] {
  std::array<std::uint16_t, slot_count> table{};
  table.fill(empty_slot);
  for (const auto& spec : commands) {
    auto slot = slot_of(hash(spec.name));
    while (table[slot] != empty_slot) slot = (slot + 1) % slot_count;
    table[slot] = static_cast<std::uint16_t>(spec.index);
  }
  return table;
}();

template <class Same>
const CommandSpec* look_up(std::uint32_t hashed, Same same) noexcept {
  for (auto slot = slot_of(hashed); slots[slot] != empty_slot; slot = (slot + 1) % slot_count)
    if (const auto& spec = commands[slots[slot]]; same(spec.name)) return &spec;
  return nullptr;
}

}  // namespace

std::span<const CommandSpec> all_commands() noexcept { return commands; }

std::span<const FlagName> flag_names() noexcept {
  return std::span{named_flags}.first<std::size(named_flags) - own_flags>();
}

const CommandSpec* find_command(std::string_view name) noexcept {
  if (name.size() > longest_name) return nullptr;
  return look_up(hash(name),
                 [name](std::string_view candidate) { return is_word(name, candidate); });
}

const CommandSpec* find_subcommand(const CommandSpec& spec, std::string_view name) noexcept {
  if (!spec.has(flag_container) || name.size() > longest_name) return nullptr;
  return look_up(hash(name, hash("|", hash(spec.name))), [&](std::string_view candidate) {
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
