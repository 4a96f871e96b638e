// Each file that is shipped, started as it stands but for its ports and certificates, and attacked.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <regex>

#include "http/text.hpp"
#include "server/curl.hpp"
#include "server/served.hpp"
#include "server/shop_keys.hpp"
#include "sluice/payment_provider.hpp"
#include "support/certificates.hpp"
#include "support/free_port.hpp"
#include "support/redis_server.hpp"

namespace sluice::server {
namespace {

namespace fs = std::filesystem;
using test::Answer;
using test::Served;

bool is_there(const char* program) {
  return std::system(fmt::format("command -v {} >/dev/null 2>&1", program).c_str()) == 0;
}

std::string shipped(const char* name) { return test::text_of(test::source_path(name)); }

/// REQUIRES: it stands there.
std::string replaced(std::string text, std::string_view what, std::string_view by) {
  const auto at = text.find(what);
  EXPECT_NE(at, text.npos) << what;
  return at == text.npos ? text : text.replace(at, what.size(), by);
}

/// The exit code of a program, and what it has said.
std::pair<int, std::string> run(const fs::path& folder, std::vector<std::string> line) {
  const auto output = folder / "said";
  test::Process program{line, {.directory = folder, .environment = {}, .output = output}};
  const int code = program.wait();
  return {code, test::text_of(output)};
}

struct ServedRow {
  std::string method;
  std::string path;
};

/// Two processes of the service as docs/sale_on_servers.md begins them, for what stands in front.
class Shipped : public testing::Test {
 protected:
  void SetUp() override {
    write("keys", "k1 MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n");
    write("shop_keys", key_.line + "\n");
    write("stripe", "whsec_of_this_test\n");
  }

  fs::path write(const char* name, const std::string& text) const {
    std::ofstream{folder_ / name} << text;
    fs::permissions(folder_ / name, fs::perms::owner_read | fs::perms::owner_write);
    return folder_ / name;
  }

  void begin_services() {
    redis_.emplace();
    for (int i = 0; i < 2; ++i) {
      served_.push_back(std::make_unique<Served>(
          folder_, i,
          std::vector<std::string>{
              "--store", redis_->url(), "--orders", "sqlite:" + (folder_ / "orders.db").string(),
              "--sale", "tea=100", "--keys", (folder_ / "keys").string(), "--shop-keys",
              (folder_ / "shop_keys").string(), "--trusted", "127.0.0.1", "--client-rate", "0",
              "--stripe", "stripe=" + (folder_ / "stripe").string()}));
      ASSERT_TRUE(served_.back()->begins()) << served_.back()->output();
    }
  }
  std::uint16_t port_of(std::size_t which) const { return served_.at(which)->port(); }

  /// Begins what is in front; `plain_` and `tls_` are its ports.
  void begin_front(std::vector<std::string> line) {
    front_.emplace(
        line, test::ProcessOptions{
                  .directory = folder_.path(), .environment = {}, .output = folder_ / "front"});
    ASSERT_TRUE(test::comes_true([&] {
      try {
        return test::ask(plain_, "GET", "/v1/sales").status == 200;
      } catch (const std::system_error&) {
        return !front_->running();
      }
    })) << test::text_of(folder_ / "front");
  }

  /// By the front, as a client that has this address.
  Answer through(std::string_view method, std::string_view target, std::string_view fields = {},
                 const char* from = nullptr) const {
    http::RawClient client{plain_, from};
    const auto whole =
        client.ask(fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n{}\r\n",
                               method, target, fields));
    const auto end = whole.find("\r\n\r\n");
    if (end == whole.npos) return {};
    return {std::stoi(whole.substr(9, 3)), whole.substr(0, end), whole.substr(end + 4)};
  }

