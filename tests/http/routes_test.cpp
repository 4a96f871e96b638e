// The parts that need no socket: routes, answers, networks.
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "base/text.hpp"
#include "http/networks.hpp"
#include "http/openapi.hpp"
#include "http/reader.hpp"
#include "http/text.hpp"
#include "serving.hpp"
#include "support/matchers.hpp"

namespace sluice::http {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

Request request_of(const std::string& bytes) {
  static const Limits limits;
  RequestReader reader{limits};
  EXPECT_EQ(reader.read(bytes), bytes.size());
  EXPECT_EQ(reader.stage(), RequestReader::Stage::done);
  return reader.take_request();
}

void nothing(Request&&, Responder&&) {}

std::string text_of(const Response& response) {
  std::string text;
  append(text, response, {.date = "now"});
  return text;
}

TEST(HttpRoutes, ALiteralGoesBeforeAParameter) {
  Routes routes;
  routes.add(route("GET", "/a/{x}/c", "parameter", nothing));
  routes.add(route("GET", "/a/b", "literal", nothing));
  routes.add(route("PUT", "/a/b", "other method", nothing));
  routes.add(route("GET", "/", "root", nothing));
  const auto found = [&](const std::string& path) -> std::string {
    auto request = request_of(get(path));
    const auto row = routes.find(request);
    return row.route ? row.route->operation : "none";
  };
  EXPECT_EQ(found("/a/b"), "literal");
  EXPECT_EQ(found("/a/b/c"), "parameter");  // though the literal begins alike
  EXPECT_EQ(found("/a/%62"), "none");       // SV15: a fixed segment has one spelling
  EXPECT_EQ(found("/a/%62/c"), "parameter");
  EXPECT_EQ(found("/"), "root");
  EXPECT_EQ(found("/a"), "none");
  EXPECT_EQ(found("/a//c"), "none");
  EXPECT_EQ(found("/a/b/"), "none");
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "/a";
  EXPECT_EQ(found(deep), "none");
}

TEST(HttpRoutes, RefusesWhatIsAmbiguous) {
  Routes routes;
  routes.add(route("GET", "/a/{x}", "one", nothing));
  EXPECT_THROW(routes.add(route("GET", "/a/{y}", "two", nothing)), Error);
  EXPECT_THROW(routes.add(route("GET", "/b", "one", nothing)), Error);
  EXPECT_THROW(routes.add(route("GET", "b", "three", nothing)), Error);
  EXPECT_THROW(routes.add(route("GET", "/b{x}", "four", nothing)), Error);
  EXPECT_THROW(routes.add(route("GET", "/c", "five", {})), Error);
}

TEST(HttpRequest, FieldsHaveNoCaseAndDuplicatesAreSeen) {
  const auto request =
      request_of(get("/", "If-Match: \"1\"\r\nIDEMPOTENCY-KEY: a\r\nidempotency-key: b\r\n"));
  EXPECT_EQ(request.field("Idempotency-Key"), "a");
  EXPECT_EQ(request.count("Idempotency-Key"), 2);
  EXPECT_EQ(request.field("nothing"), std::nullopt);
}

TEST(HttpResponse, AProblemHasItsTypeAndMembers) {
  static constexpr ProblemType sold_out{"sold_out", 409, "Nothing is left"};
  const auto response = problem(sold_out, "of 10", {{"left", 0}});
  const auto body = nlohmann::json::parse(response.body);
  EXPECT_EQ(body["type"], "urn:sluice:problem:sold-out");
  EXPECT_EQ(body["status"], 409);
  EXPECT_EQ(body["detail"], "of 10");
  EXPECT_EQ(body["left"], 0);
  EXPECT_THAT(text_of(response), HasSubstr("HTTP/1.1 409 Conflict\r\n"));
}

TEST(HttpResponse, FieldsCannotBeSplit) {
  Response response;
  EXPECT_THROW(response.add("Location", "/a\r\nSet-Cookie: b"), Error);
  EXPECT_THROW(response.add("Lo cation", "/a"), Error);
  EXPECT_THROW(response.add("", "/a"), Error);
}

TEST(HttpResponse, TellsWhenToComeAgain) {
  Response response;
  add_retry_after(response, 1200ms);
  add_rate_limit(response,
                 {.name = "buyer", .quota = 5, .window = 10s, .remaining = 0, .until_reset = 7s});
  EXPECT_THAT(text_of(response),
              HasSubstr("\r\nRetry-After: 2\r\nRateLimit-Policy: \"buyer\";q=5;w=10\r\n"
                        "RateLimit: \"buyer\";r=0;t=7\r\n"));
}

TEST(HttpResponse, LinksToTheNextPage) {
  Response response;
  add_next_page(response, request_of(get("/orders?state=paid&after=3&limit=2")), "a b");
  EXPECT_THAT(text_of(response),
              HasSubstr("Link: </orders?state=paid&limit=2&after=a%20b>; rel=\"next\"\r\n"));
}

TEST(HttpResponse, ComparesEntityTags) {
  const auto tag = entity_tag("7");
  EXPECT_EQ(tag, "\"7\"");
  EXPECT_TRUE(is_not_modified(request_of(get("/", "If-None-Match: \"6\", W/\"7\"\r\n")), tag));
  EXPECT_TRUE(is_not_modified(request_of(get("/", "If-None-Match: *\r\n")), tag));
  EXPECT_FALSE(is_not_modified(request_of(get("/", "If-None-Match: \"6\"\r\n")), tag));
  EXPECT_FALSE(is_not_modified(request_of(get("/")), tag));
  EXPECT_TRUE(is_precondition_failed(request_of(get("/", "If-Match: \"6\"\r\n")), tag));
  EXPECT_TRUE(is_precondition_failed(request_of(get("/", "If-Match: W/\"7\"\r\n")), tag));
  EXPECT_FALSE(is_precondition_failed(request_of(get("/", "If-Match: \"6\",\"7\"\r\n")), tag));
  EXPECT_FALSE(is_precondition_failed(request_of(get("/")), tag));
}

TEST(HttpResponse, WritesDatesAsRfc9110) {
  EXPECT_EQ(http_date(std::chrono::sys_days{std::chrono::year{1994} / 11 / 6} + 8h + 49min + 37s),
            "Sun, 06 Nov 1994 08:49:37 GMT");
}

TEST(HttpText, V43_RefusesWhatIsNotUtf8) {
  EXPECT_TRUE(is_utf8("caf\xc3\xa9 \xf0\x9f\x8d\xbe"));
  for (const auto* wrong : {"\xff", "\xc3", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80",
                            "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80"})
    EXPECT_FALSE(is_utf8(wrong));
  EXPECT_EQ(unescape("a%20b+c", true), "a b c");
  EXPECT_EQ(unescape("a%20b+c", false), "a b+c");
  for (const auto* wrong : {"%", "%4", "%4g", "%00", "%c0%af"})
    EXPECT_EQ(unescape(wrong, false), std::nullopt);
}

TEST(HttpNetworks, V46_FindTheClientBehindProxies) {
  const Networks networks{{"10.0.0.0/8", "192.168.1.1", "fd00::/8"}};
  EXPECT_TRUE(networks.has("10.255.0.1"));
  EXPECT_TRUE(networks.has("::ffff:10.1.2.3"));
  EXPECT_TRUE(networks.has("fdff::1"));
  EXPECT_FALSE(networks.has("11.0.0.1"));
  EXPECT_FALSE(networks.has("192.168.1.2"));
  EXPECT_FALSE(networks.has("nonsense"));
  EXPECT_EQ(networks.client_behind("10.0.0.1", "1.1.1.1, 2.2.2.2, 10.0.0.2"), "2.2.2.2");
  EXPECT_EQ(networks.client_behind("10.0.0.1", "10.0.0.3, 10.0.0.2"), "10.0.0.3");
  EXPECT_EQ(networks.client_behind("10.0.0.1", "1.1.1.1, 2.2.2.2:4711, 10.0.0.2:80"), "2.2.2.2");
  EXPECT_EQ(networks.client_behind("10.0.0.1", "[2001:db8::1]:4711"), "2001:db8::1");
  EXPECT_EQ(networks.client_behind("10.0.0.1", "1.1.1.1, unknown"), "10.0.0.1");
  EXPECT_EQ(networks.client_behind("10.0.0.1", ""), "10.0.0.1");
  EXPECT_EQ(networks.client_behind("9.9.9.9", "1.1.1.1"), "9.9.9.9");
  EXPECT_EQ(networks.client_behind("10.0.0.1", "fd00::5, 2001:db8::1, fd00::2"), "2001:db8::1");
  for (const auto* wrong : {"10.0.0.0/33", "10.0.0.0/", "10.0.0/8", "fd00::/129", ""})
    EXPECT_THROW(Networks{{std::string{wrong}}}, Error);
}

TEST(HttpOpenApi, V53_IsJsonWithAllThatARouteSays) {
  static constexpr ProblemType sold_out{"sold_out", 409, "Nothing is left"};
  Routes routes;
  routes.add(
      {.method = "POST",
       .path = "/v1/sales/{sale}/orders",
       .operation = "buy",
       .summary = "Buys",
       .parameters =
           {{.name = "Idempotency-Key", .in = "header", .description = "Yours", .required = true}},
       .request = R"({"$ref":"#/components/schemas/Wish"})",
       .answers = {{.status = 201, .description = "Bought", .schema = R"({"type":"object"})"}},
       .problems = {&sold_out},
       .credentials = "buyer",
       .handler = nothing});
  const auto document = nlohmann::json::parse(
      openapi(routes, {.title = "Shop",
                       .version = "2",
                       .schemas = {{"Wish", R"({"type":"object"})"}},
                       .credentials = {{"buyer", R"({"type":"http","scheme":"bearer"})"}}}));
  const auto& buy = document["paths"]["/v1/sales/{sale}/orders"]["post"];
  EXPECT_EQ(buy["operationId"], "buy");
  EXPECT_EQ(buy["parameters"][0]["name"], "sale");
  EXPECT_EQ(buy["parameters"][1]["in"], "header");
  EXPECT_EQ(buy["security"][0].begin().key(), "buyer");
  EXPECT_TRUE(buy["responses"].contains("201"));
  const std::string refusal = buy["responses"]["409"]["$ref"];
  EXPECT_EQ(refusal, "#/components/responses/409-1");
  EXPECT_THAT(std::string{document["components"]["responses"]["409-1"]["description"]},
              HasSubstr("urn:sluice:problem:sold-out"));
  EXPECT_TRUE(document["components"]["schemas"].contains("Wish"));
  EXPECT_TRUE(document["components"]["securitySchemes"].contains("buyer"));
}

}  // namespace
}  // namespace sluice::http
