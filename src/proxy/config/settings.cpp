// How a value of each kind is read from the file and written again, and the tables of settings.
#include "proxy/config/settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <set>
#include <type_traits>

#include "base/duration.hpp"
#include "base/text.hpp"
#include "proxy/config/command_rule.hpp"
#include "proxy/config/read.hpp"
#include "resp/letters.hpp"

namespace sluice::proxy::config {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

[[noreturn]] void refuse(const Node& node, std::string_view wanted) {
  throw Problem{node.line, fmt::format("'{}' is not right here; write {}", node.text, wanted)};
}

const std::string& scalar_of(const Node& node, std::string_view wanted) {
  if (node.kind != Node::Kind::scalar)
    throw Problem{node.line, fmt::format("a list or map is not right here; write {}", wanted)};
  return node.text;
}

/// A unit that may follow a number of bytes.
struct Unit {
  std::string_view name;
  std::uint64_t size;
};
constexpr std::array units{Unit{"", 1}, Unit{"kb", 1 << 10}, Unit{"mb", 1 << 20},
                           Unit{"gb", 1 << 30}};

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  const auto digits = std::min(text.find_first_not_of("0123456789"), text.size());
  std::string name{text.substr(digits)};
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto unit = std::ranges::find(units, name, &Unit::name);
  if (unit == units.end()) return std::nullopt;
  const auto most = std::numeric_limits<std::uint64_t>::max() / unit->size;
  const auto number = parse_number(text.substr(0, digits), most);
  if (!number) return std::nullopt;
  return *number * unit->size;
}

/// In the largest unit that divides it.
std::string bytes_text(std::uint64_t bytes) {
  const Unit* largest = units.data();
  for (const auto& unit : units)
    if (bytes != 0 && bytes % unit.size == 0) largest = &unit;
  return fmt::format("{}{}", bytes / largest->size, largest->name);
}

std::uint64_t number_of(const Node& node, const SettingRow& row) {
  const auto wanted =
      fmt::format("a number from {} to {}, decimal digits alone", row.least, row.most);
  const auto number = parse_number(scalar_of(node, wanted), row.most);
  if (!number || *number < row.least) refuse(node, wanted);
  return *number;
}

microseconds duration_of(const Node& node, const SettingRow& row) {
  const auto wanted =
      fmt::format("a time from {}ms to {}ms, like 250ms, 30s or 5m", row.least, row.most);
  const auto time = parse_duration(scalar_of(node, wanted), milliseconds{1});
  if (!time || *time < milliseconds{row.least} || *time > milliseconds{row.most})
    refuse(node, wanted);
  return *time;
}

template <class Value>
struct Named {
  Value value;
  std::string_view name;
};

template <class Value>
constexpr auto choices = nullptr;
template <>
constexpr auto choices<Compat> = std::to_array<Named<Compat>>({{Compat::relaxed, "relaxed"},
                                                               {Compat::strict, "strict"}});
template <>
constexpr auto choices<OnFailure> = std::to_array<Named<OnFailure>>({{OnFailure::rehash, "rehash"},
                                                                     {OnFailure::fail, "fail"}});
template <>
constexpr auto choices<ReadFrom> = std::to_array<Named<ReadFrom>>({{ReadFrom::master, "master"},
                                                                   {ReadFrom::replica, "replica"}});
template <>
constexpr auto choices<CharSign> = std::to_array<Named<CharSign>>({{CharSign::is_signed, "x86"},
                                                                   {CharSign::is_unsigned, "arm"}});
template <>
constexpr auto choices<LimitAction> = std::to_array<Named<LimitAction>>(
    {{LimitAction::refuse, "refuse"}, {LimitAction::delay, "delay"}});
template <>
const auto choices<Hash> = [] {
  std::vector<Named<Hash>> all;
  for (const auto hash : all_hashes()) all.push_back({hash, to_string(hash)});
  return all;
}();
template <>
const auto choices<Distribution> = [] {
  std::vector<Named<Distribution>> all;
  for (const auto each : {Distribution::ketama, Distribution::modula, Distribution::random})
    all.push_back({each, to_string(each)});
  return all;
}();

// The kinds. Each has `name` (what the documentation calls it), `is_yaml`, `read` (throws Problem,
// or Error without a line) and `text` (as the file would have it, in one line).

struct Kind {
  static constexpr bool is_yaml = false;  ///< its text needs no quotes
};

struct Text : Kind {
  static constexpr std::string_view name = "text";
  static void read(const Node& node, const SettingRow&, std::string& value) {
    value = scalar_of(node, "a text");
  }
  static std::string text(const std::string& value) { return value; }
};

