#include "proxy/redis/taught_commands.hpp"

#include <algorithm>
#include <sstream>
#include <string>

#include "proxy/config/command_rule.hpp"

namespace sluice::proxy {
namespace {

struct Module {
  const char* names;
  const char* rule;
};
#define MODULE(names, rule) {names, rule},
constexpr Module modules[] = {
#include "proxy/redis/modules.def"
};
#undef MODULE

}  // namespace

TaughtCommands::TaughtCommands(std::span<const CommandRule> settings)
    : rules_(settings.begin(), settings.end()) {
  for (const auto& [names, rule] : modules) {
    std::istringstream stream{names};
    for (std::string name; stream >> name;) rules_.push_back({name, rule});
  }
  for (const auto& rule : rules_) {
    auto& spec = specs_.emplace_back(*config::spec_of(rule));
    spec.index = first_index() + specs_.size() - 1;
  }
}

const resp::CommandSpec* TaughtCommands::find(std::string_view name) const noexcept {
  if (resp::find_command(name) != nullptr) return nullptr;  // its subcommand is unknown
  const auto rule = std::ranges::find_if(
      rules_, [&](const CommandRule& each) { return config::is_rule_for(each, name); });
  return rule == rules_.end() ? nullptr : &specs_[static_cast<std::size_t>(rule - rules_.begin())];
}

bool TaughtCommands::is_whole(const resp::CommandSpec& spec) const noexcept {
  return spec.index >= first_index() && config::is_whole(rules_[spec.index - first_index()]);
}

bool TaughtCommands::is_same_as(const front::OtherCommands& other) const noexcept {
  const auto* const taught = dynamic_cast<const TaughtCommands*>(&other);
  return taught && std::ranges::equal(rules_, taught->rules_);
}

}  // namespace sluice::proxy
