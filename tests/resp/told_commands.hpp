/// What a running server tells of its commands.
#pragma once

#include <algorithm>
#include <map>
#include <string>

#include "support/plain_client.hpp"

namespace sluice::test {

/// The entries of COMMAND, those of subcommands too, by name. Those of modules are left out: what
/// Redis 8 tells of its vector sets is that any number of words will do.
using ToldCommands = std::map<std::string, Value>;

inline void collect(const Value& entry, ToldCommands& told) {
  constexpr std::size_t flags = 2, subcommands = 9;
  const auto is_of_module = [](const Value& flag) { return flag.as_text() == "module"; };
  if (std::ranges::any_of(entry.as_items().at(flags).as_items(), is_of_module)) return;
  told[std::string{entry.as_items().at(0).as_text()}] = entry;
  for (const auto& sub : entry.as_items().at(subcommands).as_items()) collect(sub, told);
}

inline ToldCommands told_commands(PlainClient& client) {
  ToldCommands told;
  const auto reply = client.command({"COMMAND"});
  for (const auto& entry : reply.as_items()) collect(entry, told);
  return told;
}

}  // namespace sluice::test
