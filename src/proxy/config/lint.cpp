#include "proxy/config/lint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <map>

#include "proxy/config/lint_rules.hpp"

namespace sluice::proxy {
namespace {

constexpr unsigned others_may_read = 0004;

/// Rules about the file and the pools among each other.
void check_whole(const Config& config, const FileFacts& file, std::vector<Finding>& findings) {
  const bool has_secrets = std::ranges::any_of(config.pools, [](const PoolSettings& pool) {
    return !pool.redis_auth.empty() || !pool.server_password.empty() || !pool.users.empty();
  });
  if (has_secrets && (file.permissions.value_or(0) & others_may_read) != 0)
    findings.push_back({Severity::danger, "", 1, "readable-secrets",
                        "the file has passwords, and everybody on this machine may read it",
                        "whoever reads it may use the servers.", "Set its mode to 0600 or 0640."});
  for (const auto& pool : config.pools)
    for (const auto& server : pool.servers)
      if (server.endpoint == pool.listen.endpoint)
        findings.push_back(
            {Severity::danger, pool.name, server.place.line, "loop",
             fmt::format("the server '{}' is the address that the pool listens at", server.name),
             "requests would go round for ever.", "Give the server's own address."});
}

}  // namespace

std::string_view to_string(Severity severity) noexcept {
  static constexpr std::array<std::string_view, 3> names{"note", "warning", "danger"};
  return names[static_cast<std::size_t>(severity)];
}

std::vector<Finding> lint(const Config& config, const FileFacts& file) {
  std::vector<Finding> findings;
  check_whole(config, file, findings);
  for (const auto& pool : config.pools)
    for (const auto rule : pool_rules()) rule(pool, findings);
  std::ranges::stable_sort(findings, {}, [](const Finding& finding) {
    return std::pair{-static_cast<int>(finding.severity), finding.line};
  });
  return findings;
}

std::string text_of(const std::vector<Finding>& findings, std::string_view file) {
  std::string text;
  for (const auto& finding : findings)
    fmt::format_to(std::back_inserter(text), "{}:{}: {}: {}{}: {} {} [{}]\n", file, finding.line,
                   to_string(finding.severity),
                   finding.pool.empty() ? "" : fmt::format("pool '{}': ", finding.pool),
                   finding.what, finding.why, finding.remedy, finding.rule);
  return text;
}

}  // namespace sluice::proxy
