#include "resp/command_rights.hpp"

#include <algorithm>
#include <vector>

#include "resp/letters.hpp"

namespace sluice::resp {
namespace {

struct CategoryRow {
  std::string_view name;
  std::string_view commands;
};
constexpr CategoryRow categories[] = {
#define CATEGORY(name, commands) {#name, commands},
#define USE(...)
#include "resp/command_rights.def"
#undef CATEGORY
#undef USE
};

struct UseRow {
  KeyUses uses;
  std::string_view commands;
};
constexpr UseRow uses[] = {
#define CATEGORY(...)
#define USE(first, others, commands) {{KeyUse::first, KeyUse::others}, commands},
#include "resp/command_rights.def"
#undef CATEGORY
#undef USE
};

enum CategoryPlace : std::uint8_t {
#define CATEGORY(name, commands) place_##name,
#define USE(...)
#include "resp/command_rights.def"
#undef CATEGORY
#undef USE
};
constexpr Categories bit_of(CategoryPlace place) noexcept { return Categories{1} << place; }

/// Calls `visit` with each command that `names` names.
template <class Visit>
void for_each_command(std::string_view names, Visit visit) {
  while (!names.empty()) {
    auto name = names.substr(0, names.find(' '));
    names.remove_prefix(std::min(name.size() + 1, names.size()));
    if (!name.ends_with('*')) {
      visit(*find_command(name));
      continue;
    }
    name.remove_suffix(1);
    for (const auto& spec : all_commands())
      if (spec.name.starts_with(name) && !spec.has(flag_container)) visit(spec);
  }
}

/// As Redis fills in what a command's flags imply.
Categories implied_by(std::uint32_t flags, bool is_script) noexcept {
  Categories implied = (flags & flag_fast) != 0 ? bit_of(place_fast) : bit_of(place_slow);
  if ((flags & flag_write) != 0) implied |= bit_of(place_write);
  if ((flags & flag_readonly) != 0 && !is_script) implied |= bit_of(place_read);
  if ((flags & flag_admin) != 0) implied |= bit_of(place_admin) | bit_of(place_dangerous);
  if ((flags & flag_pubsub) != 0) implied |= bit_of(place_pubsub);
  if ((flags & flag_blocking) != 0) implied |= bit_of(place_blocking);
  return implied;
}

struct Rights {
  Categories categories = 0;
  KeyUses uses;
};

KeyUses usual(const CommandSpec& spec) noexcept {
  const auto use = spec.has(flag_readonly) ? KeyUse::read : KeyUse::write;
  return {use, use};
}

const std::vector<Rights>& rights_table() {
  static const auto made = [] {
    std::vector<Rights> rights(all_commands().size());
    for (std::size_t place = 0; place < std::size(categories); ++place)
      for_each_command(categories[place].commands, [&](const CommandSpec& spec) {
        rights[spec.index].categories |= bit_of(static_cast<CategoryPlace>(place));
      });
    for (const auto& spec : all_commands()) {
      auto& row = rights[spec.index];
      row.categories |= implied_by(spec.flags, (row.categories & bit_of(place_scripting)) != 0);
      row.uses = usual(spec);
    }
    for (const auto& row : uses)
      for_each_command(row.commands,
                       [&](const CommandSpec& spec) { rights[spec.index].uses = row.uses; });
    return rights;
  }();
  return made;
}

/// With the option GET it tells what was there.
KeyUse use_of_set(std::span<const std::string_view> words) noexcept {
  constexpr std::size_t first_option = 3;
  const auto options = words.subspan(std::min(words.size(), first_option));
  return std::ranges::any_of(options, [](std::string_view word) { return is_word(word, "get"); })
             ? KeyUse::both
             : KeyUse::write;
}

/// With nothing but GET it reads.
KeyUse use_of_bitfield(std::span<const std::string_view> words) noexcept {
  for (std::size_t at = 2; at < words.size();) {
    const auto left = words.size() - at - 1;
    if (is_word(words[at], "get") && left >= 2)
      at += 3;
    else if (is_word(words[at], "overflow") && left >= 1)
      at += 2;
    else
      return KeyUse::both;
  }
  return KeyUse::read;
}

}  // namespace

std::span<const Category> all_categories() noexcept {
  static constexpr Category all[] = {
#define CATEGORY(name, commands) {#name, bit_of(place_##name)},
#define USE(...)
#include "resp/command_rights.def"
#undef CATEGORY
#undef USE
  };
  return all;
}

Categories categories_of(const CommandSpec& spec) {
  if (spec.index < rights_table().size()) return rights_table()[spec.index].categories;
  return implied_by(spec.flags, false) & ~(bit_of(place_fast) | bit_of(place_slow));
}

KeyUses uses_of(const CommandSpec& spec, std::span<const std::string_view> words) {
  if (spec.index >= rights_table().size()) return spec.has(flag_readonly) ? usual(spec) : KeyUses{};
  if (spec.name == "set") return {use_of_set(words), KeyUse::write};
  if (spec.name == "bitfield") return {use_of_bitfield(words), KeyUse::write};
  return rights_table()[spec.index].uses;
}

}  // namespace sluice::resp
