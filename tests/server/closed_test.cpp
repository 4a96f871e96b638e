/// What is closed until somebody opens it: each route of the table, by each asker, in each
/// spelling.
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "server/operate_fixture.hpp"

namespace sluice::server {
namespace {

/// A route of the served document, asked at one path.
struct TableRow {
  std::string method;
  std::string path;      ///< with values for what stands in braces
  std::string pattern;   ///< "/v1/sales/{sale}"
  std::string security;  ///< as it stands there; empty: nobody need say who he is
};

std::string filled(std::string path) {
  const std::map<std::string, std::string> values{
      {"{sale}", "tea"},   {"{order}", "1"},       {"{provider}", "acme"},
      {"{name}", "thing"}, {"{owner}", "o:1"},     {"{id}", "1"},
      {"{event}", "e"},    {"{asset}", "main.js"}, {"{folder}", "parts"}};
  for (const auto& [name, value] : values)
    for (auto at = path.find(name); at != path.npos; at = path.find(name))
      path.replace(at, name.size(), value);
  return path;
}

bool is_operators(std::string_view path) { return path.starts_with("/v1/operate"); }
bool is_tools(std::string_view path) {
  return path.starts_with("/v1/locks") || path.starts_with("/v1/series") ||
         path.starts_with("/v1/ids") || path.starts_with("/v1/bloom");
}

class Closed : public OperateTest {
 protected:
  /// All that is served, as the served document has it.
  std::vector<TableRow> table() const {
    std::vector<TableRow> all;
    const auto served = JsonValue::parse(ask("GET", "/openapi.json").body,
                                         {.bytes = 1 << 20, .depth = 32, .members = 1000});
    EXPECT_TRUE(served) << served.error();
    const auto& document = served.value();
    for (const auto& [path, operations] : *document.find("paths")->as_object())
      for (const auto& [method, operation] : *operations.as_object()) {
        TableRow asked{.pattern = path};
        for (const char c : method) asked.method += static_cast<char>(std::toupper(c));
        asked.path = filled(path);
        const auto* const security = operation.find("security");
        if (security && !security->as_array()->empty())
          for (const auto& one : *security->as_array())
            asked.security += one.as_object()->front().first + " ";
        all.push_back(std::move(asked));
      }
    EXPECT_GT(all.size(), 50U);
    return all;
  }
  /// The head of an answer, of an event stream, too.
  std::string head_of(std::string_view method, std::string_view path,
                      std::string_view fields) const {
    http::RawClient client{service_->port()};
    client.send(fmt::format("{} {} HTTP/1.1\r\nContent-Length: 0\r\n{}\r\n", method, path, fields));
    return client.until("\r\n\r\n");
  }
  static int status_in(const std::string& head) {
    return head.size() < 12 ? 0 : std::stoi(head.substr(9, 3));
  }
};

TEST_F(Closed, SV04_WithoutAKeyNobodyIsOperatorAndNobodyHasTools) {
  begin({tea(10)});
  int asked = 0;
  for (const auto& row : table()) {
    if (!is_operators(row.pattern) && !is_tools(row.pattern)) continue;
    for (const auto* host : {"127.0.0.1", "localhost", "[::1]:8080", "shop.example"})
      for (const auto* more :
           {"", "X-Forwarded-For: 192.0.2.1\r\n", "Origin: http://localhost\r\n",
            "Sec-Fetch-Site: same-origin\r\n", "Authorization: Bearer sk.a.b\r\n",
            "Cookie: sluice_console=a\r\n", "Sluice-Buyer: local\r\n"}) {
        const auto head = head_of(row.method, row.path, fmt::format("Host: {}\r\n{}", host, more));
        ++asked;
        EXPECT_TRUE(status_in(head) == 401 || status_in(head) == 403)
            << row.method << ' ' << row.path << " of " << host << ' ' << more << head;
      }
  }
  EXPECT_GT(asked, 700);
}

/// Where somebody has said that there is a local operator, a proxy nobody told of is none.
TEST_F(Closed, SV04_WhatIsForwardedIsNotOfThisMachine) {
  begin({tea(10)}, of_this_machine());
  const auto session = [&](const std::string& fields) {
    return status_in(head_of("GET", "/v1/operate/session", fields));
  };
  const auto ids = [&](const std::string& fields) {
    return status_in(head_of("POST", "/v1/ids/order/next", fields));
  };
  EXPECT_EQ(session("Host: localhost\r\n"), 200);
  EXPECT_EQ(ids("Host: 127.0.0.1:8080\r\n"), 200);
  for (const auto* field :
       {"X-Forwarded-For", "x-forwarded-for", "X-Forwarded-Proto", "X-Forwarded-Host",
        "X-Forwarded-Port", "X-Forwarded-Server", "X-Forwarded", "Forwarded", "Via", "X-Real-IP",
        "X-Client-IP", "X-Cluster-Client-IP", "X-Original-For", "True-Client-IP",
        "CF-Connecting-IP", "Fastly-Client-IP"})
    for (const auto* value : {"127.0.0.1", "", "for=127.0.0.1", "1.1 proxy"}) {
      const auto fields = fmt::format("Host: localhost\r\n{}: {}\r\n", field, value);
      EXPECT_EQ(session(fields), 403) << fields;
      EXPECT_EQ(ids(fields), 403) << fields;
    }
}

/// Each way to have others come, beside a local operator: it does not begin.
TEST_F(Closed, SV04_ALocalOperatorIsNotWhereOthersCome) {
  const std::pair<const char*, std::function<void(ServiceOptions&)>> ways[] = {
      {"keys of buyers",
       [](auto& how) { how.keys = TokenKeys{{{.id = "k1", .secret = std::string(32, 's')}}}; }},
      {"keys of the shop", [&](auto& how) { how.shop_keys = ShopKeys{{key_of(till_)}}; }},
      {"every address", [](auto& how) { how.http.listen.host = "0.0.0.0"; }},
      {"every address of IPv6", [](auto& how) { how.http.listen.host = "::"; }},
      {"a name", [](auto& how) { how.http.listen.host = "127.evil"; }},
      {"a unix socket", [&](auto& how) { how.http.listen.unix_path = folder_ / "socket"; }},
      {"a proxy", [](auto& how) { how.http.trusted = {"10.0.0.0/8"}; }},
      {"a proxy by a unix socket", [](auto& how) { how.http.trusted = {"unix"}; }},
      {"a balancer", [](auto& how) { how.http.proxy_protocol = {"127.0.0.1"}; }}};
  for (const auto& [what, change] : ways) {
    auto how = of_this_machine();
    change(how);
    try {
      begin({tea(10)}, how);
      ADD_FAILURE() << what;
    } catch (const Error& refused) {
      EXPECT_EQ(refused.errc(), Errc::bad_argument) << what;
      EXPECT_NE(std::string{refused.what()}.find("--shop-keys"), std::string::npos) << what;
    }
  }
}

TEST_F(Closed, SV15_AFixedSegmentHasOneSpelling) {
  begin({tea(10)}, with_keys());
  int asked = 0;
  for (const auto& row : table()) {
    const auto known = status_in(head_of(row.method, row.path, "Host: shop\r\n"));
    for (std::size_t at = 1, in_braces = 0; at < row.pattern.size(); ++at) {
      in_braces += row.pattern[at] == '{';
      in_braces -= row.pattern[at - 1] == '}';
      if (in_braces != 0 || row.pattern[at] == '/') continue;
      const auto byte = static_cast<unsigned char>(row.pattern[at]);
      for (const auto& spelling : {fmt::format("%{:02x}", byte), fmt::format("%{:02X}", byte)}) {
        auto path = row.pattern;
        path = filled(path.replace(at, 1, spelling));
        const auto status = status_in(head_of(row.method, path, "Host: shop\r\n"));
        ++asked;
        // A segment that is no other route's is a value of one: of a sale, say, which is not there.
        EXPECT_TRUE(status == 404 || status == 405)
            << row.method << ' ' << path << " is answered as " << known << ": " << status;
      }
    }
  }
  EXPECT_GT(asked, 1000);
}

/// What an answer says of itself, whoever asks, and however he is answered.
TEST_F(Closed, SV19_WhatDependsOnTheAskerIsKeptByNobody) {
  auto options = with_keys();
  begin({tea(10)}, options);
  EXPECT_EQ(buy("ann", "1").status, 201);
  const auto login = ask("POST", "/console/login", {}, "key=" + ann_.key);
  const auto at = login.head.find("Set-Cookie: ") + 12;
  const auto cookie = login.head.substr(at, login.head.find(';', at) - at);
  const std::string askers[] = {"", "Sluice-Buyer: ann\r\nIdempotency-Key: 1\r\n",
                                fmt::format("Authorization: Bearer {}\r\n", ann_.key),
                                fmt::format("Authorization: Bearer {}\r\n", till_.key),
                                fmt::format("Cookie: {}\r\n", cookie)};
  int asked = 0;
  for (const auto& row : table()) {
    if (row.pattern.ends_with("/close")) continue;  // the sale is needed by those behind it
    for (const auto& asker : askers) {
      const auto head = head_of(row.method, row.path, "Host: shop\r\n" + asker);
      ++asked;
      const bool is_file =
          head.contains("\r\nCache-Control: public, max-age=31536000, immutable") ||
          head.contains("\r\nCache-Control: no-cache\r\n");
      if (is_file && (row.pattern.starts_with("/console") || row.pattern.contains("/assets/")))
        continue;  // the same for everybody
      const auto vary = head.find("\r\nVary: ");
      const auto fields =
          vary == head.npos ? "" : head.substr(vary, head.find('\r', vary + 2) - vary);
      EXPECT_TRUE(head.contains("\r\nCache-Control: no-store\r\n") &&
                  fields.contains("Authorization") && fields.contains("Cookie") &&
                  fields.contains("Sluice-Buyer"))
          << row.method << ' ' << row.path << " by '" << asker << "'\n"
          << head;
      EXPECT_EQ(head.find("Cache-Control"), head.rfind("Cache-Control")) << head;
    }
  }
  EXPECT_GT(asked, 250);
}

/// Each route by each asker, as the served document has it; and who needs no credentials is said.
TEST_F(Closed, SV17_EachAnswerIsInTheServedDocument) {
  begin({tea(10)}, with_keys());
  EXPECT_EQ(buy("ann", "1").status, 201);
  const auto document = ask("GET", "/openapi.json");
  EXPECT_TRUE(document.body.find(R"("servers":[{"url":"/"}])") != std::string::npos);
  const auto bearer = "Bearer " + ann_.key;
  const auto till = "Bearer " + till_.key;
  for (const auto& row : table()) {
    if (row.pattern.ends_with("/close") || row.pattern.ends_with("/events")) continue;
    ask(row.method, row.path);
    ask(row.method, row.path, {{"Sluice-Buyer", "ann"}, {"Idempotency-Key", "1"}});
    ask(row.method, row.path, {{"Authorization", bearer}});
    ask(row.method, row.path, {{"Authorization", till}, {"Idempotency-Key", "2"}}, "{}");
    ask(row.method, row.path, {{"Origin", "http://evil"}}, "form=1");
    const auto operation = fmt::format("\"{}\":{{", row.pattern);
    EXPECT_NE(document.body.find(operation), std::string::npos);
  }
  std::size_t operations = 0;
  std::size_t said = 0;
  for (auto at = document.body.find("\"operationId\""); at != std::string::npos;
       at = document.body.find("\"operationId\"", at + 1))
    ++operations;
  for (auto at = document.body.find("\"security\":["); at != std::string::npos;
       at = document.body.find("\"security\":[", at + 1))
    ++said;
  EXPECT_EQ(said, operations);
}

/// All bytes that UTF-8 has not, each in the middle of a name.
TEST_F(Closed, SV19_ABuyersNameIsUtf8) {
  std::vector<std::string> wrong;
  for (int byte = 0x80; byte < 0x100; ++byte) wrong.push_back(fmt::format("a{}b", char(byte)));
  for (const auto* more : {"\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc3",
                           "\xe2\x82", "\xf0\x9f\x98", "caf\xe9"})
    wrong.emplace_back(more);
  const TokenKeys keys{{{.id = "k1", .secret = std::string(32, 's')}}};
  for (const bool has_keys : {false, true}) {
    auto how = options();
    if (has_keys) how.keys = keys;
    begin({tea(1000)}, how);
    const auto status_of = [&](const std::string& buyer) {
      const auto token = "Bearer " + buyer_token(keys, buyer, "tea", system_clock().wall() + 1h);
      return ask("POST", "/v1/sales/tea/orders",
                 {{has_keys ? "Authorization" : "Sluice-Buyer", has_keys ? token : buyer},
                  {"Idempotency-Key", "1"}})
          .status;
    };
    for (const auto& buyer : wrong)
      EXPECT_EQ(status_of(buyer), 401) << testing::PrintToString(buyer) << has_keys;
    for (const auto* buyer : {"ann", "caf\xc3\xa9", "\xe5\xbc\xa0\xe4\xb8\x89", "\xf0\x9f\x98\x80"})
      EXPECT_EQ(status_of(buyer) / 100, 2) << buyer;
  }
}

/// Else a token for it would be one for all sales.
TEST_F(Closed, SV19_NoSaleIsCalledAsAllOfThemAre) {
  auto sale = tea(1);
  sale.name = "*";
  EXPECT_THROW(begin({sale}), Error);
}

}  // namespace
}  // namespace sluice::server
