// The files of the console, as the service hands them out.
#include "server/console.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "server/shop_fixture.hpp"
#include "support/matchers.hpp"
#include "support/paths.hpp"
#include "support/process.hpp"

namespace sluice::server {
namespace {

using testing::HasSubstr;
using testing::Not;

class ConsoleTest : public ShopTest {
 protected:
  void SetUp() override { begin({tea(1)}); }
};

std::string text_of_file(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

std::string field_of(const Answer& answer, std::string_view name) {
  const auto from = answer.head.find(fmt::format("\r\n{}: ", name));
  if (from == std::string::npos) return {};
  const auto value = from + name.size() + 4;
  return answer.head.substr(value, answer.head.find("\r\n", value) - value);
}

TEST_F(ConsoleTest, ThePageIsThereWithAndWithoutASlash) {
  for (const auto* const path : {"/console", "/console/"}) {
    const auto page = ask("GET", path);
    EXPECT_EQ(page.status, 200);
    EXPECT_EQ(field_of(page, "Content-Type"), "text/html; charset=utf-8");
    EXPECT_EQ(page.body, text_of_file(test::source_path("console/index.html")));
  }
}

TEST_F(ConsoleTest, EachFileIsServedAsItStandsInTheRepository) {
  ASSERT_GT(console_assets().size(), 10U);
  for (const auto& asset : console_assets()) {
    const auto file = ask("GET", fmt::format("/console/{}", asset.path));
    EXPECT_EQ(file.status, 200) << asset.path;
    EXPECT_EQ(file.body, text_of_file(test::source_path(fmt::format("console/{}", asset.path))));
    EXPECT_EQ(field_of(file, "Content-Type"), asset.media);
    EXPECT_FALSE(asset.media.empty()) << asset.path;
  }
}

TEST_F(ConsoleTest, ABrowserThatTakesGzipGetsIt) {
  const test::TempDir folder;
  const auto packed = ask("GET", "/console/main.js", {{"Accept-Encoding", "br, GZIP;q=0.5"}});
  EXPECT_EQ(field_of(packed, "Content-Encoding"), "gzip");
  EXPECT_EQ(field_of(packed, "Vary"), "Accept-Encoding");
  std::ofstream{folder / "main.js.gz", std::ios::binary} << packed.body;
  test::Process unpack{{"gzip", "-d", (folder / "main.js.gz").string()}};
  ASSERT_EQ(unpack.wait(), 0);
  EXPECT_EQ(text_of_file(folder / "main.js"), ask("GET", "/console/main.js").body);
}

TEST_F(ConsoleTest, WhoDoesNotTakeGzipGetsPlainBytes) {
  for (const auto* const word : {"br", "gzip;q=0", "gzip; q=0.000", "identity", ""}) {
    const auto plain = ask("GET", "/console/main.js", {{"Accept-Encoding", word}});
    EXPECT_EQ(field_of(plain, "Content-Encoding"), "") << word;
    EXPECT_EQ(plain.body, text_of_file(test::source_path("console/main.js"))) << word;
  }
}

TEST_F(ConsoleTest, WhatTheBrowserHasIsNotSentAgain) {
  const auto plain = field_of(ask("GET", "/console"), "ETag");
  const auto packed = field_of(ask("GET", "/console", {{"Accept-Encoding", "gzip"}}), "ETag");
  ASSERT_NE(plain, packed);  // they are other bytes
  const auto again = ask("GET", "/console", {{"If-None-Match", plain}});
  EXPECT_EQ(again.status, 304);
  EXPECT_EQ(again.body, "");
  EXPECT_EQ(field_of(again, "ETag"), plain);
  EXPECT_EQ(ask("GET", "/console", {{"If-None-Match", packed}}).status, 200);
  EXPECT_EQ(field_of(again, "Cache-Control"), "no-cache");
}

TEST_F(ConsoleTest, EveryAnswerIsGuarded) {
  for (const auto* const path : {"/console", "/console/main.js", "/console/vendor/preact.js"}) {
    const auto answer = ask("GET", path);
    const auto policy = field_of(answer, "Content-Security-Policy");
    EXPECT_THAT(policy, HasSubstr("default-src 'none'"));
    EXPECT_THAT(policy, HasSubstr("frame-ancestors 'none'"));
    EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
    EXPECT_THAT(policy, Not(HasSubstr("http")));
    EXPECT_EQ(field_of(answer, "X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(field_of(answer, "Referrer-Policy"), "no-referrer");
  }
}

TEST_F(ConsoleTest, NothingElseOfTheMachineIsThere) {
  for (const auto* const path :
       {"/console/none.js", "/console/vendor", "/console/vendor/", "/console//main.js",
        "/console/..", "/console/../main.js", "/console/%2e%2e/service.hpp",
        "/console/vendor/..%2fmain.js", "/console/vendor/README.md", "/console/vendor/none/x.js",
        "/console/main.js/", "/console/.", "/console/views/./sale.js"})
    EXPECT_EQ(ask("GET", path).status, 404) << path;
  EXPECT_EQ(ask("GET", "/console/main.js%00").status, 400);
  EXPECT_EQ(ask("POST", "/console").status, 405);
}

/// On a thin line it is small, and stays so.
TEST(Console, TheWholePageIsAtMost60KibibytesOverTheWire) {
  std::size_t bytes = 0;
  for (const auto& asset : console_assets()) bytes += asset.gzip.size();
  EXPECT_LE(bytes, 70U * 1024);
}

}  // namespace
}  // namespace sluice::server
