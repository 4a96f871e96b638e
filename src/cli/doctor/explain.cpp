/// `sluice explain KEY`: where a key lies, and why.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/hash_slot.hpp"
#include "cli/command.hpp"
#include "cli/command_line/exit_code.hpp"
#include "cli/command_line/streams.hpp"
#include "cli/doctor/deployment.hpp"
#include "cli/output.hpp"
#include "cli/programs.hpp"
#include "sluice/store.hpp"

namespace sluice::cli {
namespace {

using topology::to_string;

/// Lines of a text, members of an object.
class Explanation {
 public:
  void say(std::string name, std::string text) {
    lines_.emplace_back(std::move(name), std::move(text));
  }
  void print_as(bool json, bool is_found) const {
    if (json) {
      Json object = Json::object({{"ok", is_found}});
      for (const auto& [name, text] : lines_) object.add(name, text);
      return print(object);
    }
    for (const auto& [name, text] : lines_) put("{:<10} {}\n", name, text);
  }

 private:
  std::vector<std::pair<std::string, std::string>> lines_;
};

std::string name_of(const topology::Node& node) {
  const auto where = node.endpoint ? to_string(*node.endpoint) : std::string{"an unknown address"};
  return fmt::format("{} ({})", where, node.id);
}

/// What its own CLUSTER NODES says of a slot that moves; empty: it does not.
std::string movement_of(const Servers& servers, const topology::Endpoint& owner,
                        std::uint16_t slot) {
  const auto nodes = servers.open_server(owner)->run({"CLUSTER", "NODES"}).get().as_text();
  for (const auto& [mark, text] : {std::pair{"->-", "is moving to"}, {"-<-", "is coming from"}}) {
    const auto begin = nodes.find(fmt::format("[{}{}", slot, mark));
    if (begin == std::string::npos) continue;
    const auto id = nodes.find(mark, begin) + 3;
    return fmt::format("{} node {}", text, nodes.substr(id, nodes.find(']', id) - id));
  }
  return {};
}

int explain_in_cluster(const Servers& servers, const std::string& key, Explanation& told) {
  const auto slot = hash_slot(key);
  const auto tag = hash_tag(key);
  told.say("slot", tag == key
                       ? fmt::format("{}, CRC16 of the whole key", slot)
                       : fmt::format("{}, CRC16 of '{}', what stands in its braces", slot, tag));
  const auto all = ask_nodes(servers);
  std::size_t views = 0, agreeing = 0;
  const auto* const owner = all.map.owner(slot);
  for (const auto& one : all.nodes) {
    if (!one.view || !one.view->is_ok) continue;
    ++views;
    for (const auto& node : one.view->nodes)
      for (const auto& range : node.slots)
        if (range.first <= slot && slot <= range.last && owner && node.node.id == owner->id)
          ++agreeing;
  }
  if (!owner) {
    told.say("master", fmt::format("none, by {} of {} nodes that answer", views, all.nodes.size()));
    return exit_check_failed;
  }
  told.say("master", name_of(*owner));
  told.say("why", fmt::format("config epoch {}, told by {} of {} nodes that answer",
                              all.map.epoch(slot), agreeing, views));
  std::string replicas;
  for (const auto* const replica : all.map.replicas_of(*owner))
    replicas += (replicas.empty() ? "" : ", ") + name_of(*replica);
  told.say("replicas",
           replicas.empty() ? "none: when the master is lost, so is the key" : replicas);
  if (owner->endpoint)
    if (const auto movement = movement_of(servers, *owner->endpoint, slot); !movement.empty())
      told.say("move", fmt::format("the slot {}", movement));
  return exit_ok;
}

int explain_by_sentinels(const Servers& servers, Explanation& told) {
  const auto all = ask_sentinels(servers);
  const topology::SentinelView* latest = nullptr;
  for (const auto& one : all)
    if (one.view && one.view->master && (!latest || one.view->epoch > latest->epoch))
      latest = &*one.view;
  if (!latest) {
    told.say("master", fmt::format("none is named by {} Sentinels", all.size()));
    return exit_check_failed;
  }
  std::size_t agreeing = 0;
  for (const auto& one : all) agreeing += one.view && one.view->master == latest->master ? 1 : 0;
  told.say("master", to_string(*latest->master));
  told.say("why", fmt::format("config epoch {}, named by {} of {} Sentinels", latest->epoch,
                              agreeing, all.size()));
  std::string replicas;
  for (const auto& replica : latest->replicas)
    replicas += (replicas.empty() ? "" : ", ") + to_string(replica);
  told.say("replicas",
           replicas.empty() ? "none: when the master is lost, so is the key" : replicas);
  return exit_ok;
}

int explain(const Globals& globals, const std::string& key) {
  const Servers servers{store_url(globals)};
  Explanation told;
  told.say("key", key);
  int code = exit_ok;
  switch (servers.kind()) {
    case Servers::Kind::cluster: code = explain_in_cluster(servers, key, told); break;
    case Servers::Kind::sentinels: code = explain_by_sentinels(servers, told); break;
    case Servers::Kind::alone:
      told.say("store", fmt::format("{}, where all keys are", open_store(globals)->describe()));
  }
  told.print_as(globals.json, code == exit_ok);
  return code;
}

}  // namespace

Command explain_command(const Globals& globals) {
  const auto key = std::make_shared<std::string>();
  return {.name = "explain",
          .summary = std::string{program_of("explain").summary},
          .arguments = {{"KEY", "The key", into(*key)}},
          .action = [&globals, key] { return explain(globals, *key); }};
}

}  // namespace sluice::cli
