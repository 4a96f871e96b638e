#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "base/json.hpp"
#include "front/rights.hpp"
#include "proxy/config/inspect.hpp"
#include "proxy/redis/taught_commands.hpp"
#include "proxy/watch/counters.hpp"
#include "resp/command_table.hpp"

namespace sluice::proxy::config {
namespace {

using Findings = std::vector<Finding>;

Finding about(const PoolSettings& pool, Severity severity, std::string rule, std::string what,
              std::string why, std::string remedy) {
  return {severity,        pool.name,      pool.place.line,  std::move(rule),
          std::move(what), std::move(why), std::move(remedy)};
}

Finding about(const PoolSettings& pool, const ServerSettings& server, Severity severity,
              std::string rule, std::string what, std::string why, std::string remedy) {
  auto finding =
      about(pool, severity, std::move(rule), std::move(what), std::move(why), std::move(remedy));
  finding.line = server.place.line;
  return finding;
}

bool draws_servers(const PoolSettings& pool) { return pool.distribution == Distribution::random; }

bool weights_differ(const PoolSettings& pool) {
  return std::ranges::adjacent_find(pool.servers, std::ranges::not_equal_to{},
                                    &ServerSettings::weight) != pool.servers.end();
}

bool is_open_to_all(const Listen& listen) {
  return !listen.endpoint.is_unix() &&
         (listen.endpoint.host == "0.0.0.0" || listen.endpoint.host == "::");
}

/// Compares the share of keys of each server with the share of its weight.
void uneven_shares(const PoolSettings& pool, Findings& findings) {
  constexpr double far_from_promised = 1.5;
  if (draws_servers(pool) || pool.servers.size() < 2) return;
  const auto shares = shares_of(make_homes(pool), pool.servers.size());
  double weights = 0;
  for (const auto& server : pool.servers) weights += server.weight;
  double worst = 1;
  std::size_t most = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    worst = std::max(worst, shares[i] * weights / pool.servers[i].weight);
    if (shares[i] > shares[most]) most = i;
  }
  const auto without = std::ranges::count(shares, 0.0);
  if (worst < far_from_promised && without == 0) return;
  const bool crc32 = pool.hash == Hash::crc32 && pool.distribution == Distribution::ketama;
  findings.push_back(
      about(pool, without > 0 || crc32 ? Severity::danger : Severity::warning,
            crc32 ? "crc32-ketama" : "uneven-shares",
            fmt::format("{} of {} servers get no key, and '{}' gets {:.0f} % of all", without,
                        shares.size(), pool.servers[most].name, shares[most] * 100),
            crc32 ? "of this crc32 only 15 bits are left, and a ketama ring has 32."
                  : "the weights do not come out on this ring.",
            crc32 ? "Use fnv1a_64, or crc32a; keys move then: see sluice proxy diff."
                  : "Make the weights smaller or closer to each other."));
}

/// twemproxy writes a name and a number into 86 bytes, and hashes what lies behind when they do not
/// fit.
void long_names(const PoolSettings& pool, Findings& findings) {
  constexpr std::size_t longest = 80;
  if (pool.distribution != Distribution::ketama) return;
  for (const auto& server : pool.servers)
    if (server.name.size() > longest)
      findings.push_back(
          about(pool, server, Severity::warning, "long-name",
                fmt::format("the name '{}' has {} bytes", server.name, server.name.size()),
                "twemproxy hashes memory of its own with names beyond 80, so its "
                "keys may be elsewhere.",
                "Give a shorter name, if keys need not stay."));
}

void ejecting_connections(const PoolSettings& pool, Findings& findings) {
  if (pool.auto_eject_hosts && pool.server_connections > pool.server_failure_limit)
    findings.push_back(about(
        pool, Severity::warning, "connections-above-limit",
        fmt::format("server_connections is {}, and server_failure_limit {}",
                    pool.server_connections, pool.server_failure_limit),
        "twemproxy counts each connection that breaks, so one restart ejects the server at once.",
        fmt::format("Make server_failure_limit at least {}.", pool.server_connections + 1)));
}

void open_door(const PoolSettings& pool, Findings& findings) {
  const bool guarded = !pool.redis_auth.empty() || !pool.users.empty() ||
                       (pool.listen_tls.on && !pool.listen_tls.ca.empty());
  if (is_open_to_all(pool.listen) && !guarded)
    findings.push_back(
        about(pool, Severity::warning, "open-door",
              fmt::format("it listens at {} and asks for no password", pool.listen.text),
              "anybody who reaches this machine may read and delete everything.",
              "Listen at an inner address, or set redis_auth or users."));
}

void same_address_twice(const PoolSettings& pool, Findings& findings) {
  std::map<std::string, const ServerSettings*> seen;
  for (const auto& server : pool.servers) {
    const auto [first, is_new] = seen.emplace(net::to_string(server.endpoint), &server);
    if (!is_new)
      findings.push_back(about(pool, server, Severity::warning, "same-address",
                               fmt::format("'{}' and '{}' are both at {}", first->second->name,
                                           server.name, first->first),
                               "one server has the load and the data of two.",
                               "Correct an address, or use one entry with a larger weight."));
  }
}

/// In twemproxy's statistics a server stands among the counters of its pool, and a pool among those
/// of the process.
void name_of_a_counter(const PoolSettings& pool, Findings& findings) {
#define COUNTER(name, kind, of_twemproxy, help) #name,
  static constexpr std::string_view of_pools[]{
#define POOL
#include "proxy/watch/counters.def"
#undef POOL
  };
#undef COUNTER
  static constexpr std::array<std::string_view, 7> of_process{
      "service",           "source",          "version", "uptime", "timestamp",
      "total_connections", "curr_connections"};
  const auto add = [&](const std::string& name, std::size_t line) {
    auto finding = about(pool, Severity::warning, "name-of-a-counter",
                         fmt::format("'{}' is also the name of a counter", name),
                         "in the statistics one hides the other.", "Choose another name.");
    finding.line = line;
    findings.push_back(std::move(finding));
  };
  if (std::ranges::find(of_process, pool.name) != of_process.end()) add(pool.name, pool.place.line);
  for (const auto& server : pool.servers)
    if (std::ranges::find(of_pools, server.name) != std::end(of_pools))
      add(server.name, server.place.line);
}

void limit_that_was_ignored(const PoolSettings& pool, Findings& findings) {
  if (pool.client_connections != 0)
    findings.push_back(about(pool, Severity::note, "client-connections",
                             fmt::format("client_connections is {}", pool.client_connections),
                             "twemproxy reads it and ignores it; here it holds.",
                             "Make sure that your clients need no more."));
}

void commands_that_are_known(const PoolSettings& pool, Findings& findings) {
  for (const auto& rule : pool.commands)
    if (resp::find_command(rule.name) != nullptr || pool.compat == Compat::strict)
      findings.push_back(about(pool, Severity::warning, "idle-command",
                               fmt::format("commands names '{}'", rule.name),
                               pool.compat == Compat::strict
                                   ? "with compat: strict the proxy serves what twemproxy serves."
                                   : "the proxy knows it already, and goes by its own table.",
                               "Remove it."));
}

/// What a script does the proxy does not see.
void scripts_beyond_rights(const PoolSettings& pool, Findings& findings) {
  if (pool.users.empty()) return;
  const TaughtCommands taught{pool.commands};
  const auto may_run = [](front::Rights& rights, std::string_view name) {
    const std::string_view words[]{name, "", "0"};
    return rights.check(*resp::find_command(name), words) == front::Denied::nothing;
  };
  for (const auto& user : pool.users) {
    if (user.acl.empty()) continue;
    front::Rights rights{user.acl, taught};
    const bool is_limited = !rights.covers(front::Rights{"+@all allkeys allchannels", taught});
    const bool runs_scripts =
        may_run(rights, "eval") || may_run(rights, "evalsha") || may_run(rights, "fcall");
    if (!is_limited || !runs_scripts) continue;
    auto finding = about(pool, Severity::warning, "scripts-beyond-rights",
                         fmt::format("acl of the user '{}' allows scripts", user.name),
                         "which commands a script runs, and on which other keys, is not seen here: "
                         "it may do everything.",
                         "Write -@scripting behind the other words of acl.");
    finding.line = user.place.line;
    findings.push_back(std::move(finding));
  }
}

bool limits_users(const PoolSettings& pool) {
  return pool.rate_limit.per_user || pool.rate_limit.bytes_per_user;
}

bool limits_addresses(const PoolSettings& pool) {
  return pool.rate_limit.per_address || pool.rate_limit.bytes_per_address;
}

/// A rule whose words are always the same.
struct PlainRule {
  bool (*applies)(const PoolSettings& pool);
  Severity severity;
  std::string_view name, what, why, remedy;
};
constexpr PlainRule plain_rules[] = {
    {[](const PoolSettings& pool) { return draws_servers(pool) && weights_differ(pool); },
     Severity::warning, "ignored-weights", "weights differ, and the distribution is random",
     "random ignores weights: every server gets as much.",
     "Make them all 1, or use ketama or modula."},
    {[](const PoolSettings& pool) {
       return pool.redis && !pool.hash_tag && pool.servers.size() > 1;
     },
     Severity::note, "no-hash-tag", "there is no hash_tag",
     "a command of several keys, a script or a transaction works only when their keys have one "
     "home, which nothing arranges.",
     "Write hash_tag: \"{}\" before there are keys with braces."},
    {[](const PoolSettings& pool) { return !pool.timeout; }, Severity::warning, "no-timeout",
     "there is no timeout", "a server that hangs holds its clients for ever.",
     "Write timeout: 400, or what your clients can wait."},
    {[](const PoolSettings& pool) { return pool.auto_eject_hosts && pool.servers.size() == 1; },
     Severity::warning, "ejects-only-server", "auto_eject_hosts is true, and there is one server",
     "when it is ejected every request fails for server_retry_timeout, even if it is well again.",
     "Remove auto_eject_hosts."},
    {[](const PoolSettings& pool) {
       return pool.redis && pool.auto_eject_hosts && pool.on_failure == OnFailure::rehash &&
              pool.servers.size() > 1;
     },
     Severity::note, "keys-move-on-failure", "keys of a server that fails move to others",
     "when it is back, old values are read again: right for a cache, wrong for data.",
     "Write on_failure: fail where data must not move."},
    {[](const PoolSettings& pool) { return limits_users(pool) && !pool.wants_login(); },
     Severity::warning, "one-user", "rate_limit is for users, and nobody logs in",
     "all clients together are one user then.", "Write per_address, or set users."},
    {[](const PoolSettings& pool) {
       return limits_users(pool) && pool.wants_login() && !limits_addresses(pool);
     },
     Severity::note, "unlimited-strangers", "rate_limit is for users alone",
     "who has not logged in may send as many requests as he likes.", "Write per_address, too."},
    {[](const PoolSettings& pool) {
       return limits_addresses(pool) && pool.listen.endpoint.is_unix();
     },
     Severity::warning, "no-addresses", "rate_limit is for addresses, and it listens at a path",
     "clients of a unix socket have no address, and no limit.", "Write per_user."},
    {[](const PoolSettings& pool) {
       const auto is_unchecked = [](const TlsSettings& tls) { return tls.on && !tls.verify; };
       return is_unchecked(pool.server_tls) || is_unchecked(pool.tls_to_sentinels());
     },
     Severity::warning, "unchecked-certificate",
     "server_tls or sentinel_tls does not check certificates",
     "an attacker in between may read and change everything.",
     "Give ca, and remove verify: false."},
};

void check_plain_rules(const PoolSettings& pool, Findings& findings) {
  for (const auto& rule : plain_rules)
    if (rule.applies(pool))
      findings.push_back(about(pool, rule.severity, std::string{rule.name}, std::string{rule.what},
                               std::string{rule.why}, std::string{rule.remedy}));
}

using PoolRule = void (*)(const PoolSettings& pool, Findings& findings);
constexpr PoolRule rules[] = {check_plain_rules,
                              uneven_shares,
                              long_names,
                              ejecting_connections,
                              open_door,
                              same_address_twice,
                              name_of_a_counter,
                              limit_that_was_ignored,
                              commands_that_are_known,
                              scripts_beyond_rights};

constexpr unsigned others_may_read = 0004;

/// Rules about the file and the pools among each other.
void check_whole(const Config& config, const FileFacts& file, std::vector<Finding>& findings) {
  const bool has_secrets = std::ranges::any_of(config.pools, [](const PoolSettings& pool) {
    return !pool.redis_auth.empty() || !pool.server_password.empty() || !pool.users.empty();
  });
  if (has_secrets && (file.permissions.value_or(0) & others_may_read) != 0)
    findings.push_back({Severity::danger, "", 1, "readable-secrets",
                        "the file has passwords, and everybody on this machine may read it",
                        "every user of this machine may then use the servers.",
                        "Set its mode to 0600 or 0640."});
  for (const auto& pool : config.pools)
    for (const auto& server : pool.servers)
      if (server.endpoint == pool.listen.endpoint)
        findings.push_back(
            {Severity::danger, pool.name, server.place.line, "loop",
             fmt::format("the server '{}' is the address that the pool listens at", server.name),
             "requests would go round for ever.", "Give the server's own address."});
}

/// What the first pool lets through the second refuses.
void check_mirrors(const Config& config, std::vector<Finding>& findings) {
  for (const auto& pool : config.pools) {
    const auto second = std::ranges::find(config.pools, pool.mirror.pool, &PoolSettings::name);
    if (second == config.pools.end()) continue;
    if (config.process.workers > 1)
      findings.push_back(about(
          pool, Severity::warning, "mirror-order", "several workers send to its mirror",
          "what two connections write to one key may come to the second pool the other way round, "
          "also when one has waited for the other: it keeps the older value.",
          "Write workers: 1 while data are moved."));
    for (const auto& command : pool.allow)
      if (std::ranges::find(second->allow, command) == second->allow.end())
        findings.push_back(about(
            pool, Severity::warning, "mirror-allow",
            fmt::format("it allows '{}', and its mirror '{}' does not", command, second->name),
            "the mirror refuses the command, and has other data from then on.",
            "Name it in allow of both pools."));
  }
}

}  // namespace