struct Secret : Kind {
  static constexpr std::string_view name = "text, never shown";
  static void read(const Node& node, const SettingRow&, std::string& value) {
    value = scalar_of(node, "a text");
    if (value.empty()) refuse(node, "a text, or remove the line");
  }
  static std::string text(const std::string& value) { return value.empty() ? "" : "***"; }
};

struct Acl : Kind {
  static constexpr std::string_view name = "words of Redis's ACL";
  static void read(const Node& node, const SettingRow&, std::string& value) {
    constexpr std::string_view wanted = "words like +@read ~app:*, or remove the line";
    value = scalar_of(node, wanted);
    if (value.find_first_not_of(" \t\r\n") == std::string::npos) refuse(node, wanted);
  }
  static std::string text(const std::string& value) { return value; }
};

struct Flag : Kind {
  static constexpr std::string_view name = "true or false";
  static void read(const Node& node, const SettingRow&, bool& value) {
    const auto& text = scalar_of(node, name);
    if (text != "true" && text != "false") refuse(node, name);
    value = text == "true";
  }
  static std::string text(bool value) { return value ? "true" : "false"; }
};

struct Count : Kind {
  static constexpr std::string_view name = "number";
  template <class Number>  // REQUIRES: row.most fits
  static void read(const Node& node, const SettingRow& row, Number& value) {
    value = static_cast<Number>(number_of(node, row));
  }
  static std::string text(std::size_t value) { return std::to_string(value); }
};

struct Bytes : Kind {
  static constexpr std::string_view name = "bytes (16kb, 64mb, 1gb)";
  static void read(const Node& node, const SettingRow& row, std::size_t& value) {
    const auto wanted = fmt::format("from {} to {} bytes, like 16kb, 64mb or 1gb",
                                    bytes_text(row.least), bytes_text(row.most));
    const auto amount = parse_bytes(scalar_of(node, wanted));
    if (!amount || *amount < row.least || *amount > row.most) refuse(node, wanted);
    value = *amount;
  }
  static std::string text(std::size_t value) { return bytes_text(value); }
};

/// twemproxy's: digits alone.
struct Milliseconds : Kind {
  static constexpr std::string_view name = "milliseconds";
  static void read(const Node& node, const SettingRow& row, milliseconds& value) {
    value = milliseconds{number_of(node, row)};
  }
  /// 0: none.
  static void read(const Node& node, const SettingRow& row, std::optional<milliseconds>& value) {
    const auto number = number_of(node, row);
    value.reset();
    if (number > 0) value.emplace(number);
  }
  static std::string text(std::optional<milliseconds> value) {
    return std::to_string(value.value_or(milliseconds{0}).count());
  }
};

struct Duration : Kind {
  static constexpr std::string_view name =
      "duration (250ms, 30s, 5m; a bare number is milliseconds)";
  template <class Time>
  static void read(const Node& node, const SettingRow& row, Time& value) {
    value = std::chrono::ceil<Time>(duration_of(node, row));
  }
  static std::string text(microseconds value) { return duration_text(value); }
};

/// A unit of time that a rate may have.
constexpr std::array periods{Named<std::chrono::seconds>{std::chrono::seconds{1}, "s"},
                             Named<std::chrono::seconds>{std::chrono::minutes{1}, "m"},
                             Named<std::chrono::seconds>{std::chrono::hours{1}, "h"}};

/// "1000/s burst 2000", where `parse` reads an amount. Empty: it has not this form.
template <class Parse>
std::optional<Rate> parse_rate(std::string_view text, Parse parse) {
  constexpr std::string_view burst = " burst ";
  const auto slash = text.find('/');
  if (slash == text.npos) return std::nullopt;
  const auto rest = text.substr(slash + 1);
  const auto burst_at = std::min(rest.find(burst), rest.size());
  const auto period =
      std::ranges::find(periods, rest.substr(0, burst_at), &Named<std::chrono::seconds>::name);
  const auto amount = parse(text.substr(0, slash));
  const auto at_once =
      burst_at == rest.size() ? amount : parse(rest.substr(burst_at + burst.size()));
  if (period == periods.end() || !amount || !at_once) return std::nullopt;
  return Rate{*amount, period->value, *at_once};
}

constexpr std::string_view no_limit = "none";

