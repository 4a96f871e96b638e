/// The commands that no table of resp knows: those of the setting `commands`, then those of
/// modules.def.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "front/other_commands.hpp"
#include "proxy/config/config.hpp"
#include "resp/command_table.hpp"

namespace sluice::proxy {

class TaughtCommands final : public front::OtherCommands {
 public:
  explicit TaughtCommands(std::span<const CommandRule> settings);
  TaughtCommands(const TaughtCommands&) = delete;
  TaughtCommands& operator=(const TaughtCommands&) = delete;

  /// One for each rule; its name may end in '*'.
  std::span<const resp::CommandSpec> all() const noexcept override { return specs_; }
  std::span<const CommandRule> rules() const noexcept { return rules_; }
  /// By name in any case: the first rule that fits counts. Null: there is none, or the table knows
  /// the command.
  const resp::CommandSpec* find(std::string_view name) const noexcept override;
  bool is_whole(const resp::CommandSpec& spec) const noexcept override;
  bool is_same_as(const front::OtherCommands& other) const noexcept override;

 private:
  std::vector<CommandRule> rules_;
  std::vector<resp::CommandSpec> specs_;  // of each rule
};

}  // namespace sluice::proxy