  /// What is served, with a value for each parameter.
  std::vector<ServedRow> table() const {
    const auto all = JsonValue::parse(test::ask(port_of(0), "GET", "/openapi.json").body,
                                      {.bytes = 1 << 20, .depth = 32, .members = 1000});
    std::vector<ServedRow> rows;
    for (const auto& [path, operations] : *all.value().find("paths")->as_object())
      for (const auto& [method, operation] : *operations.as_object()) {
        ServedRow row{.method = {},
                      .path = std::regex_replace(path, std::regex{R"(\{sale\})"}, "tea")};
        row.path = std::regex_replace(row.path, std::regex{R"(\{asset\})"}, "main.js");
        row.path = std::regex_replace(row.path, std::regex{R"(\{\w+\})"}, "1");
        for (const char c : method) row.method += static_cast<char>(std::toupper(c));
        rows.push_back(row);
      }
    return rows;
  }
  static bool is_closed(const std::string& path) {
    static const std::regex closed{"/v1/(operate|locks|series|ids|bloom)(/.*)?"};
    return std::regex_match(path, closed);
  }

  void expect_each_route_answers() const {
    int open = 0;
    for (const auto& row : table()) {
      if (is_closed(row.path) || row.path.ends_with("/events")) continue;
      ++open;
      const auto direct = test::ask(port_of(0), row.method, row.path);
      const auto behind = through(row.method, row.path);
      EXPECT_EQ(behind.status, direct.status) << row.method << ' ' << row.path << behind.body;
      EXPECT_NE(behind.head.find("no-store") == behind.head.npos, direct.has("no-store"))
          << behind.head;
    }
    EXPECT_GT(open, 20);
    http::RawClient events{plain_};
    events.send("GET /v1/sales/tea/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_NE(events.until("\"state\":\"open\"").find("event: state"), std::string::npos);
  }

  /// A path as hostile clients write it.
  static std::vector<std::string> spellings(const std::string& path) {
    std::vector<std::string> all{path,
                                 path + "/",
                                 path + "/.",
                                 path + "?a=b",
                                 path + "#",
                                 path + ";a=b",
                                 path + "%00",
                                 path + "%20",
                                 "/." + path,
                                 "/x/.." + path,
                                 "/%2e" + path,
                                 "/x/%2e%2e" + path,
                                 "/v1/sales/.." + path.substr(3),
                                 "/sales/../" + path.substr(1),
                                 "http://localhost" + path,
                                 "http://localhost:8080" + path,
                                 "HTTP://[::1]" + path,
                                 "/v1%2f" + path.substr(4),
                                 "\\" + path.substr(1),
                                 "/v1\\" + path.substr(4)};
    for (std::size_t at = 0; at < path.size(); ++at) {
      const auto with = [&](const std::string& text) {
        all.push_back(path.substr(0, at) + text + path.substr(at + 1));
      };
      with(fmt::format("%{:02x}", static_cast<unsigned>(path[at])));
      with(fmt::format("%25{:02x}", static_cast<unsigned>(path[at])));
      if (path[at] == '/') with("//"), with("/./"), with("/;/"), with("/\t/");
      if (path[at] >= 'a' && path[at] <= 'z') with({1, static_cast<char>(path[at] - 32)});
    }
    return all;
  }

  /// Nobody is an operator or has tools there, not even with a key that is right.
  void expect_operators_are_shut_out() const {
    const auto key = fmt::format("Authorization: Bearer {}\r\nIdempotency-Key: 1\r\n", key_.key);
    EXPECT_EQ(test::ask(port_of(0), "GET", "/v1/operate/session",
                        {{"Authorization", "Bearer " + key_.key}})
                  .status,
              200)
        << "it is right";
    int asked = 0;
    for (const auto& row : table()) {
      if (!is_closed(row.path)) continue;
      EXPECT_EQ(through(row.method, row.path, key).status, 403) << row.path;
      for (const auto& path : spellings(row.path)) {
        const auto answer = through(row.method, path, key);
        ++asked;
        EXPECT_TRUE(answer.status >= 300 || answer.status == 0) << row.method << ' ' << path << '\n'
                                                                << answer.head << answer.body;
      }
    }
    EXPECT_GT(asked, 1500);
  }

  /// With as much metadata as Stripe lets one have.
  void expect_large_events_come_through() const {
    const StripePayments stripe{"stripe", {"whsec_of_this_test"}, {}};
    auto event = std::string{
        R"({"type":"payment_intent.succeeded","data":{"object":{"id":"pi_1","amount_received":5,)"
        R"("currency":"cny","metadata":{"sale":"tea","order":"TEA1")"};
    for (int i = 0; i < 48; ++i) event += fmt::format(R"(,"m{}":"{}")", i, std::string(500, 'x'));
    event += "}}}}";
    const auto answer =
        test::ask(plain_, "POST", "/v1/payments/stripe",
                  {{"Stripe-Signature", stripe.sign(event, system_clock().wall())}}, event);
    EXPECT_EQ(answer.status, 204) << answer.head << answer.body;
  }

