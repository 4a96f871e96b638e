/// How a value of each kind is read from the file and written again. A kind is a struct with
/// `name` (what the documentation calls it), `secret` (never shown), `read` (from a Node; throws
/// Problem, or Error without a line) and `text` (as it would be written in the file, in one line).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/config/config.hpp"
#include "proxy/config/document.hpp"

namespace sluice::proxy::config {

enum class Origin : std::uint8_t { twemproxy, sluice };

/// One row of settings.def.
struct SettingRow {
  std::string_view name;
  std::string_view kind;
  std::string_view default_text;
  std::uint64_t least;
  std::uint64_t most;
  Origin origin;
  bool secret;
  std::string_view help;
};

namespace kinds {

struct Public {
  static constexpr bool secret = false;
};

/// Its text is YAML already.
struct Structured : Public {};

struct Text : Public {
  static constexpr std::string_view name = "text";
  static void read(const Node& node, const SettingRow& row, std::string& value);
  static std::string text(const std::string& value);
};

struct Secret {
  static constexpr std::string_view name = "text, never shown";
  static constexpr bool secret = true;
  static void read(const Node& node, const SettingRow& row, std::string& value);
  static std::string text(const std::string& value);
};

struct Flag : Public {
  static constexpr std::string_view name = "true or false";
  static void read(const Node& node, const SettingRow& row, bool& value);
  static std::string text(bool value);
};

struct Count : Public {
  static constexpr std::string_view name = "number";
  static void read(const Node& node, const SettingRow& row, std::size_t& value);
  static void read(const Node& node, const SettingRow& row, int& value);  // REQUIRES: row.most fits
  static std::string text(std::size_t value);
};

struct Bytes : Public {
  static constexpr std::string_view name = "bytes (16kb, 64mb, 1gb)";
  static void read(const Node& node, const SettingRow& row, std::size_t& value);
  static std::string text(std::size_t value);
};

/// twemproxy's: digits alone.
struct Milliseconds : Public {
  static constexpr std::string_view name = "milliseconds";
  static void read(const Node& node, const SettingRow& row, std::chrono::milliseconds& value);
  static void read(const Node& node, const SettingRow& row,
                   std::optional<std::chrono::milliseconds>& value);  // 0: none
  static std::string text(std::optional<std::chrono::milliseconds> value);
};

struct Duration : Public {
  static constexpr std::string_view name =
      "duration (250ms, 30s, 5m; a bare number is milliseconds)";
  static void read(const Node& node, const SettingRow& row, std::chrono::milliseconds& value);
  static void read(const Node& node, const SettingRow& row, std::chrono::microseconds& value);
  static std::string text(std::chrono::microseconds value);
};

struct Tag : Public {
  static constexpr std::string_view name = "two characters";
  static void read(const Node& node, const SettingRow& row, std::optional<HashTag>& value);
  static std::string text(std::optional<HashTag> value);
};

/// One word of some.
template <class Value>
struct Choice : Public {
  static constexpr std::string_view name = "word";
  static void read(const Node& node, const SettingRow& row, Value& value);
  static std::string text(Value value);
};

struct Address : Public {
  static constexpr std::string_view name = "address";
  static void read(const Node& node, const SettingRow& row, std::string& value);
  static std::string text(const std::string& value);
};

struct ListenAddress : Public {
  static constexpr std::string_view name = "address";
  static void read(const Node& node, const SettingRow& row, Listen& value);
  static std::string text(const Listen& value);
};

struct ServerList : Structured {
  static constexpr std::string_view name = "list of servers";
  static void read(const Node& node, const SettingRow& row, std::vector<ServerSettings>& value);
  static std::string text(const std::vector<ServerSettings>& value);
  static std::string text_of_one(const ServerSettings& server);
};

struct Words : Structured {
  static constexpr std::string_view name = "list of words";
  static void read(const Node& node, const SettingRow& row, std::vector<std::string>& value);
  static std::string text(const std::vector<std::string>& value);
};

struct Tls : Structured {
  static constexpr std::string_view name = "map";
  static void read(const Node& node, const SettingRow& row, TlsSettings& value);
  static std::string text(const TlsSettings& value);
};

struct Users : Structured {
  static constexpr std::string_view name = "list of maps";
  static void read(const Node& node, const SettingRow& row, std::vector<UserSettings>& value);
  static std::string text(const std::vector<UserSettings>& value);
};

}  // namespace kinds
}  // namespace sluice::proxy::config
