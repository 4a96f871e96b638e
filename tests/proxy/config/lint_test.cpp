#include <gtest/gtest.h>

#include "proxy/config/inspect.hpp"
#include "proxy/config/read.hpp"
#include "support/matchers.hpp"

namespace sluice::proxy::config {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string listen = "alpha:\n  listen: 127.0.0.1:22121\n";
const std::string quiet = listen + "  redis: true\n  hash_tag: \"{}\"\n  timeout: 400\n";
const std::string three_servers = "  servers:\n   - h:1:1\n   - h:2:1\n   - h:3:1\n";

std::vector<Finding> findings_of(const std::string& yaml, FileFacts file = {}) {
  return lint(read(yaml, "t.yml"), file);
}

std::vector<std::string> rules_of(const std::string& yaml, FileFacts file = {}) {
  std::vector<std::string> rules;
  for (const auto& finding : findings_of(yaml, file)) rules.push_back(finding.rule);
  return rules;
}

TEST(Lint, HasNothingToSayOfAGoodFile) { EXPECT_THAT(rules_of(quiet + three_servers), IsEmpty()); }

TEST(Lint, Crc32WithKetamaIsMeasured) {
  const auto findings = findings_of(quiet + "  hash: crc32\n" + three_servers);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "crc32-ketama");
  EXPECT_EQ(findings[0].severity, Severity::danger);
  EXPECT_THAT(findings[0].what, HasSubstr("2 of 3 servers get no key"));
  EXPECT_THAT(findings[0].what, HasSubstr("100 % of all"));
  EXPECT_THAT(rules_of(quiet + "  hash: crc32a\n" + three_servers), IsEmpty());
}

TEST(Lint, EveryRuleFindsItsCase) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"ignored-weights", quiet + "  distribution: random\n  servers:\n   - h:1:1\n   - h:2:2\n"},
      {"uneven-shares", quiet + "  servers:\n   - h:1:1\n   - h:2:1000\n"},
      {"long-name", quiet + three_servers + "   - h:4:1 " + std::string(81, 'x') + "\n"},
      {"no-hash-tag", listen + "  redis: true\n  timeout: 1\n" + three_servers},
      {"no-timeout", listen + three_servers},
      {"connections-above-limit",
       quiet + "  auto_eject_hosts: true\n  server_connections: 3\n" + three_servers},
      {"ejects-only-server", quiet + "  auto_eject_hosts: true\n  servers:\n   - h:1:1\n"},
      {"keys-move-on-failure", quiet + "  auto_eject_hosts: true\n" + three_servers},
      {"open-door", "alpha:\n  listen: 0.0.0.0:22121\n" + three_servers},
      {"unchecked-certificate", quiet + "  server_tls:\n    verify: false\n" + three_servers},
      {"same-address", quiet + three_servers + "   - h:1:1 again\n"},
      {"name-of-a-counter", quiet + three_servers + "   - h:4:1 client_eof\n"},
      {"name-of-a-counter", "uptime" + quiet.substr(5) + three_servers},
      {"client-connections", quiet + "  client_connections: 5\n" + three_servers},
      {"idle-command", quiet + "  commands: {GET: key 1}\n" + three_servers},
      {"scripts-beyond-rights",
       quiet + "  users: [{name: u, password: p, acl: \"+@all ~app:*\"}]\n" + three_servers},
      {"scripts-beyond-rights",
       quiet + "  users: [{name: u, password: p, acl: \"+@all -@dangerous ~* &*\"}]\n" +
           three_servers},
      {"scripts-beyond-rights",
       quiet + "  users: [{name: u, password: p, acl: \"+get +fcall ~*\"}]\n" + three_servers},
      {"idle-command", quiet + "  compat: strict\n  commands: {MY.GET: key 1}\n" + three_servers},
      {"one-user", quiet + "  rate_limit: {per_user: 10/s}\n" + three_servers},
      {"unlimited-strangers",
       quiet + "  redis_auth: x\n  rate_limit: {bytes_per_user: 10kb/s}\n" + three_servers},
      {"no-addresses",
       "alpha:\n  listen: /tmp/a.sock\n  redis: true\n  hash_tag: \"{}\"\n  timeout: 1\n"
       "  rate_limit: {per_address: 10/s}\n" +
           three_servers},
      {"mirror-allow", quiet + "  allow: [flushall]\n  mirror: {pool: b}\n" + three_servers +
                           "b:\n  listen: h:1\n  redis: true\n  hash_tag: \"{}\"\n  timeout: 1\n"
                           "  servers:\n   - h:9:1\n"},
      {"mirror-order", "sluice:\n  workers: 2\n" + quiet + "  mirror: {pool: b}\n" + three_servers +
                           "b:\n  listen: h:1\n  redis: true\n  hash_tag: \"{}\"\n  timeout: 1\n"
                           "  servers:\n   - h:9:1\n"},
      {"loop", quiet + "  servers:\n   - 127.0.0.1:22121:1\n"},
  };
  for (const auto& [rule, yaml] : cases) EXPECT_THAT(rules_of(yaml), Contains(rule)) << yaml;
}

TEST(Lint, RightsWithoutScriptsAreGood) {
  for (const auto* acl : {"+@all -@scripting ~app:*", "+@read ~app:*", "+@all ~* &*"})
    EXPECT_THAT(rules_of(quiet + "  users: [{name: u, password: p, acl: \"" + acl + "\"}]\n" +
                         three_servers),
                IsEmpty())
        << acl;
}

TEST(Lint, AnOpenDoorIsGuardedByAPassword) {
  const std::string open = "alpha:\n  listen: 0.0.0.0:22121\n  redis: true\n";
  EXPECT_THAT(rules_of(open + "  redis_auth: x\n" + three_servers), Not(Contains("open-door")));
  EXPECT_THAT(rules_of(open + three_servers), Contains("open-door"));
}

TEST(Lint, SecretsInAFileForEverybodyAreDangerous) {
  const auto secret = quiet + "  redis_auth: x\n" + three_servers;
  EXPECT_THAT(rules_of(secret, {.permissions = 0644}), Contains("readable-secrets"));
  EXPECT_THAT(rules_of(secret, {.permissions = 0640}), IsEmpty());
  EXPECT_THAT(rules_of(quiet + three_servers, {.permissions = 0644}), IsEmpty());
}

TEST(Lint, TheWorstComesFirstWithItsLine) {
  const auto yaml = listen + "  hash: crc32\n" + three_servers + "   - h:1:1 again\n";
  const auto findings = findings_of(yaml);
  ASSERT_GE(findings.size(), 3U);
  EXPECT_EQ(findings.front().severity, Severity::danger);
  EXPECT_THAT(text_of(findings, "t.yml"),
              HasSubstr("t.yml:8: warning: pool 'alpha': 'h:1' and 'again' are both at h:1"));
}

}  // namespace
}  // namespace sluice::proxy::config