/// `Amount`: Count or Bytes, of which it is so many in a time.
template <class Amount>
struct RateOf : Kind {
  static constexpr bool of_bytes = std::is_same_v<Amount, Bytes>;
  static constexpr std::string_view name =
      of_bytes ? "bytes in a time (10mb/s, 1gb/m burst 2gb)" : "rate (1000/s, 60/m burst 100)";
  static void read(const Node& node, const SettingRow& row, std::optional<Rate>& value) {
    const auto wanted =
        fmt::format("so many /s, /m or /h, like {}, with amounts from 1 to {}; or {}",
                    of_bytes ? "10mb/s or 1gb/m burst 2gb" : "1000/s or 60/m burst 100",
                    Amount::text(row.most), no_limit);
    const auto& text = scalar_of(node, wanted);
    if (text == no_limit) {
      value.emplace();
      return;
    }
    const auto fits = [&](std::uint64_t amount) {
      return amount >= row.least && amount <= row.most;
    };
    value = parse_rate(text, [&](std::string_view amount) {
      return of_bytes ? parse_bytes(amount) : parse_number(amount, row.most);
    });
    if (!value || !fits(value->amount) || !fits(value->burst)) refuse(node, wanted);
  }
  static std::string text(const std::optional<Rate>& value) {
    if (!value) return "";
    if (!value->holds()) return std::string{no_limit};
    const auto period =
        std::ranges::find(periods, value->period, &Named<std::chrono::seconds>::value);
    const auto rate = fmt::format("{}/{}", Amount::text(value->amount), period->name);
    return value->burst == value->amount
               ? rate
               : fmt::format("{} burst {}", rate, Amount::text(value->burst));
  }
};
using RequestRate = RateOf<Count>;
using ByteRate = RateOf<Bytes>;

struct OneIn : Kind {
  static constexpr std::string_view name = "share (1/1, 1/10)";
  static void read(const Node& node, const SettingRow& row, std::uint32_t& value) {
    const auto wanted = fmt::format("1/{} to 1/{}", row.least, row.most);
    const auto& text = scalar_of(node, wanted);
    const auto number = text.starts_with("1/")
                            ? parse_number(std::string_view{text}.substr(2), row.most)
                            : std::nullopt;
    if (!number || *number < row.least) refuse(node, wanted);
    value = static_cast<std::uint32_t>(*number);
  }
  static std::string text(std::uint32_t value) { return fmt::format("1/{}", value); }
};

struct Tag : Kind {
  static constexpr std::string_view name = "two characters";
  static void read(const Node& node, const SettingRow&, std::optional<HashTag>& value) {
    const auto& text = scalar_of(node, name);
    if (text.size() != 2) refuse(node, "two characters, like \"{}\" in quotes");
    value = HashTag{text[0], text[1]};
  }
  static std::string text(std::optional<HashTag> value) {
    return value ? std::string{value->open, value->close} : "";
  }
};

/// One word of some.
template <class Value>
struct Choice : Kind {
  static constexpr std::string_view name = "word";
  static void read(const Node& node, const SettingRow&, Value& value) {
    const auto& all = choices<Value>;
    std::vector<std::string_view> names;
    for (const auto& each : all) names.push_back(each.name);
    const auto wanted = fmt::format("one of {}", fmt::join(names, ", "));
    const auto found = std::ranges::find(all, scalar_of(node, wanted), &Named<Value>::name);
    if (found == all.end()) refuse(node, wanted);
    value = found->value;
  }
  static std::string text(Value value) {
    const auto& all = choices<Value>;
    return std::string{std::ranges::find(all, value, &Named<Value>::value)->name};
  }
};

constexpr std::string_view address_form = "host:port, or /path of a unix socket";

struct Address : Kind {
  static constexpr std::string_view name = "address";
  static void read(const Node& node, const SettingRow&, std::string& value) {
    value = scalar_of(node, address_form);
    if (!value.empty()) parse_address(value);
  }
  static std::string text(const std::string& value) { return value; }
};

struct ListenAddress : Kind {
  static constexpr std::string_view name = "address";
  static void read(const Node& node, const SettingRow&, Listen& value) {
    value = parse_listen(scalar_of(node, address_form));
  }
  static std::string text(const Listen& value) { return value.text; }
};

// The kinds that are lists and maps.

constexpr std::size_t most_servers = 4096;

struct Structure : Kind {
  static constexpr bool is_yaml = true;
};

/// "[a, b]" of texts that are YAML; no list if there are none.
std::string list_text(const std::vector<std::string>& texts) {
  return texts.empty() ? "" : fmt::format("[{}]", fmt::join(texts, ", "));
}

/// "{name: value, ...}" of the settings that differ from their defaults.
template <class Target>
std::string map_text(const Target& target) {
  std::vector<std::string> members;
  for (const auto& setting : settings_of<Target>())
    if (const auto text = setting.text(target); text != setting.default_text)
      members.push_back(fmt::format("{}: {}", setting.name, quoted(text)));
  return fmt::format("{{{}}}", fmt::join(members, ", "));
}