  /// What a client says of its address and its scheme is replaced.
  void expect_clients_are_told_apart() const {
    const auto failed =
        through("POST", "/console/login",
                "X-Forwarded-For: 203.0.113.9\r\nForwarded: for=203.0.113.9\r\n", "127.0.0.9");
    EXPECT_EQ(failed.status, 400) << failed.body;
    http::RawClient client{plain_, "127.0.0.9"};
    const std::string body = "key=sk.ann.wrong";
    client.ask(
        fmt::format("POST /console/login HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: "
                    "203.0.113.9\r\nContent-Length: {}\r\n\r\n{}",
                    body.size(), body));
    EXPECT_TRUE(test::comes_true([&] {
      const auto said = served_[0]->output() + served_[1]->output();
      EXPECT_EQ(said.find("203.0.113.9"), said.npos) << said;
      return said.find("a login from 127.0.0.9 failed") != said.npos;
    }));
  }

  /// A page over TLS: its cookie is for TLS alone, and the browser is to come by TLS.
  void expect_tls_is_known() const {
    const auto [code, said] =
        run(folder_.path(),
            {"curl", "--silent", "--include", "--max-time", "60", "--insecure", "--data",
             "key=" + key_.key, fmt::format("https://localhost:{}/console/login", tls_)});
    EXPECT_EQ(code, 0);
    const auto lower = [](std::string text) {
      for (auto& c : text) c = http::lower(c);
      return text;
    }(said);
    EXPECT_NE(lower.find(" 204"), lower.npos) << said;
    EXPECT_NE(lower.find("; secure"), lower.npos) << said;
    EXPECT_NE(lower.find("\nstrict-transport-security: max-age="), lower.npos) << said;
  }

  const MadeShopKey key_ = make_shop_key("ann", {Scope::operate, Scope::tools, Scope::orders});
  const std::uint16_t plain_ = test::free_port();
  const std::uint16_t tls_ = test::free_port();
  const test::TempDir folder_;
  test::Certificates certificates_;
  std::optional<test::RedisServer> redis_;
  std::vector<std::unique_ptr<Served>> served_;
  std::optional<test::Process> front_;
};

