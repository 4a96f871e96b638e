/// What rights are given by: the categories of commands, as ACL CAT tells them, and what a command
/// does with each of its keys. The rows are in command_rights.def.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "resp/command_table.hpp"

namespace sluice::resp {

/// One bit for each category.
using Categories = std::uint32_t;

struct Category {
  std::string_view name;
  Categories bit;
};
std::span<const Category> all_categories() noexcept;

/// Also of a command that is in no table: its flags tell.
Categories categories_of(const CommandSpec& spec);

/// What a command does with a key: of EXISTS nothing, since it neither tells nor changes what is in
/// it.
enum class KeyUse : std::uint8_t { nothing = 0, read = 1, write = 2, both = 3 };
constexpr bool covers(KeyUse allowed, KeyUse wanted) noexcept {
  return (static_cast<unsigned>(wanted) & ~static_cast<unsigned>(allowed)) == 0;
}
constexpr KeyUse operator|(KeyUse one, KeyUse other) noexcept {
  return static_cast<KeyUse>(static_cast<unsigned>(one) | static_cast<unsigned>(other));
}

/// Of the first of the keys that keys_of() finds, and of the others.
struct KeyUses {
  KeyUse first = KeyUse::both, others = KeyUse::both;
};
/// Of a command that is in no table and writes: both.
KeyUses uses_of(const CommandSpec& spec, std::span<const std::string_view> words);

}  // namespace sluice::resp
