/// The table of all settings (settings.def), joined to the members that its rows name.
#pragma once

#include <fmt/format.h>

#include <array>
#include <set>
#include <span>
#include <tuple>
#include <type_traits>

#include "proxy/config/kinds.hpp"
#include "sluice/error.hpp"

namespace sluice::proxy::config {

/// A row and its member of `Target`.
template <class Kind_, auto member_>
struct Setting {
  using Kind = Kind_;
  static constexpr auto member = member_;
  SettingRow row;
};

/// A tuple of Setting, in the order of the table.
template <class Target>
struct Table;

#define SETTING(member, Kind, written, lowest, highest, whose, does)                           \
  Setting<kinds::Kind, &Target::member>{{#member, kinds::Kind::name, written, lowest, highest, \
                                         Origin::whose, kinds::Kind::secret, does}},
template <>
struct Table<PoolSettings> {
  using Target = PoolSettings;
  static constexpr std::tuple settings{
#define POOL
#include "proxy/config/settings.def"
#undef POOL
  };
};
template <>
struct Table<ProcessSettings> {
  using Target = ProcessSettings;
  static constexpr std::tuple settings{
#define PROCESS
#include "proxy/config/settings.def"
#undef PROCESS
  };
};
template <>
struct Table<TlsSettings> {
  using Target = TlsSettings;
  static constexpr std::tuple settings{
#define TLS
#include "proxy/config/settings.def"
#undef TLS
  };
};
template <>
struct Table<UserSettings> {
  using Target = UserSettings;
  static constexpr std::tuple settings{
#define USER
#include "proxy/config/settings.def"
#undef USER
  };
};
#undef SETTING

template <class Target>
std::span<const SettingRow> rows_of() {
  static constexpr auto rows = std::apply(
      [](const auto&... settings) { return std::array{settings.row...}; }, Table<Target>::settings);
  return rows;
}

/// Calls visit(row, kind, member...) for each setting, in the order of the table: the member of
/// each of the targets, which are of one type.
template <class Visit, class Target, class... Targets>
void for_each_setting(Visit&& visit, Target& target, Targets&... targets) {
  const auto call = [&]<class Kind, auto member>(const Setting<Kind, member>& setting) {
    visit(setting.row, Kind{}, target.*member, targets.*member...);
  };
  std::apply([&](const auto&... settings) { (call(settings), ...); },
             Table<std::remove_const_t<Target>>::settings);
}

/// A change of these takes a restart or an upgrade; of `workers` a reload is refused.
inline constexpr std::array<std::string_view, 4> fixed_settings{"workers", "metrics", "admin",
                                                                "reuseport"};

/// A text as it stands in YAML, in quotes where it needs them.
std::string quoted(std::string_view text);

/// An Error that `read` throws becomes a Problem of this line.
template <class Read>
auto with_line(std::size_t line, Read&& read) {
  try {
    return read();
  } catch (const Error& wrong) {
    throw Problem{line, std::string{wrong.message()}};
  }
}

/// "; did you mean 'timeout'?", or nothing.
std::string hint_for(std::string_view mistaken, std::span<const SettingRow> rows);

/// Reads a map into the settings that it names: each known, each at most once. Throws Problem.
template <class Target>
void read_members(const Node& map, Target& target) {
  if (map.kind != Node::Kind::map)
    throw Problem{map.line, "write settings here, each as 'name: value' on a line of its own"};
  std::set<std::string_view> seen;
  for (const auto& member : map.items) {
    bool known = false;
    const auto read = [&](const SettingRow& row, auto kind, auto& value) {
      if (known || row.name != member.key) return;
      known = true;
      if (!seen.insert(row.name).second)
        throw Problem{member.line, fmt::format("'{}' is there twice; remove one", row.name)};
      try {
        with_line(member.line, [&] { kind.read(member, row, value); });
      } catch (const Problem& wrong) {
        throw Problem{wrong.line(), fmt::format("{}: {}", row.name, wrong.what())};
      }
    };
    for_each_setting(read, target);
    if (!known)
      throw Problem{member.line, fmt::format("'{}' is no setting{}", member.key,
                                             hint_for(member.key, rows_of<Target>()))};
  }
}

}  // namespace sluice::proxy::config