TEST_F(Shipped, NU07_SV04_Nginx) {
  if (!is_there("nginx")) GTEST_SKIP() << "nginx is not installed";
  begin_services();
  auto site = shipped("share/nginx/sluice-sale.conf");
  site = replaced(site, "listen 443 ssl;",
                  fmt::format("listen 127.0.0.1:{} ssl; listen 127.0.0.1:{};", tls_, plain_));
  site = replaced(site, "/etc/sluice/cert.pem", certificates_["server.pem"]);
  site = replaced(site, "/etc/sluice/key.pem", certificates_["server.key"]);
  site = replaced(site, "127.0.0.1:8080", fmt::format("127.0.0.1:{}", port_of(0)));
  site = replaced(site, "127.0.0.1:8082", fmt::format("127.0.0.1:{}", port_of(1)));
  write("site.conf", site);
  std::string temporary;
  for (const auto* of : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"})
    temporary += fmt::format("{}_temp_path {};\n", of, (folder_ / of).string());
  const auto whole = write(
      "nginx.conf", fmt::format("daemon off; pid {}; error_log stderr;\n{}"
                                "events {{}}\nhttp {{\naccess_log off;\n{}include {};\n}}\n",
                                (folder_ / "pid").string(), ::geteuid() == 0 ? "user root;\n" : "",
                                temporary, (folder_ / "site.conf").string()));
  const auto [code, said] = run(folder_.path(), {"nginx", "-t", "-c", whole.string()});
  ASSERT_EQ(code, 0) << said;
  begin_front({"nginx", "-c", whole.string()});
  expect_each_route_answers();
  expect_operators_are_shut_out();
  expect_large_events_come_through();
  expect_clients_are_told_apart();
  expect_tls_is_known();
}

TEST_F(Shipped, SV04_SV15_HaProxy) {
  if (!is_there("haproxy")) GTEST_SKIP() << "haproxy is not installed";
  begin_services();
  write("shop.pem",
        test::text_of(certificates_["server.pem"]) + test::text_of(certificates_["server.key"]));
  auto file = shipped("share/haproxy/sluice-sale.cfg");
  file = replaced(file, "bind :443",
                  fmt::format("bind 127.0.0.1:{}\n  bind 127.0.0.1:{}", plain_, tls_));
  file = replaced(file, "/etc/sluice/shop.pem", (folder_ / "shop.pem").string());
  const auto server = [&](std::size_t which) {
    const auto health = std::regex_replace(
        served_.at(which)->output(), std::regex{R"re([\s\S]*"health_port":(\d+)[\s\S]*)re"}, "$1");
    return fmt::format("127.0.0.1:{} port {}", port_of(which), health);
  };
  file = replaced(file, "127.0.0.1:8080 port 18080", server(0));
  file = replaced(file, "127.0.0.1:8082 port 18082", server(1));
  const auto whole = write("haproxy.cfg", file).string();
  const auto [code, said] = run(folder_.path(), {"haproxy", "-c", "-f", whole});
  ASSERT_EQ(code, 0) << said;
  begin_front({"haproxy", "-db", "-f", whole});
  expect_each_route_answers();
  expect_operators_are_shut_out();
  expect_large_events_come_through();
  expect_clients_are_told_apart();
  expect_tls_is_known();
}

TEST_F(Shipped, SV14_UnitsOfSystemd) {
  if (!is_there("systemd-analyze")) GTEST_SKIP() << "systemd-analyze is not installed";
  for (const auto* name : {"sluice-serve.service", "sluice-serve@8080.service"}) {
    const bool is_one_of_several = std::string_view{name}.contains('@');
    auto unit =
        shipped(is_one_of_several ? "cmake/sluice-serve@.service" : "cmake/sluice-serve.service");
    EXPECT_NE(unit.find("\nUMask=0077\n"), unit.npos) << name;
    EXPECT_NE(unit.find("\nStartLimitIntervalSec=0\n"), unit.npos)
        << name << ": else it stays down where its store is away for some seconds";
    unit =
        replaced(unit, "ExecStart=sluice-serve", "ExecStart=" + test::built_path("sluice-serve"));
    write(name, unit);
    const auto [code, said] =
        run(folder_.path(), {"systemd-analyze", "verify", "--man=no", fmt::format("./{}", name)});
    EXPECT_EQ(code, 0) << said;
    EXPECT_EQ(said.find(name), said.npos) << said;
    const auto [exposed, table] =
        run(folder_.path(), {"systemd-analyze", "security", "--offline=true", "--threshold=20",
                             "--no-pager", fmt::format("./{}", name)});
    EXPECT_EQ(exposed, 0) << table;
  }
}

TEST_F(Shipped, RulesAndPanelsOfPrometheus) {
  if (!is_there("promtool")) GTEST_SKIP() << "promtool is not installed";
  const auto rules = test::source_path("share/prometheus/sluice-sale.rules.yml");
  const auto [code, said] = run(folder_.path(), {"promtool", "check", "rules", rules});
  EXPECT_EQ(code, 0) << said;
  const auto dashboard =
      JsonValue::parse(shipped("share/grafana/sluice-sale.json"), {.bytes = 1 << 20, .depth = 16});
  std::string asked = "groups:\n  - name: panels\n    rules:\n";
  for (const auto& panel : *dashboard.value().find("panels")->as_array())
    for (const auto& target : *panel.find("targets")->as_array())
      asked += fmt::format(
          "      - record: a:b\n        expr: {}\n",
          Json{std::regex_replace(*target.find("expr")->as_text(), std::regex{R"(\$\w+)"}, "5m")}
              .text());
  const auto [panels, told] =
      run(folder_.path(), {"promtool", "check", "rules", "--lint=none", write("panels", asked)});
  EXPECT_EQ(panels, 0) << told;
}

}  // namespace
}  // namespace sluice::server
