// The kinds that are lists and maps, and what reading a map needs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "proxy/config/read.hpp"
#include "proxy/config/settings.hpp"
#include "sluice/error.hpp"

namespace sluice::proxy::config {
namespace {

/// Insertions, deletions and changes from one word to the other (Levenshtein).
std::size_t distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < to.size(); ++j) {
      const auto changed = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string hint_for(std::string_view mistaken, std::span<const SettingRow> rows) {
  constexpr std::size_t longest = 40;
  constexpr std::size_t far = 3;
  if (mistaken.size() > longest || rows.empty()) return "";
  const auto nearest = std::ranges::min_element(
      rows, {}, [&](const SettingRow& row) { return distance(mistaken, row.name); });
  return distance(mistaken, nearest->name) < far
             ? fmt::format("; did you mean '{}'?", nearest->name)
             : "";
}

std::string quoted(std::string_view text) {
  const bool plain = !text.empty() && text.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_./") == std::string_view::npos;
  if (plain) return std::string{text};
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n')
      result += "\\n";
    else if (c == '\r')
      result += "\\r";
    else if (c == '\t')
      result += "\\t";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      result += c;
  }
  return result + '"';
}

namespace kinds {
namespace {

constexpr std::size_t most_servers = 4096;

/// "{name: value, ...}" of the settings that differ from their defaults.
template <class Target>
std::string map_text(const Target& target) {
  std::vector<std::string> members;
  const auto write = [&](const SettingRow& row, auto kind, const auto& value) {
    if (const auto text = kind.text(value); text != row.default_text)
      members.push_back(fmt::format("{}: {}", row.name, quoted(text)));
  };
  for_each_setting(write, target);
  return fmt::format("{{{}}}", fmt::join(members, ", "));
}

const Node& sequence_of(const Node& node, std::string_view wanted) {
  if (node.kind != Node::Kind::sequence)
    throw Problem{node.line, fmt::format("write {}, each on a line after a dash", wanted)};
  return node;
}

}  // namespace

void ServerList::read(const Node& node, const SettingRow&, std::vector<ServerSettings>& value) {
  sequence_of(node, "a list of servers");
  if (node.flow) throw Problem{node.line, "write each server on a line of its own, after a dash"};
  if (node.items.size() > most_servers)
    throw Problem{node.line, fmt::format("more than {} servers in a pool", most_servers)};
  value.clear();
  for (const auto& item : node.items) {
    if (item.kind != Node::Kind::scalar)
      throw Problem{item.line, "a server is host:port:weight [name], not a list or map"};
    auto server = with_line(item.line, [&] { return parse_server(item.text); });
    server.place = {item.line, value.size()};
    value.push_back(std::move(server));
  }
}
std::string ServerList::text(const std::vector<ServerSettings>& value) {
  std::vector<std::string> servers;
  for (const auto& server : value) servers.push_back(quoted(text_of_one(server)));
  return servers.empty() ? "" : fmt::format("[{}]", fmt::join(servers, ", "));
}
std::string ServerList::text_of_one(const ServerSettings& server) {
  const bool named = server.name != name_of(server.text, server.endpoint) ||
                     server.text.find(' ') != std::string::npos;  // what follows a space is a name
  return named ? fmt::format("{} {}", server.text, server.name) : server.text;
}

void Words::read(const Node& node, const SettingRow&, std::vector<std::string>& value) {
  value.clear();
  for (const auto& item : sequence_of(node, "a list of words").items) {
    if (item.kind != Node::Kind::scalar || item.text.empty())
      throw Problem{item.line, "only words may stand in this list"};
    value.push_back(item.text);
  }
}
std::string Words::text(const std::vector<std::string>& value) {
  std::vector<std::string> quoted_words;
  for (const auto& word : value) quoted_words.push_back(quoted(word));
  return value.empty() ? "" : fmt::format("[{}]", fmt::join(quoted_words, ", "));
}

void Tls::read(const Node& node, const SettingRow&, TlsSettings& value) {
  value = {};
  if (node.kind == Node::Kind::scalar) {
    SettingRow row{};
    Flag::read(node, row, value.on);
    return;
  }
  read_members(node, value);
  value.on = true;
}
std::string Tls::text(const TlsSettings& value) {
  if (!value.on) return "";
  const auto text = map_text(value);
  return text == "{}" ? "true" : text;
}

void Users::read(const Node& node, const SettingRow&, std::vector<UserSettings>& value) {
  value.clear();
  for (const auto& item : sequence_of(node, "a list of users").items) {
    auto& user = value.emplace_back();
    read_members(item, user);
    if (user.name.empty() || user.password.empty())
      throw Problem{item.line, "a user needs a name and a password"};
    for (const auto& other : value)
      if (&other != &user && other.name == user.name)
        throw Problem{item.line, fmt::format("the user '{}' is there twice", user.name)};
  }
}
std::string Users::text(const std::vector<UserSettings>& value) {
  std::vector<std::string> users;
  for (const auto& user : value) users.push_back(map_text(user));
  return users.empty() ? "" : fmt::format("[{}]", fmt::join(users, ", "));
}

}  // namespace kinds
}  // namespace sluice::proxy::config
