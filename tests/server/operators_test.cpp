/// Who is an operator: keys, cookies, pages of other sites.
#include "server/operators.hpp"

#include <optional>

#include "base/random.hpp"
#include "server/operate_fixture.hpp"

namespace sluice::server {
namespace {

constexpr std::string_view replay = "/v1/operate/sales/tea/messages/replay";

/// The cookie that an answer sets, as a browser sends it back.
std::string cookie_in(const Answer& answer) {
  const auto at = answer.head.find("Set-Cookie: ");
  if (at == std::string::npos) return {};
  const auto begin = at + 12;
  return answer.head.substr(begin, answer.head.find_first_of(";\r", begin) - begin);
}

class OperatorsTest : public OperateTest {
 protected:
  Answer log_in(const MadeShopKey& who, Fields fields = {}) const {
    return ask("POST", "/console/login", fields, "key=" + who.key);
  }
  Answer session_of(std::string_view cookie) const {
    return ask("GET", "/v1/operate/session", {{"Cookie", cookie}});
  }
  /// A request as it stands there; `ask` always says "Host: shop".
  int status_of(std::string_view method, std::string_view path, std::string_view head) const {
    http::RawClient client{service_->port()};
    const auto answer = client.ask(
        fmt::format("{} {} HTTP/1.1\r\nContent-Length: 0\r\n{}\r\n", method, path, head));
    return answer.size() < 12 ? 0 : std::stoi(answer.substr(9, 3));
  }
};

TEST_F(OperatorsTest, ALoginIsACookieForTwelveHoursThatNoScriptReads) {
  begin({tea(10)}, with_keys());
  const auto login = log_in(ann_);
  EXPECT_EQ(login.status, 204);
  EXPECT_TRUE(login.has("HttpOnly")) << login.head;
  EXPECT_TRUE(login.has("SameSite=Strict"));
  EXPECT_TRUE(login.has("Path=/;"));
  EXPECT_TRUE(login.has("Max-Age=43200"));
  EXPECT_FALSE(login.has("Secure")) << "over plain HTTP no browser would send it back";
  EXPECT_EQ(session_of(cookie_in(login)).text("operator"), "ann");
  EXPECT_EQ(session_of("a=1; " + cookie_in(login) + "; b=2").text("operator"), "ann");

  const auto json = ask("POST", "/console/login", {}, fmt::format(R"({{"key":"{}"}})", bob_.key));
  EXPECT_EQ(session_of(cookie_in(json)).text("operator"), "bob");
  const auto logout = ask("POST", "/console/logout", {{"Cookie", cookie_in(login)}});
  EXPECT_EQ(logout.status, 204);
  EXPECT_TRUE(logout.has("sluice_console=;") && logout.has("Max-Age=0")) << logout.head;
}

TEST_F(OperatorsTest, BehindAProxyThatSpeaksTlsTheCookieIsForTlsAlone) {
  begin({tea(10)}, with_keys());
  EXPECT_TRUE(log_in(ann_, {{"X-Forwarded-Proto", "https"}}).has("; Secure"));
  EXPECT_FALSE(log_in(ann_, {{"X-Forwarded-Proto", "http"}}).has("; Secure"));
}

TEST_F(OperatorsTest, ALogoutEndsEachCopyOfItsCookieAndNoOther) {
  begin({tea(10)}, with_keys());
  const auto ended = cookie_in(log_in(ann_));
  const auto other = cookie_in(log_in(ann_));
  EXPECT_EQ(ask("POST", "/console/logout", {{"Cookie", ended}, {"Origin", "http://evil"}}).status,
            403);
  EXPECT_EQ(session_of(ended).status, 200) << "another site ends nothing";
  EXPECT_EQ(ask("POST", "/console/logout", {{"Cookie", ended}}).status, 204);
  for (const auto* path : {"/v1/operate/session", "/v1/operate/state", "/v1/operate/events",
                           "/v1/operate/journal", "/v1/operate/sales/tea/orders"})
    EXPECT_EQ(ask("GET", path, {{"Cookie", ended}}).problem(), "unknown-key") << path;
  const auto ours = fmt::format("Host: shop\r\nOrigin: http://shop\r\nCookie: {}\r\n", ended);
  EXPECT_EQ(status_of("POST", replay, ours), 401);
  EXPECT_EQ(session_of(other).status, 200);
  EXPECT_EQ(ask("POST", "/console/logout", {{"Cookie", ended}}).status, 204) << "again";
}

/// Ann has logged in at one process, and looks at a page of another one.
class TwoProcesses : public OperatorsTest {
 protected:
  TwoProcesses() {
    auto options = with_keys();
    options.keys = TokenKeys{{{.id = "k1", .secret = std::string(32, 's')}}};
    begin({tea(10)}, options);
    const std::vector sales{tea(10)};
    second_.emplace(*store_, options, sales);
    cookie_ = cookie_in(log_in(ann_));
    page_.emplace(second_->port());
    page_->send(fmt::format("GET /v1/operate/events HTTP/1.1\r\nHost: shop\r\nCookie: {}\r\n\r\n",
                            cookie_));
    EXPECT_NE(page_->until("\n\n").find("state"), std::string::npos);
  }

