/// The commands that no table of resp knows: those of the setting `commands`, then those of
/// modules.def.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "proxy/config/config.hpp"
#include "resp/command_table.hpp"

namespace sluice::proxy {

class TaughtCommands {
 public:
  /// What `index` of the first of them is: behind those of the table, and one for all commands that
  /// nobody knows.
  static std::size_t first_index() noexcept { return resp::all_commands().size() + 1; }

  explicit TaughtCommands(std::span<const CommandRule> settings);
  TaughtCommands(const TaughtCommands&) = delete;
  TaughtCommands& operator=(const TaughtCommands&) = delete;

  /// One for each rule; its name may end in '*'.
  std::span<const resp::CommandSpec> all() const noexcept { return specs_; }
  std::span<const CommandRule> rules() const noexcept { return rules_; }
  /// By name in any case: the first rule that fits counts. Null: there is none, or the table knows
  /// the command.
  const resp::CommandSpec* find(std::string_view name) const noexcept;
  /// It looks at all keys of a server.
  bool is_whole(const resp::CommandSpec& spec) const noexcept;

 private:
  std::vector<CommandRule> rules_;
  std::vector<resp::CommandSpec> specs_;  // of each rule
};

}  // namespace sluice::proxy
