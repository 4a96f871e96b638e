/// The tables of all settings (settings.def), joined to the members that their rows name.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "proxy/config/config.hpp"
#include "proxy/config/document.hpp"
#include "sluice/error.hpp"

namespace sluice::proxy::config {

enum class Origin : std::uint8_t { twemproxy, sluice };

/// One row of settings.def.
struct SettingRow {
  std::string_view name;
  std::string_view kind;
  std::string_view default_text;
  std::uint64_t least;
  std::uint64_t most;
  Origin origin;
  bool is_yaml;  ///< a list or a map: its text needs no quotes
  std::string_view help;
};

/// A row and its member of `Target`.
template <class Target>
struct Setting : SettingRow {
  void (*read)(const Node& node, const SettingRow& row, Target& target);
  std::string (*text)(const Target& target);
  bool (*is_same)(const Target& one, const Target& other);
};

/// Of PoolSettings, ProcessSettings, TlsSettings, LimitSettings, MirrorSettings and UserSettings,
/// in the order of the table.
template <class Target>
std::span<const Setting<Target>> settings_of();

/// Reads a map into the settings that it names: each known, each at most once. Throws Problem.
template <class Target>
void read_members(const Node& map, Target& target);

/// A change of these takes a restart or an upgrade; of `workers` a reload is refused.
inline constexpr std::array<std::string_view, 4> fixed_settings{"workers", "metrics", "admin",
                                                                "reuseport"};

/// An Error that `read` throws becomes a Problem of this line.
template <class Read>
auto with_line(std::size_t line, Read&& read) {
  try {
    return read();
  } catch (const Error& wrong) {
    throw Problem{line, std::string{wrong.message()}};
  }
}

}  // namespace sluice::proxy::config
