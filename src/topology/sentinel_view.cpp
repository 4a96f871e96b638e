#include "topology/sentinel_view.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/integer.hpp"

namespace sluice::topology {
namespace {

[[noreturn]] void refuse_answer(const Endpoint& answerer, std::string_view command,
                                std::string_view why) {
  throw Error{Errc::protocol,
              fmt::format("{} answers {} with {}", to_string(answerer), command, why)};
}

Endpoint told_endpoint(std::string_view host, std::string_view port, const Endpoint& answerer) {
  auto told = told_host(host, answerer);
  if (!told || host.empty()) refuse_answer(answerer, "SENTINEL", "a server without an address");
  return {std::move(*told), told_port(port)};
}

/// The value of `name` in a map of RESP3, or in keys and values in turn.
std::string_view field_of(const Value& reply, std::string_view name) {
  const auto& items = reply.as_items();
  for (std::size_t i = 0; i + 1 < items.size(); i += 2)
    if (items[i].is_text() && items[i].as_text() == name && items[i + 1].is_text())
      return items[i + 1].as_text();
  return {};
}

bool has_flag(std::string_view flags, std::string_view flag) {
  while (!flags.empty()) {
    const auto end = std::min(flags.find(','), flags.size());
    if (flags.substr(0, end) == flag) return true;
    flags.remove_prefix(std::min(end + 1, flags.size()));
  }
  return false;
}

/// Servers that SENTINEL REPLICAS or SENTINELS lists; with `reached`, those that the Sentinel
/// reaches.
std::vector<Endpoint> listed(const Value& reply, std::size_t most, bool reached,
                             const Endpoint& answerer) {
  std::vector<Endpoint> all;
  if (reply.is_error()) return all;
  const auto& items = reply.as_items();
  if (items.size() > most) refuse_answer(answerer, "SENTINEL", "too long a list of servers");
  for (const Value& one : items) {
    const auto flags = field_of(one, "flags");
    const bool is_away = has_flag(flags, "s_down") || has_flag(flags, "o_down") ||
                         has_flag(flags, "disconnected") ||
                         field_of(one, "master-link-status") == "err";
    const auto host = field_of(one, "ip");
    const auto port = field_of(one, "port");
    if ((reached && is_away) || host.empty() || port == "0") continue;
    all.push_back(told_endpoint(host, port, answerer));
  }
  return all;
}

template <class Read>
auto read_answer(const Endpoint& answerer, std::string_view command, Read read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error{error.errc(), fmt::format("{} gives no answer to {}: {}", to_string(answerer),
                                          command, error.message())};
  }
}

}  // namespace

std::vector<std::vector<std::string>> sentinel_commands(const std::string& name) {
  return {{"SENTINEL", "GET-MASTER-ADDR-BY-NAME", name},
          {"SENTINEL", "MASTER", name},
          {"SENTINEL", "REPLICAS", name},
          {"SENTINEL", "SENTINELS", name}};
}

SentinelView sentinel_view_of(std::span<const Value> replies, const Endpoint& answerer) {
  return read_answer(answerer, "SENTINEL", [&] {
    if (replies.size() != 4) refuse_answer(answerer, "SENTINEL", "another number of replies");
    const Value& address = replies[0];
    if (address.is_error()) throw error_of_reply(address.as_text());
    SentinelView view;
    if (address.is_null()) return view;
    const auto& parts = address.as_items();
    if (parts.empty()) return view;
    if (parts.size() != 2) refuse_answer(answerer, "SENTINEL", "an address of other parts");
    view.master = told_endpoint(parts[0].as_text(), parts[1].as_text(), answerer);
    if (!replies[1].is_error())
      view.epoch = parse_integer<std::uint64_t>(field_of(replies[1], "config-epoch")).value_or(0);
    view.replicas = listed(replies[2], most_replicas, true, answerer);
    view.known = listed(replies[2], most_replicas, false, answerer);
    view.sentinels = listed(replies[3], most_sentinels, false, answerer);
    return view;
  });
}

RoleView parse_role(const Value& reply, const Endpoint& answerer) {
  return read_answer(answerer, "ROLE", [&] {
    if (reply.is_error()) throw error_of_reply(reply.as_text());
    const auto& items = reply.as_items();
    if (items.empty()) refuse_answer(answerer, "ROLE", "nothing");
    const auto& role = items[0].as_text();
    if (role == "master") return RoleView{.is_master = true, .master = {}};
    if (role != "slave" || items.size() < 3)
      refuse_answer(answerer, "ROLE", "a role of neither master nor replica");
    const auto port = items[2].as_integer();
    if (port < 1 || port > 65535) return RoleView{};
    return RoleView{.is_master = false,
                    .master = told_endpoint(items[1].as_text(), std::to_string(port), answerer)};
  });
}

bool is_switch_of(std::string_view message, std::string_view name) noexcept {
  return message.size() > name.size() && message.starts_with(name) && message[name.size()] == ' ';
}

}  // namespace sluice::topology
