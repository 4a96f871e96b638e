/// Commands that the table of resp does not know, as a proxy is taught them.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "resp/command_table.hpp"

namespace sluice::front {

/// None, unless a derived class knows some.
class OtherCommands {
 public:
  virtual ~OtherCommands() = default;

  /// What `index` of the first of them is: behind those of the table, and one for all commands that
  /// nobody knows.
  static std::size_t first_index() noexcept { return resp::all_commands().size() + 1; }

  virtual std::span<const resp::CommandSpec> all() const noexcept { return {}; }
  /// By name in any case. Null: there is none, or the table knows the command.
  virtual const resp::CommandSpec* find(std::string_view) const noexcept { return nullptr; }
  /// It looks at all keys of a server.
  virtual bool is_whole(const resp::CommandSpec&) const noexcept { return false; }
  /// What each command means, and their order, are the same.
  virtual bool is_same_as(const OtherCommands& other) const noexcept {
    return all().empty() && other.all().empty();
  }
};

}  // namespace sluice::front