std::string_view to_string(Severity severity) noexcept {
  static constexpr std::array<std::string_view, 3> names{"note", "warning", "danger"};
  return names[static_cast<std::size_t>(severity)];
}

std::vector<Finding> lint(const Config& config, const FileFacts& file) {
  std::vector<Finding> findings;
  check_whole(config, file, findings);
  check_mirrors(config, findings);
  for (const auto& pool : config.pools)
    for (const auto rule : rules) rule(pool, findings);
  std::ranges::stable_sort(findings, {}, [](const Finding& finding) {
    return std::pair{-static_cast<int>(finding.severity), finding.line};
  });
  return findings;
}

std::string text_of(const std::vector<Finding>& findings, std::string_view file) {
  std::string text;
  for (const auto& finding : findings)
    text += fmt::format("{}:{}: {}: {}{}: {} {} [{}]\n", file, finding.line,
                        to_string(finding.severity),
                        finding.pool.empty() ? "" : fmt::format("pool '{}': ", finding.pool),
                        finding.what, finding.why, finding.remedy, finding.rule);
  return text;
}

Json json_of(const std::vector<Finding>& findings) {
  auto all = Json::array();
  for (const auto& finding : findings)
    all.add(Json::object({{"severity", to_string(finding.severity)},
                          {"pool", finding.pool},
                          {"line", finding.line},
                          {"rule", finding.rule},
                          {"what", finding.what},
                          {"why", finding.why},
                          {"remedy", finding.remedy}}));
  return all;
}

}  // namespace sluice::proxy::config