const Node& sequence_of(const Node& node, std::string_view wanted) {
  if (node.kind != Node::Kind::sequence)
    throw Problem{node.line, fmt::format("write {}, each on a line after a dash", wanted)};
  return node;
}

struct ServerList : Structure {
  static constexpr std::string_view name = "list of servers";
  static void read(const Node& node, const SettingRow&, std::vector<ServerSettings>& value) {
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
  static std::string text(const std::vector<ServerSettings>& value) {
    std::vector<std::string> servers;
    for (const auto& server : value) servers.push_back(quoted(to_string(server)));
    return list_text(servers);
  }
};

struct WordList : Structure {
  static constexpr std::string_view name = "list of words";
  static void read(const Node& node, const SettingRow&, std::vector<std::string>& value) {
    value.clear();
    for (const auto& item : sequence_of(node, "a list of words").items) {
      if (item.kind != Node::Kind::scalar || item.text.empty())
        throw Problem{item.line, "only words may stand in this list"};
      value.push_back(item.text);
    }
  }
  static std::string text(const std::vector<std::string>& value) {
    std::vector<std::string> words;
    for (const auto& word : value) words.push_back(quoted(word));
    return list_text(words);
  }
};

struct Commands : Structure {
  static constexpr std::string_view name = "map";
  static void read(const Node& node, const SettingRow&, std::vector<CommandRule>& value) {
    constexpr std::size_t longest_name = 64;
    value.clear();
    if (node.kind != Node::Kind::map)
      throw Problem{node.line, "write a map of commands and where their keys are, as {X: key 1}"};
    for (const auto& item : node.items) {
      CommandRule rule{item.key, scalar_of(item, command_rule_form)};
      std::ranges::transform(rule.name, rule.name.begin(), resp::lower);
      const auto odd = std::ranges::find_if(
          rule.name, [](char c) { return c <= ' ' || c == '|' || c == '*' || c > '~'; });
      if (rule.name.size() > longest_name || (odd != rule.name.end() && *odd != '*') ||
          rule.name.substr(0, rule.name.size() - 1).contains('*') || rule.name.empty())
        throw Problem{item.line, fmt::format("'{}' is no name of a command", item.key)};
      if (!spec_of(rule))
        throw Problem{item.line, fmt::format("'{}' is not right for {}; write {}", rule.text,
                                             item.key, command_rule_form)};
      if (std::ranges::find(value, rule.name, &CommandRule::name) != value.end())
        throw Problem{item.line, fmt::format("'{}' is there twice; remove one", item.key)};
      value.push_back(std::move(rule));
    }
  }
  static std::string text(const std::vector<CommandRule>& value) {
    std::vector<std::string> rules;
    for (const auto& rule : value)
      rules.push_back(fmt::format("{}: {}", quoted(rule.name), quoted(rule.text)));
    return rules.empty() ? "" : fmt::format("{{{}}}", fmt::join(rules, ", "));
  }
};

struct Tls : Structure {
  static constexpr std::string_view name = "map";
  static void read(const Node& node, const SettingRow& row, TlsSettings& value) {
    value = {};
    if (node.kind == Node::Kind::scalar) return Flag::read(node, row, value.on);
    read_members(node, value);
    value.on = true;
  }
  static std::string text(const TlsSettings& value) {
    if (!value.on) return "";
    const auto text = map_text(value);
    return text == "{}" ? "true" : text;
  }
};

/// Where nothing is said, as others have it.
struct OwnTls : Structure {
  static constexpr std::string_view name = Tls::name;
  static void read(const Node& node, const SettingRow& row, std::optional<TlsSettings>& value) {
    Tls::read(node, row, value.emplace());
  }
  static std::string text(const std::optional<TlsSettings>& value) {
    if (!value) return "";
    return value->on ? Tls::text(*value) : "false";
  }
};

struct Limits : Structure {
  static constexpr std::string_view name = "map";
  static void read(const Node& node, const SettingRow&, LimitSettings& value) {
    value = {};
    read_members(node, value);
    if (value == LimitSettings{.action = value.action})
      throw Problem{node.line, "it limits nothing; write per_user or per_address, or remove it"};
  }
  static std::string text(const LimitSettings& value) {
    return value == LimitSettings{} ? "" : map_text(value);
  }
};

struct Mirror : Structure {
  static constexpr std::string_view name = "map";
  static void read(const Node& node, const SettingRow&, MirrorSettings& value) {
    value = {};
    read_members(node, value);
    if (value.pool.empty()) throw Problem{node.line, "it needs the name of a pool: {pool: NAME}"};
  }
  static std::string text(const MirrorSettings& value) {
    return value.pool.empty() ? "" : map_text(value);
  }
};

struct Users : Structure {
  static constexpr std::string_view name = "list of maps";
  static void read(const Node& node, const SettingRow&, std::vector<UserSettings>& value) {
    value.clear();
    for (const auto& item : sequence_of(node, "a list of users").items) {
      UserSettings user;
      read_members(item, user);
      user.place.line = item.line;
      if (user.name.empty() || user.password.empty())
        throw Problem{item.line, "a user needs a name and a password"};
      if (std::ranges::find(value, user.name, &UserSettings::name) != value.end())
        throw Problem{item.line, fmt::format("the user '{}' is there twice", user.name)};
      value.push_back(std::move(user));
    }
  }
  static std::string text(const std::vector<UserSettings>& value) {
    std::vector<std::string> users;
    for (const auto& user : value) users.push_back(map_text(user));
    return list_text(users);
  }
};

template <class Target, class Kind, auto member>
constexpr Setting<Target> setting(const SettingRow& row) {
  return {row,
          [](const Node& node, const SettingRow& its_row, Target& target) {
            Kind::read(node, its_row, target.*member);
          },
          [](const Target& target) { return Kind::text(target.*member); },
          [](const Target& one, const Target& other) { return one.*member == other.*member; }};
}

/// "; did you mean 'timeout'?", or nothing.
template <class Target>
std::string hint_for(std::string_view mistaken) {
  constexpr std::size_t longest = 40;
  constexpr std::size_t far = 3;
  if (mistaken.size() > longest) return "";
  const auto distance_to = [&](const SettingRow& row) { return edit_distance(mistaken, row.name); };
  const auto& nearest = *std::ranges::min_element(settings_of<Target>(), {}, distance_to);
  return distance_to(nearest) < far ? fmt::format("; did you mean '{}'?", nearest.name) : "";
}

}  // namespace

