#include "cli/lock_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "sluice/lock_info.hpp"

namespace sluice::cli {
namespace {

using std::chrono::milliseconds;

/// Names may hold any bytes; a terminal must not obey them.
std::string printable(const std::string& text) {
  const bool plain = std::ranges::none_of(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  return plain ? text : to_string(Value::bulk_string(text));
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : printable(text); }

/// The first word of the id and its number are enough to tell owners apart.
std::string short_owner(const std::string& owner) {
  const auto number = owner.size() > 32 ? owner.find_last_of(":-") : std::string::npos;
  if (number == std::string::npos) return or_dash(owner);
  return printable(owner.substr(0, 8) + owner.substr(number));
}

std::string duration(milliseconds time) {
  const auto seconds = time.count() / 1000;
  if (seconds < 60) return fmt::format("{}.{}s", seconds, time.count() % 1000 / 100);
  if (seconds < 3600) return fmt::format("{}m{:02}s", seconds / 60, seconds % 60);
  return fmt::format("{}h{:02}m", seconds / 3600, seconds / 60 % 60);
}

std::string held_for(milliseconds held) { return held.count() > 0 ? duration(held) : "-"; }
std::string left_of(milliseconds left) { return left.count() < 0 ? "no end" : duration(left); }

constexpr std::array headings{"NAME",  "KIND",  "OWNER", "HOST", "PID",
                              "ACTOR", "LABEL", "HELD",  "LEFT", "WAITERS"};
using Row = std::array<std::string, headings.size()>;

Row row_of(const WatchedLock& lock, const LockInfo::Holder* holder) {
  Row row;
  row.fill("-");
  row[0] = printable(lock.name);
  row[1] = to_string(lock.kind);
  row[9] = std::to_string(lock.info.waiters.size());
  if (!holder) return row;
  row[2] = short_owner(holder->owner.text);
  if (!holder->data.host.empty()) {
    row[3] = or_dash(holder->data.host);
    row[4] = std::to_string(holder->data.pid);
    row[5] = or_dash(holder->data.actor);
  }
  row[6] = or_dash(holder->data.label);
  row[7] = held_for(holder->held);
  row[8] = left_of(holder->left);
  return row;
}

std::string aligned(const std::vector<Row>& rows) {
  std::array<std::size_t, headings.size()> widths{};
  for (const Row& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i)
      text += fmt::format("{:<{}}  ", row[i], widths[i]);
    text += row.back() + '\n';
  }
  return text;
}

std::string person(const OwnerId& owner, const HolderData& data) {
  const std::string id = owner.text.empty() ? "" : ", owner " + owner.text;
  if (data.host.empty()) return printable("somebody who gives no name" + id);
  const std::string label = data.label.empty() ? "" : data.label + "@";
  const std::string actor = data.actor == "-" ? "" : ", " + data.actor;
  return printable(fmt::format("{}{} (pid {}{}){}", label, data.host, data.pid, actor, id));
}

Json actor_json(const OwnerId& owner, const HolderData& data,
                std::string_view owner_key = "owner") {
  return Json::object({{owner_key, owner.text},
                       {"host", data.host},
                       {"pid", data.pid},
                       {"actor", data.actor},
                       {"label", data.label}});
}

std::string names_of_holders(const WaitGraph& graph, std::size_t lock) {
  std::string names;
  for (const auto& hold : graph.holds) {
    if (hold.lock != lock) continue;
    names += (names.empty() ? "" : " and ") + printable(to_string(graph.actors[hold.actor]));
  }
  return names.empty() ? "nobody" : names;
}

/// In double quotes, as graphviz wants it.
std::string in_quotes(const std::string& text) { return to_string(Value::bulk_string(text)); }

}  // namespace

std::string table_of(const std::vector<WatchedLock>& locks) {
  std::vector<Row> rows(1);
  std::ranges::copy(headings, rows[0].begin());
  for (const auto& lock : locks) {
    if (lock.info.holders.empty()) rows.push_back(row_of(lock, nullptr));
    for (const auto& holder : lock.info.holders) rows.push_back(row_of(lock, &holder));
  }
  return aligned(rows);
}

std::string detail_of(const WatchedLock& lock) {
  std::string text = fmt::format("{}: {}", printable(lock.name), to_string(lock.kind));
  if (lock.info.token) text += fmt::format(", last token {}", lock.info.token->value);
  text += '\n';
  if (lock.info.holders.empty()) text += "  nobody holds it\n";
  const bool permits = lock.kind == LockKind::semaphore || lock.kind == LockKind::permits;
  for (const auto& holder : lock.info.holders) {
    text += fmt::format("  held by {}\n", person(holder.owner, holder.data));
    std::string line = fmt::format("{} {}", holder.entries,
                                   permits               ? "permit(s)"
                                   : holder.entries == 1 ? "entry"
                                                         : "entries");
    if (!permits && !holder.exclusive) line += ", to read";
    if (holder.held.count() > 0) line += "; held for " + duration(holder.held);
    text += fmt::format("          {}; lease ends in {} unless it is renewed\n", line,
                        left_of(holder.left));
  }
  std::size_t place = 0;
  for (const auto& waiter : lock.info.waiters)
    text += fmt::format("  {:>3}. waits: {}\n", ++place, person(waiter.owner, waiter.data));
  return text;
}

std::string text_of(const LockReport& report) {
  std::string text;
  const WaitGraph& graph = report.graph;
  for (const auto& wait : graph.waits)
    text += fmt::format("{} waits for '{}', held by {}\n",
                        printable(to_string(graph.actors[wait.actor])),
                        printable(graph.locks[wait.lock]), names_of_holders(graph, wait.lock));
  for (const auto& [parent, child] : graph.children)
    text += fmt::format("{} waits for the end of its child {}\n",
                        printable(to_string(graph.actors[parent])),
                        printable(to_string(graph.actors[child])));
  if (graph.waits.empty()) text += "nobody waits\n";
  for (const auto& deadlock : report.deadlocks) text += printable(to_string(deadlock)) + '\n';
  text += fmt::format("{} deadlock{}\n", report.deadlocks.size(),
                      report.deadlocks.size() == 1 ? "" : "s");
  return text;
}

std::string dot_of(const LockReport& report) {
  std::set<std::string> stuck;
  for (const auto& deadlock : report.deadlocks)
    for (const auto& step : deadlock.steps) stuck.insert({step.actor.id, "lock " + step.holds});
  const auto color = [&stuck](const std::string& id) {
    return stuck.contains(id) ? ", color=red" : "";
  };
  const WaitGraph& graph = report.graph;
  std::string text = "digraph locks {\n";
  for (std::size_t i = 0; i < graph.actors.size(); ++i)
    text += fmt::format("  a{} [label={}{}];\n", i, in_quotes(to_string(graph.actors[i])),
                        color(graph.actors[i].id));
  for (std::size_t i = 0; i < graph.locks.size(); ++i)
    text += fmt::format("  l{} [shape=box, label={}{}];\n", i, in_quotes(graph.locks[i]),
                        color("lock " + graph.locks[i]));
  for (const auto& wait : graph.waits)
    text += fmt::format("  a{} -> l{} [label=\"waits for\"];\n", wait.actor, wait.lock);
  for (const auto& hold : graph.holds)
    text += fmt::format("  l{} -> a{} [label=\"held by\"];\n", hold.lock, hold.actor);
  for (const auto& [parent, child] : graph.children)
    text += fmt::format("  a{} -> a{} [label=\"waits for its child\"];\n", parent, child);
  return text + "}\n";
}

std::string holders_of(const WatchedLock& lock) {
  std::string text;
  for (const auto& holder : lock.info.holders)
    text += (text.empty() ? "held by " : " and ") + person(holder.owner, holder.data);
  return text;
}

Json json_of(const WatchedLock& lock) {
  Json holders = Json::array();
  for (const auto& holder : lock.info.holders)
    holders.add(actor_json(holder.owner, holder.data)
                    .add("entries", holder.entries)
                    .add("exclusive", holder.exclusive)
                    .add("held_ms", holder.held.count())
                    .add("left_ms", holder.left.count()));
  Json waiters = Json::array();
  for (const auto& waiter : lock.info.waiters) waiters.add(actor_json(waiter.owner, waiter.data));
  Json json = Json::object({{"name", lock.name},
                            {"kind", to_string(lock.kind)},
                            {"holders", holders},
                            {"waiters", waiters}});
  if (lock.info.token) json.add("token", std::to_string(lock.info.token->value));
  return json;
}

Json json_of(const LockReport& report) {
  const WaitGraph& graph = report.graph;
  const auto edges = [&graph](const std::vector<WaitGraph::Edge>& some) {
    Json json = Json::array();
    for (const auto& edge : some)
      json.add(
          Json::object({{"actor", graph.actors[edge.actor].id}, {"lock", graph.locks[edge.lock]}}));
    return json;
  };
  Json actors = Json::array();
  for (const auto& actor : graph.actors)
    actors.add(actor_json(OwnerId{actor.id}, actor.data, "id"));
  Json children = Json::array();
  for (const auto& [parent, child] : graph.children)
    children.add(
        Json::object({{"parent", graph.actors[parent].id}, {"child", graph.actors[child].id}}));
  Json deadlocks = Json::array();
  for (const auto& deadlock : report.deadlocks) {
    Json steps = Json::array();
    for (const auto& step : deadlock.steps) {
      Json json = Json::object(
          {{"actor", step.actor.id}, {"holds", step.holds}, {"waits_for", step.waits_for}});
      steps.add(step.child ? json.add("child", step.child->id) : json);
    }
    deadlocks.add(Json::object({{"steps", steps}, {"text", to_string(deadlock)}}));
  }
  return Json::object({{"ok", report.deadlocks.empty()},
                       {"complete", report.complete},
                       {"actors", actors},
                       {"holds", edges(graph.holds)},
                       {"waits", edges(graph.waits)},
                       {"children", children},
                       {"deadlocks", deadlocks}});
}

}  // namespace sluice::cli
