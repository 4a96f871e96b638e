#include "engine/lua/script_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace sluice::engine {

namespace {

constexpr std::array<std::string_view, 5> known_flags = {"no-writes", "allow-oom", "allow-stale",
                                                         "no-cluster", "allow-cross-slot-keys"};

/// Cuts the text before the next `separator` off `rest`.
std::string_view cut(std::string_view& rest, char separator) {
  const auto at = std::min(rest.find(separator), rest.size());
  const auto piece = rest.substr(0, at);
  rest.remove_prefix(std::min(at + 1, rest.size()));
  return piece;
}

}  // namespace

std::expected<ScriptHeader, std::string> read_script_header(std::string_view script) {
  ScriptHeader header;
  if (!script.starts_with("#!")) return header;
  const auto end = script.find('\n');
  if (end == std::string_view::npos) return std::unexpected("ERR Invalid script shebang");
  header.present = true;
  header.size = end;

  auto line = script.substr(0, end);
  if (const auto engine = cut(line, ' '); engine != "#!lua")
    return std::unexpected(fmt::format("ERR Unexpected engine in script shebang: {}", engine));
  while (!line.empty()) {
    auto option = cut(line, ' ');
    if (option.empty()) continue;
    if (!option.starts_with("flags="))
      return std::unexpected(fmt::format("ERR Unknown lua shebang option: {}", option));
    option.remove_prefix(6);
    while (!option.empty()) {
      const auto flag = cut(option, ',');
      if (std::find(known_flags.begin(), known_flags.end(), flag) == known_flags.end())
        return std::unexpected(fmt::format("ERR Unexpected flag in script shebang: {}", flag));
      if (flag == "no-writes") header.no_writes = true;
    }
  }
  return header;
}

}  // namespace sluice::engine