template <class Target>
std::span<const Setting<Target>> settings_of() {
  static const auto rows = [] {
    std::vector<Setting<Target>> of_target;
#define ROW(Owner, member, Kind, written, lowest, highest, whose, does) \
  if constexpr (std::is_same_v<Target, Owner>)                          \
    of_target.push_back(setting<Target, Kind, &Owner::member>(          \
        {#member, Kind::name, written, lowest, highest, Origin::whose, Kind::is_yaml, does}));
#define POOL(...) ROW(PoolSettings, __VA_ARGS__)
#define PROCESS(...) ROW(ProcessSettings, __VA_ARGS__)
#define TLS(...) ROW(TlsSettings, __VA_ARGS__)
#define LIMIT(...) ROW(LimitSettings, __VA_ARGS__)
#define MIRROR(...) ROW(MirrorSettings, __VA_ARGS__)
#define USER(...) ROW(UserSettings, __VA_ARGS__)
#include "proxy/config/settings.def"
#undef ROW
#undef POOL
#undef PROCESS
#undef TLS
#undef LIMIT
#undef MIRROR
#undef USER
    return of_target;
  }();
  return rows;
}
template std::span<const Setting<PoolSettings>> settings_of<PoolSettings>();
template std::span<const Setting<ProcessSettings>> settings_of<ProcessSettings>();
template std::span<const Setting<TlsSettings>> settings_of<TlsSettings>();
template std::span<const Setting<LimitSettings>> settings_of<LimitSettings>();
template std::span<const Setting<MirrorSettings>> settings_of<MirrorSettings>();
template std::span<const Setting<UserSettings>> settings_of<UserSettings>();

template <class Target>
void read_members(const Node& map, Target& target) {
  if (map.kind != Node::Kind::map)
    throw Problem{map.line, "write settings here, each as 'name: value' on a line of its own"};
  std::set<std::string_view> seen;
  for (const auto& member : map.items) {
    const auto all = settings_of<Target>();
    const auto setting = std::ranges::find(all, member.key, &SettingRow::name);
    if (setting == all.end())
      throw Problem{member.line,
                    fmt::format("'{}' is no setting{}", member.key, hint_for<Target>(member.key))};
    if (!seen.insert(setting->name).second)
      throw Problem{member.line, fmt::format("'{}' is there twice; remove one", setting->name)};
    try {
      with_line(member.line, [&] { setting->read(member, *setting, target); });
    } catch (const Problem& wrong) {
      throw Problem{wrong.line(), fmt::format("{}: {}", setting->name, wrong.what())};
    }
  }
}
template void read_members(const Node&, PoolSettings&);
template void read_members(const Node&, ProcessSettings&);

}  // namespace sluice::proxy::config
