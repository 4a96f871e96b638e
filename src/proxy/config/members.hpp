/// Reading the members of a map into a value that settings.def describes.
#pragma once

#include <fmt/format.h>

#include <set>

#include "proxy/config/settings.hpp"
#include "sluice/error.hpp"

namespace sluice::proxy {

/// A text as YAML must have it written, with quotes where it needs them.
std::string quoted(std::string_view text);

/// What `read` throws without a line becomes a Problem of this one.
template <class Read>
auto with_line(std::size_t line, Read&& read) {
  try {
    return read();
  } catch (const Error& wrong) {
    throw Problem{line, std::string{wrong.message()}};
  }
}

/// The name nearest to a mistaken one, for the message: " (did you mean 'timeout'?)", or nothing.
std::string hint_for(std::string_view mistaken, std::span<const SettingRow> rows);

/// Each member at most once, each known. `where` is what the map is, for messages.
template <class Target>
void read_members(const Node& map, Target& target) {
  if (map.kind != Node::Kind::map)
    throw Problem{map.line, "write settings here, each as 'name: value' on a line of its own"};
  std::set<std::string_view> seen;
  for (const auto& member : map.items) {
    bool known = false;
    for_each_setting(target, [&](const SettingRow& row, auto kind, auto& value) {
      if (known || row.name != member.key) return;
      known = true;
      if (!seen.insert(row.name).second)
        throw Problem{member.line, fmt::format("'{}' is there twice; remove one", row.name)};
      try {
        with_line(member.line, [&] { kind.read(member, row, value); });
      } catch (const Problem& wrong) {
        throw Problem{wrong.line(), fmt::format("{}: {}", row.name, wrong.what())};
      }
    });
    if (!known)
      throw Problem{member.line, fmt::format("'{}' is no setting{}", member.key,
                                             hint_for(member.key, rows_of(target)))};
  }
}

}  // namespace sluice::proxy