  std::optional<Service> second_;
  std::string cookie_;
  std::optional<http::RawClient> page_;
};

TEST_F(TwoProcesses, ALogoutIsKnownToTheOtherProcesses) {
  const auto journal = [&] {
    return test::ask(second_->port(), "GET", "/v1/operate/journal", {{"Cookie", cookie_}}).status;
  };
  EXPECT_EQ(journal(), 200);
  EXPECT_EQ(ask("POST", "/console/logout", {{"Cookie", cookie_}}).status, 204);
  EXPECT_TRUE(test::comes_true([&] { return journal() == 401; }));
  EXPECT_TRUE(test::comes_true([&] { return page_->until("\n\n").empty(); })) << "it is ended, too";
}

TEST_F(TwoProcesses, ALogoutElsewhereIsNoErrorOfTheProcessThatLearnsOfIt) {
  EXPECT_EQ(ask("POST", "/console/logout", {{"Cookie", cookie_}}).status, 204);
  EXPECT_TRUE(test::comes_true([&] {
    const auto answer =
        test::ask(second_->port(), "GET", "/v1/operate/state", {{"Cookie", cookie_}});
    EXPECT_TRUE(answer.status == 200 || answer.problem() == "unknown-key") << answer.body;
    return answer.status == 401;
  }));
}

TEST_F(OperatorsTest, AKeyThatIsTakenAwayIsGoodNoMoreNorAreItsLoginsAndOpenPages) {
  begin({tea(10)}, with_keys());
  const auto anns = cookie_in(log_in(ann_));
  const auto bobs = cookie_in(log_in(bob_));
  http::RawClient page{service_->port()};
  page.send(
      fmt::format("GET /v1/operate/events HTTP/1.1\r\nHost: shop\r\nCookie: {}\r\n\r\n", anns));
  EXPECT_NE(page.until("\n\n").find("state"), std::string::npos);
  service_->replace_shop_keys(ShopKeys{{key_of(bob_)}});
  EXPECT_EQ(as(ann_, "GET", "/v1/operate/session").status, 401);
  EXPECT_EQ(session_of(anns).status, 401);
  EXPECT_TRUE(test::comes_true([&] { return page.until("\n\n").empty(); }));
  EXPECT_EQ(as(bob_, "GET", "/v1/operate/session").status, 200);
  EXPECT_EQ(session_of(bobs).status, 200);
}

/// A page that looks, where no call says that the login has ended.
TEST_F(TwoProcesses, APageThatLooksAtAnotherProcessEndsWithTheLogout) {
  EXPECT_EQ(ask("POST", "/console/logout", {{"Cookie", cookie_}}).status, 204);
  EXPECT_TRUE(test::comes_true([&] { return page_->until("\n\n").empty(); }));
}

TEST_F(OperatorsTest, WhatIsNoKeyOfAnOperatorIsRefused) {
  begin({tea(10)}, with_keys());
  EXPECT_EQ(log_in(till_).problem(), "not-allowed");
  EXPECT_EQ(as(till_, "GET", "/v1/operate/state").status, 403);
  for (const auto* body : {"", "key", "{}", R"({"key":1})", "key=%zz", "{"})
    EXPECT_EQ(ask("POST", "/console/login", {}, body).problem(), "bad-body") << body;
  EXPECT_EQ(ask("POST", "/console/login", {}, "key=sk.ann.x").problem(), "unknown-key");
  EXPECT_EQ(ask("POST", "/console/login", {}, "key=" + std::string(2000, 'x')).problem(),
            "bad-body");
  for (const auto* path : {"/v1/operate/session", "/v1/operate/state", "/v1/operate/events",
                           "/v1/operate/journal", "/v1/operate/sales/tea/orders"})
    EXPECT_EQ(ask("GET", path).problem(), "unknown-key") << path;
  EXPECT_EQ(ask("POST", replay).problem(), "unknown-key");
}

TEST_F(OperatorsTest, ACookieIsGoodForNothingElseAndNoLongerThanItsKey) {
  const TokenKeys keys{{{.id = "k1", .secret = std::string(32, 's')}}};
  const TokenKeys others{{{.id = "k1", .secret = std::string(32, 't')}}};
  auto options = with_keys();
  options.keys = keys;
  begin({tea(10)}, options);
  const auto mark = key_of(ann_).mark();
  const auto cookie_of = [&](const TokenKeys& signer, TokenClaims claims) {
    return "sluice_console=" + signer.sign(claims);
  };
  const auto now = system_clock().wall();
  const TokenClaims good{
      .subject = "ann", .audience = "console", .expires = now + 1h, .more = {{"key", mark}}};
  EXPECT_EQ(session_of(cookie_of(keys, good)).status, 200) << "another process has signed it";

  struct Row {
    const char* what;
    std::string cookie;
  };
  const auto with = [&](auto change) {
    auto claims = good;
    change(claims);
    return cookie_of(keys, claims);
  };
  auto cut_short = cookie_of(keys, good);
  cut_short.pop_back();
  const Row rows[] = {
      {"forged", cookie_of(others, good)},
      {"changed", cut_short},
      {"expired", with([&](auto& claims) { claims.expires = now - 1s; })},
      {"a buyer's token", with([](auto& claims) { claims.audience = "sale:*"; })},
      {"a ticket", with([](auto& claims) { claims.audience = "room:tea"; })},
      {"of a key that is gone", with([](auto& claims) { claims.subject = "cid"; })},
      {"of a key without the scope", with([](auto& claims) { claims.subject = "till-3"; })},
      {"of a key that was replaced", with([](auto& claims) { claims.more["key"] = "0"; })},
      {"of no key", with([](auto& claims) { claims.more.clear(); })},
      {"twice", cookie_of(keys, good) + "; " + cookie_of(keys, good)},
      {"empty", "sluice_console="}};
  for (const auto& row : rows) EXPECT_EQ(session_of(row.cookie).status, 401) << row.what;
  // And the other way round: it buys nothing.
  const auto bearer = "Bearer " + keys.sign(good);
  EXPECT_EQ(
      ask("POST", "/v1/sales/tea/orders", {{"Authorization", bearer}, {"Idempotency-Key", "1"}})
          .status,
      403);
}

/// What a browser says of the page that asks, and whether that may change something.
TEST_F(OperatorsTest, APageOfAnotherSiteChangesNothing) {
  begin({tea(10)}, with_keys());
  const auto cookie = cookie_in(log_in(ann_));
  struct Row {
    const char* what;
    std::string head;
    int by_cookie;
  };
  const Row rows[] = {{"says nothing", "", 403},
                      {"our origin", "Origin: http://shop:80\r\n", 200},
                      {"our origin behind TLS of a proxy", "Origin: https://shop:80\r\n", 200},
                      {"the port that it has anyway", "Origin: http://shop\r\n", 200},
                      {"another port that it has anyway", "Origin: https://shop\r\n", 403},
                      {"another host", "Origin: http://evil:80\r\n", 403},
                      {"another port", "Origin: http://shop:81\r\n", 403},
                      {"a host that begins like ours", "Origin: http://shop:80.evil\r\n", 403},
                      {"a sandbox", "Origin: null\r\n", 403},
                      {"two origins", "Origin: http://shop:80\r\nOrigin: http://evil:80\r\n", 403},
                      {"our page", "Sec-Fetch-Site: same-origin\r\n", 200},
                      {"a sister", "Sec-Fetch-Site: same-site\r\n", 403},
                      {"a stranger", "Sec-Fetch-Site: cross-site\r\n", 403},
                      {"a stranger with our origin",
                       "Sec-Fetch-Site: cross-site\r\nOrigin: http://shop:80\r\n", 403},
                      {"nobody's page", "Sec-Fetch-Site: none\r\n", 403}};
  for (const auto& row : rows) {
    const auto by_cookie = fmt::format("Host: shop:80\r\nCookie: {}\r\n{}", cookie, row.head);
    EXPECT_EQ(status_of("POST", replay, by_cookie), row.by_cookie) << row.what;
    const auto by_key =
        fmt::format("Host: shop:80\r\nAuthorization: Bearer {}\r\n{}", ann_.key, row.head);
    EXPECT_EQ(status_of("POST", replay, by_key), 200) << row.what << ", a program";
    EXPECT_EQ(status_of("GET", "/v1/operate/session", by_cookie), 200) << row.what << ", a look";
  }
  EXPECT_EQ(log_in(bob_, {{"Origin", "http://evil"}}).problem(), "not-same-origin")
      << "a page that logs the operator in as somebody else";
  EXPECT_EQ(ask("POST", "/console/logout", {{"Sec-Fetch-Site", "cross-site"}}).status, 403);
}

TEST_F(OperatorsTest, WithoutKeysWhoIsAtThisMachineIsLocal) {
  begin({tea(10)}, of_this_machine());
  struct Row {
    std::string host;
    int status;
  };
  const Row rows[] = {{"127.0.0.1:8080", 200}, {"localhost:8080", 200}, {"LOCALHOST", 200},
                      {"[::1]:8080", 200},     {"127.9.9.9", 200},      {"evil.example:8080", 403},
                      {"127.0.0.1.evil", 403}, {"localhost.evil", 403}, {"127.evil", 403},
                      {"10.0.0.1", 403}};
  for (const auto& row : rows) {
    const auto host = fmt::format("Host: {}\r\n", row.host);
    EXPECT_EQ(status_of("GET", "/v1/operate/session", host), row.status) << row.host;
    EXPECT_EQ(status_of("POST", replay, host), 403) << row.host << ": of no page";
    const auto ours = fmt::format("{}Origin: http://{}\r\n", host, row.host);
    EXPECT_EQ(status_of("POST", replay, ours), row.status) << row.host;
  }
}

TEST_F(OperatorsTest, WithoutKeysNobodyIsWhereOthersCome) {
  auto options = fast();
  options.http.listen = {.host = "0.0.0.0", .port = 0, .unix_path = {}};
  begin({tea(10)}, options);
  const auto answer = ask("GET", "/v1/operate/session", {});
  EXPECT_EQ(answer.problem(), "no-operators");
  EXPECT_NE(answer.text("detail").find("sluice serve key"), std::string::npos) << answer.body;

  options = fast();
  options.http.trusted = {"127.0.0.1"};  // a proxy, which others reach
  begin({tea(10)}, options);
  EXPECT_EQ(status_of("GET", "/v1/operate/session", "Host: localhost\r\n"), 403);
}

TEST_F(OperatorsTest, LoginsThatFailAreLimited) {
  begin({tea(10)}, with_keys());
  const auto wrong = make_shop_key("ann", {Scope::operate});
  for (std::size_t i = 0; i < FailedLogins::most_a_minute; ++i)
    EXPECT_EQ(log_in(wrong).status, 401);
  const auto refused = log_in(wrong);
  EXPECT_EQ(refused.problem(), "too-many-logins");
  EXPECT_TRUE(refused.has("Retry-After: ")) << refused.head;
  EXPECT_EQ(log_in(till_).problem(), "too-many-logins");
}

/// Those who share an address with an operator, or come by the same proxy, do not keep him out.
TEST_F(OperatorsTest, ARightKeyComesInHoweverOftenOthersFailed) {
  begin({tea(10)}, with_keys());
  const auto wrong = make_shop_key("ann", {Scope::operate});
  for (std::size_t i = 0; i < 2 * FailedLogins::most_a_minute; ++i) log_in(wrong);
  EXPECT_EQ(log_in(wrong).status, 429);
  EXPECT_EQ(log_in(ann_).status, 204);
}

TEST(FailedLoginsTest, EachNetworkHasItsMinute) {
  VirtualClock clock;
  FailedLogins failures{clock};
  const auto fail = [&](const std::string& client) {
    for (std::size_t i = 0; i < FailedLogins::most_a_minute; ++i) failures.note(client);
  };
  fail("2001:db8::1");
  EXPECT_TRUE(failures.wait("2001:db8::ffff")) << "the same /64";
  EXPECT_FALSE(failures.wait("2001:db8:0:1::1"));
  fail("10.0.0.1");
  EXPECT_TRUE(failures.wait("10.0.0.1"));
  EXPECT_FALSE(failures.wait("10.0.0.2"));
  clock.advance(59s);
  EXPECT_EQ(failures.wait("10.0.0.1"), std::optional<std::chrono::nanoseconds>{1s});
  clock.advance(1s);
  EXPECT_FALSE(failures.wait("10.0.0.1"));
}

TEST(FailedLoginsTest, AFullTableLetsNobodyTryWithoutEnd) {
  VirtualClock clock;
  FailedLogins failures{clock};
  for (std::size_t i = 0; i < FailedLogins::most_networks; ++i)
    failures.note(fmt::format("10.{}.{}.1", i / 256, i % 256));
  EXPECT_FALSE(failures.wait("192.0.2.1"));
  for (std::size_t i = 0; i < FailedLogins::most_a_minute; ++i)
    failures.note(fmt::format("192.0.2.{}", i));
  EXPECT_TRUE(failures.wait("198.51.100.1")) << "those without a row of their own count together";
  EXPECT_FALSE(failures.wait("10.0.0.1"));
}

}  // namespace
}  // namespace sluice::server
