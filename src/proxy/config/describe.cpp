#include "proxy/config/describe.hpp"

#include <fmt/format.h>

#include <iterator>

#include "proxy/config/members.hpp"

namespace sluice::proxy {
namespace {

/// "  name: value", with quotes where YAML wants them; lists and maps are written already.
template <class Kind>
std::string written(const std::string& text) {
  if constexpr (std::is_base_of_v<kinds::Structured, Kind>) return text;
  return quoted(text);
}

void append_servers(std::string& text, const std::vector<ServerSettings>& servers) {
  text += "  servers:\n";
  for (const auto& server : servers)
    fmt::format_to(std::back_inserter(text), "   - {}\n",
                   quoted(kinds::ServerList::text_of_one(server)));
}

template <class Target>
void append_settings(std::string& text, const Target& target) {
  for_each_setting(target, [&]<class Kind>(const SettingRow& row, Kind kind, const auto& value) {
    const auto one = kind.text(value);
    if constexpr (std::is_same_v<Kind, kinds::ServerList>)
      append_servers(text, value);
    else if (one.empty())
      fmt::format_to(std::back_inserter(text), "  # {}:\n", row.name);
    else
      fmt::format_to(std::back_inserter(text), "  {}: {}\n", row.name, written<Kind>(one));
  });
}

void append_table(std::string& text, std::string_view title, std::span<const SettingRow> rows,
                  Origin origin) {
  fmt::format_to(std::back_inserter(text),
                 "\n### {}\n\n| setting | value | default | meaning |\n|---|---|---|---|\n", title);
  for (const auto& row : rows)
    if (row.origin == origin)
      fmt::format_to(std::back_inserter(text), "| `{}` | {} | {} | {} |\n", row.name, row.kind,
                     row.default_text.empty() ? "" : fmt::format("`{}`", row.default_text),
                     row.help);
}

}  // namespace

std::string describe(const Config& config) {
  std::string text = "sluice:\n";
  append_settings(text, config.process);
  for (const auto& pool : config.pools) {
    fmt::format_to(std::back_inserter(text), "\n{}:\n", quoted(pool.name));
    append_settings(text, pool);
  }
  return text;
}

std::string settings_as_markdown() {
  std::string text;
  append_table(text, "Of a pool, as in twemproxy", pool_rows, Origin::twemproxy);
  append_table(text, "Of a pool, beyond twemproxy", pool_rows, Origin::sluice);
  append_table(text, "Of the process: below `sluice:`", process_rows, Origin::sluice);
  append_table(text, "Of `listen_tls` and `server_tls`", tls_rows, Origin::sluice);
  append_table(text, "Of a user in `users`", user_rows, Origin::sluice);
  return text;
}

}  // namespace sluice::proxy
