// The file of a shop: its name and colours, and what it says of its sales.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "server/browser.hpp"
#include "server/pages/gallery.hpp"
#include "server/shop_fixture.hpp"
#include "support/matchers.hpp"

namespace sluice::server {
namespace {

using test::Browser;
using testing::HasSubstr;
using testing::Not;

const std::string png = "\x89PNG\r\n\x1a\nthe rest";

class StorefrontFile : public ShopTest {
 protected:
  void write(const std::string& name, std::string_view text) const {
    std::ofstream{folder_ / name, std::ios::binary} << text;
  }
  std::string path() const { return (folder_ / "shop.json").string(); }
  Storefront front(std::string_view text) const {
    write("shop.json", text);
    return Storefront::load(path());
  }
  void begin_with(std::string_view text, std::vector<SaleDefinition> sales = {tea(5)}) {
    auto how = options();
    how.pages.front = front(text);
    begin(std::move(sales), std::move(how));
  }
};

TEST_F(StorefrontFile, SV13_NameTextPictureAndColoursAreShown) {
  write("tea.bin", png);
  begin_with(R"({"name": "Tea <House>", "colours": {"light": {"accent": "#7a1f1f"}},
    "sales": {"tea": {"name": {"en": "Red & \"fine\"", "de": "Roter Tee"},
                      "text": "From <b>Wuyi</b>.", "picture": "tea.bin",
                      "picture-text": "A 'tin'"}}})");
  Browser ann{service_->port()};
  const auto page = ann.get("/sales/tea");
  EXPECT_THAT(page.body, HasSubstr("<h1>Red &amp; &quot;fine&quot;</h1>"));
  EXPECT_THAT(page.body, HasSubstr("<header>Tea &lt;House&gt;</header>"));
  EXPECT_THAT(page.body, HasSubstr("From &lt;b&gt;Wuyi&lt;/b&gt;."));
  EXPECT_THAT(page.body, HasSubstr("alt=\"A &#39;tin&#39;\""));
  EXPECT_THAT(page.body,
              HasSubstr("<title>Red &amp; &quot;fine&quot; – Tea &lt;House&gt;</title>"));
  EXPECT_TRUE(page.has("; img-src 'self'\r\n")) << page.head;
  const auto found = page.body.find("/sales/assets/pictures/");
  const auto url = page.body.substr(found, page.body.find('"', found) - found);
  const auto picture = ann.send("GET", url);
  EXPECT_EQ(picture.body, png);
  EXPECT_TRUE(picture.has("Content-Type: image/png")) << picture.head;
  EXPECT_TRUE(picture.has("X-Content-Type-Options: nosniff"));
  EXPECT_TRUE(picture.has("immutable"));
  EXPECT_EQ(ask("GET", url + "0").status, 404);
  const auto sheet = ask("GET", "/sales/assets/shop.css");
  EXPECT_THAT(sheet.body, HasSubstr("--deed: #7a1f1f; --deed-ink: #ffffff;"));
  EXPECT_THAT(page.body, HasSubstr("/sales/assets/shop.css?v="));
  EXPECT_THAT(ann.get("/sales/tea?lang=de").body, HasSubstr("<h1>Roter Tee</h1>"));
  const auto root = ask("GET", "/", {{"Accept", "text/html"}}).body;
  EXPECT_THAT(root, HasSubstr(">Red &amp; &quot;fine&quot;</a>"));
  EXPECT_THAT(root, Not(HasSubstr("/console"))) << "buyers are not shown the back door of a shop";
  auto other = ann.submit(ann.get("/sales/tea"), "/orders");
  EXPECT_THAT(other.body, HasSubstr("<h1>Roter Tee</h1>"));
  EXPECT_FALSE(other.has("img-src"));
}

TEST_F(StorefrontFile, WithoutAFileAllIsAsEver) {
  begin({tea(5)});
  Browser ann{service_->port()};
  const auto page = ann.get("/sales/tea");
  EXPECT_THAT(page.body, HasSubstr("<title>tea</title>"));
  EXPECT_THAT(page.body, HasSubstr("<h1>tea</h1>"));
  for (const auto* const none : {"<header>", "shop.css", "<img"})
    EXPECT_THAT(page.body, Not(HasSubstr(none)));
  EXPECT_FALSE(page.has("img-src"));
  EXPECT_EQ(ask("GET", "/sales/assets/shop.css").body, "");
}

TEST_F(StorefrontFile, APictureOfAnotherHostIsAllowedFromThereAlone) {
  begin_with(R"({"sales": {"tea": {"picture": "https://cdn.example:8443/a/tea.jpg?x=1&y"}}})");
  Browser ann{service_->port()};
  const auto page = ann.get("/sales/tea");
  EXPECT_TRUE(page.has("; img-src https://cdn.example:8443\r\n")) << page.head;
  EXPECT_THAT(page.body,
              HasSubstr("src=\"https://cdn.example:8443/a/tea.jpg?x=1&amp;y\" alt=\"\""));
}

TEST_F(StorefrontFile, APictureOfTheLargestSizeArrivesWhole) {
  write("tea.png", png + std::string((1 << 20) - png.size(), 'x'));
  begin_with(R"({"sales": {"tea": {"picture": "tea.png"}}})");
  Browser ann{service_->port()};
  const auto page = ann.get("/sales/tea");
  const auto found = page.body.find("/sales/assets/pictures/");
  const auto url = page.body.substr(found, page.body.find('"', found) - found);
  EXPECT_EQ(ann.send("GET", url).body.size(), std::size_t{1} << 20);
}

TEST_F(StorefrontFile, WhatIsWrongIsRefusedWithWhereAndWhatToDo) {
  write("vector.svg", "<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>");
  write("large.png", png + std::string(1 << 20, 'x'));
  std::filesystem::create_directory(folder_ / "folder.png");
  const auto picture = [](const std::string& place) {
    return fmt::format(R"({{"sales": {{"tea": {{"picture": "{}"}}}}}})", place);
  };
  const std::pair<std::string, std::string> rows[] = {
      {"{\n \"name\" 7}", "shop.json:2:9: this is no JSON"},
      {"[]", "the shop: it stands in braces"},
      {R"({"nam": "x"})", "the shop has no 'nam'; it has name, colours, sales"},
      {R"({"name": 7})", "name: a text in quotes is needed"},
      {R"({"name": "a\u0007"})", "name: it has control characters"},
      {R"({"name": {"de": 7}})", "name.de: a text in quotes is needed"},
      {fmt::format(R"({{"name": "{}"}})", std::string(201, 'x')),
       "name: it is longer than 200 bytes"},
      {fmt::format(R"({{"sales": {{"tea": {{"text": "{}"}}}}}})", std::string(4001, 'x')),
       "sales.tea.text: it is longer than 4000 bytes"},
      {R"({"sales": {"tea": {"price": 5}}})",
       "sales.tea has no 'price'; it has name, text, picture, picture-text"},
      {R"({"sales": {"tea": []}})", "sales.tea: it stands in braces"},
      {R"({"sales": []})", "sales: it stands in braces"},
      {picture("none.png"), "sales.tea.picture: "},
      {picture("../shop.json"), "is no name of a file beside"},
      {picture("/etc/passwd"), "is no name of a file beside"},
      {picture(""), "is no name of a file beside"},
      {picture("folder.png"), "it is no file"},
      {picture("large.png"), "it has more than 1048576 bytes"},
      {picture("vector.svg"), "is no picture: PNG, JPEG, WebP, AVIF or GIF is taken"},
      {picture("http://cdn.example/tea.jpg"), "a picture of another host comes by https"},
      {picture("javascript://cdn.example/tea"), "sales.tea.picture: "},
      {picture("https://cdn.example;/tea"), "sales.tea.picture: "},
      {R"({"colours": {"light": {"accent": "red"}}})",
       "colours.light.accent: 'red' is no colour, like #7a1f1f"},
      {R"({"colours": {"light": {"accent": "#12345g"}}})", "is no colour"},
      {R"({"colours": {"night": {}}})", "colours has no 'night'; it has light, dark"},
      {R"({"colours": {"light": {"accent": "#ffcc00"}}})",
       "colours.light: #ffcc00 on #f6f4ef has a contrast of 1.4, and a reader needs 4.5: take a "
       "darker accent, or a lighter paper"},
      {R"({"colours": {"light": {"paper": "#333333"}}})", "has a contrast of"},
      {R"({"colours": {"dark": {"accent": "#0b6b4f"}}})", "take a lighter accent"}};
  for (const auto& [text, why] : rows)
    EXPECT_THAT([&] { front(text); }, testing::ThrowsMessage<Error>(HasSubstr(why))) << text;
  EXPECT_THAT([&] { Storefront::load((folder_ / "none.json").string()); },
              testing::ThrowsMessage<Error>(HasSubstr("none.json: No such file")));
}

TEST_F(StorefrontFile, AnInkIsFoundForEachAccentThatCanBeRead) {
  EXPECT_THAT(front(R"({"colours": {"dark": {"accent": "#ffcc00"}}})").colours(),
              HasSubstr("--deed-ink: #000000;"));
  const auto both = front(R"({"colours": {"light": {"accent": "#00509e", "paper": "#ffffff"},
                                          "dark": {"accent": "#9ecbff", "paper": "#000000"}}})");
  EXPECT_THAT(both.colours(),
              HasSubstr("(prefers-color-scheme: light) { :root { --paper: #ffffff;"));
  EXPECT_THAT(both.colours(),
              HasSubstr("(prefers-color-scheme: dark) { :root { --paper: #000000;"));
}

TEST_F(StorefrontFile, ATextIsThatOfTheNearestLanguage) {
  ShopText text;
  EXPECT_EQ(text.in("de"), "");
  text.put("de", "Tee");
  EXPECT_EQ(text.in("en"), "Tee") << "any";
  text.put("en", "tea");
  text.put("zh-Hant", "茶");
  EXPECT_EQ(text.in("de-AT"), "Tee");
  EXPECT_EQ(text.in("fr"), "tea");
  EXPECT_EQ(text.in("zh-Hant"), "茶");
}

/// The browser's test replays it: see tests/console/pages_test.mjs. SLUICE_GALLERY: where to.
TEST_F(StorefrontFile, TheGalleryIsWrittenForTheBrowser) {
  write("tea.png", png);
  PagesOptions options;
  options.front = front(R"({"name": "Haus der langen Namen für Tee und Porzellan",
    "sales": {"tea": {"name": "Donaudampfschifffahrtsgesellschaftskapitänsmützentee",
                      "text": "Erste Ernte.\n\nHundert Dosen.", "picture": "tea.png",
                      "picture-text": "Eine Dose"}}})");
  auto all = Json::array();
  for (const auto& texts : options.languages.all()) {
    const Gallery gallery{options, texts, "tea",
                          BuyerId{"a-buyer-with-a-name-that-no-line-of-a-phone-can-hold-at-once"},
                          "TEA202611240001-0000000000000001"};
    for (const auto& [name, shown] : gallery.pages()) {
      auto fields = Json::array();
      for (const auto& [field, value] : shown.fields) fields.add(Json::array({field, value}));
      all.add(Json::object({{"name", name},
                            {"language", texts.language()},
                            {"fields", fields},
                            {"body", shown.body}}));
    }
  }
  const char* const place = std::getenv("SLUICE_GALLERY");
  const auto file = place ? std::filesystem::path{place} : folder_ / "gallery.json";
  std::ofstream{file, std::ios::binary} << all.text();
  EXPECT_GT(std::filesystem::file_size(file), 500'000U);
}

}  // namespace
}  // namespace sluice::server
