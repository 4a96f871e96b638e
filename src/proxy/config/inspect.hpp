/// What can be told of a configuration without running it: where a key goes, what the file means
/// (`sluice proxy explain`, `describe`), what a change of it moves (`diff`), and what it allows and
/// seldom means (`lint`).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "proxy/config/config.hpp"

namespace sluice::proxy::config {

/// Where a key goes in a pool, and why.
struct Explanation {
  std::string pool;
  std::string hashed_part;
  std::uint32_t hash = 0;
  std::uint32_t point = 0;  ///< ketama: the server's point that the hash finds; modula: the place
  std::string server;       ///< its name; empty: any, as with `random`
  std::string address;
  std::optional<std::uint16_t> slot;  ///< of a cluster, which tells the rest
};

/// `key`: its bytes. All servers live.
Explanation explain(const PoolSettings& pool, std::string_view key);
/// One line.
std::string text_of(const Explanation& explanation);
Json json_of(const Explanation& explanation);

/// A file that means the same, every setting written out. Secrets are "***".
std::string describe(const Config& config);
/// {process: {setting: text}, pools: {name: {setting: text}}}.
Json json_of(const Config& config);

/// The tables of docs/proxy.md.
std::string settings_as_markdown();

// diff.cpp: the difference between two configurations, and the share of keys that it moves.

struct SettingChange {
  std::string name, before, after;  ///< as text; secrets are not in it
};

struct KeyFlow {
  std::string from, to;  ///< names of servers
  double share = 0;      ///< of all keys of the pool
};

/// Keys that one command, script or transaction names.
using KeyGroup = std::vector<std::string>;

/// A group that has one home before and several afterwards: what names it is refused then.
struct PartingGroup {
  KeyGroup keys;
  std::vector<std::string> servers;  ///< afterwards, of each key
};

struct PoolDiff {
  std::string name;
  bool added = false;
  bool removed = false;
  std::vector<SettingChange> settings;
  std::vector<SettingChange> addresses;  ///< of servers that keep their name, and so their keys
  bool has_homes = true;  ///< false: `random` or a cluster, before or after: no file tells a home
  bool exact = true;      ///< false: `moved` was found on a sample
  double moved = 0;       ///< share of keys whose server has another name
  std::vector<KeyFlow> flows;         ///< those that move, the largest first
  std::vector<PartingGroup> parting;  ///< in the order given

  bool changed() const noexcept {
    return added || removed || !settings.empty() || !addresses.empty();
  }
};

struct ConfigDiff {
  std::vector<SettingChange> process;
  std::vector<PoolDiff> pools;  ///< all of both, changed or not
};

/// `keys`: shares are of these; without any, of all possible keys. `groups`: looked at for those
/// that part.
ConfigDiff diff(const Config& before, const Config& after, std::span<const std::string> keys = {},
                std::span<const KeyGroup> groups = {});

std::string text_of(const ConfigDiff& diff);
Json json_of(const ConfigDiff& diff);

/// "timeout: 400 -> 500" for each setting that differs, of pool "alpha" "alpha: timeout: ...".
/// Moves of keys are not computed.
std::vector<std::string> setting_changes(const Config& before, const Config& after);

// lint.cpp

enum class Severity : std::uint8_t {
  note,     ///< worth knowing
  warning,  ///< an outage, or an attacker, will use it
  danger,   ///< the proxy does not do what the file seems to say
};
std::string_view to_string(Severity severity) noexcept;

struct Finding {
  Severity severity;
  std::string pool;  ///< empty: the process
  std::size_t line;
  std::string rule;    ///< a word for programs: "crc32-ketama"
  std::string what;    ///< the file says
  std::string why;     ///< that matters
  std::string remedy;  ///< what to write instead
};

/// What is known of the file beside its contents.
struct FileFacts {
  std::optional<unsigned> permissions;
};

/// By severity, the worst first; among equals by line. Pure, and may take some milliseconds a pool.
std::vector<Finding> lint(const Config& config, const FileFacts& file = {});

/// "file:line: danger: pool 'alpha': what. why remedy [rule]", a line each.
std::string text_of(const std::vector<Finding>& findings, std::string_view file);
Json json_of(const std::vector<Finding>& findings);

}  // namespace sluice::proxy::config
