// The languages of the pages for buyers.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "server/browser.hpp"
#include "server/pages/gallery.hpp"
#include "server/shop_fixture.hpp"
#include "support/matchers.hpp"
#include "support/paths.hpp"

namespace sluice::server {
namespace {

using test::Browser;
using testing::HasSubstr;
using testing::Not;

std::string text_of_file(const std::filesystem::path& file) {
  std::ifstream stream{file, std::ios::binary};
  return {std::istreambuf_iterator<char>{stream}, {}};
}

void write_file(const std::filesystem::path& file, std::string_view text) {
  std::ofstream{file, std::ios::binary} << text;
}

JsonValue english() {
  return JsonValue::parse(text_of_file(test::source_path("pages/texts/en.json")),
                          {.bytes = 1 << 20, .members = 1000})
      .value();
}

/// A language without a letter: each text is dots, with its names in braces.
std::string dots() {
  auto json = Json::object();
  for (const auto& [key, value] : *english().as_object()) {
    std::string text;
    bool is_name = false;
    for (const char c : *value.as_text()) {
      is_name = is_name || c == '{';
      text += is_name ? c : '.';
      is_name = is_name && c != '}';
    }
    json.add(key, key == "language.direction" ? Json{"ltr"} : Json{text});
  }
  return json.text();
}

/// What a reader sees or hears of a page, without what leads to other languages.
std::string words_of(std::string page) {
  page = std::regex_replace(
      page, std::regex{R"(<footer>[\s\S]*?</footer>|<script[\s\S]*?</script>)"}, "");
  std::string heard;
  const std::regex spoken{R"re((?:alt|aria-label|title|placeholder|data-days)="([^"]*)")re"};
  for (std::sregex_iterator at{page.begin(), page.end(), spoken}, end; at != end; ++at)
    heard += (*at)[1].str() + '\n';
  page = std::regex_replace(page, std::regex{"<[^>]*>"}, "\n");
  return std::regex_replace(heard + page, std::regex{"&[#a-z0-9]+;|\\{[a-z]+\\}"}, "");
}

/// The first word of the page that is of no file of texts; empty: there is none.
std::string own_word(const std::string& page) {
  auto words = words_of(page);
  for (const auto* const known : {"CNY", "/openapi.json"})
    for (auto at = words.find(known); at != words.npos; at = words.find(known))
      words.erase(at, std::strlen(known));
  std::smatch found;
  return std::regex_search(words, found, std::regex{"[A-Za-z]+"}) ? found.str() : std::string{};
}

TEST(PageTexts, AWordThatIsOfNoFileIsFound) {
  EXPECT_EQ(own_word("<p class=\"state\">... 5</p>"), "");
  EXPECT_EQ(own_word("<p class=\"state\">... 5 left</p>"), "left");
  EXPECT_EQ(own_word("<progress aria-label=\"What\"></progress>"), "What");
}

// SV13: each page in each state, in a language without a letter.
TEST(PageTexts, SV13_NoPageHasAWordThatIsOfNoFileOfTexts) {
  const test::TempDir folder;
  write_file(folder / "xx.json", dots());
  const PagesOptions options{.languages = Languages{folder.path().string()}};
  const Gallery gallery{options, *options.languages.find("xx"), "茶", BuyerId{"客"}, "100"};
  EXPECT_GT(gallery.pages().size(), 140U);
  for (const auto& [name, shown] : gallery.pages())
    EXPECT_EQ(own_word(shown.body), "") << name << '\n' << shown.body;
}

TEST(PageTexts, SV13_OfAnOrderThatEndedNothingIsToPay) {
  const PagesOptions options;
  const Gallery gallery{options, options.languages.all().front(), "tea", BuyerId{"ann"}, "100"};
  int ended = 0;
  for (const auto& [name, shown] : gallery.pages()) {
    if (!name.starts_with("order ")) continue;
    const bool is_to_be_paid = name.starts_with("order awaiting, priced");
    EXPECT_EQ(shown.body.contains("To pay"), is_to_be_paid) << name;
    EXPECT_EQ(shown.body.contains("shop.example/pay"), is_to_be_paid) << name;
    EXPECT_EQ(shown.body.contains("<dt>Paid"), name.starts_with("order paid, priced")) << name;
    ended += !is_to_be_paid;
  }
  EXPECT_GT(ended, 15);
}

TEST(PageTexts, AllFilesHaveTheSameKeys) {
  const Languages languages;  // it refuses what has others, or other names in braces
  ASSERT_EQ(languages.all().size(), 3U);
  EXPECT_EQ(languages.all().front().language(), "en");
  for (const auto* const tag : {"en", "de", "zh"}) EXPECT_TRUE(languages.find(tag)) << tag;
  const auto first = english();
  for (const auto* const tag : {"de", "zh"}) {
    const auto other =
        JsonValue::parse(text_of_file(test::source_path(fmt::format("pages/texts/{}.json", tag))),
                         {.bytes = 1 << 20, .members = 1000});
    for (const auto& [key, value] : *first.as_object())
      if (value.as_text()->size() > 14 && !key.starts_with("format."))
        EXPECT_NE(*other->find(key)->as_text(), *value.as_text()) << tag << " has English: " << key;
  }
}

TEST(PageTexts, EachKeyIsSaidAndEachThatIsSaidIsThere) {
  const auto all = english();
  std::set<std::string> said;
  const std::regex key{R"re("((?:[a-z]+\.[a-z-]+)|languages)")re"};
  for (const auto& file :
       std::filesystem::directory_iterator{test::source_path("src/server/pages")}) {
    const auto text = text_of_file(file.path());
    for (std::sregex_iterator at{text.begin(), text.end(), key}, end; at != end; ++at)
      if (!std::regex_search((*at)[1].str(), std::regex{"\\.(css|js|json|jpg|def)$"}))
        said.insert((*at)[1]);
  }
  for (const auto& word : said) EXPECT_TRUE(all.find(word)) << word;
  for (const auto& [word, text] : *all.as_object())
    EXPECT_TRUE(said.contains(word) || word.starts_with("state.") || word.starts_with("problem.") ||
                word.starts_with("advice."))
        << word << " is said nowhere";
}

// NU17: a state has one word, in the interface, at the command line, and on the page.
TEST(PageTexts, NU17_AStateIsCalledAsTheInterfaceCallsIt) {
  const auto all = english();
  for (const auto state : {OrderState::awaiting, OrderState::paid, OrderState::cancelled,
                           OrderState::expired, OrderState::refunding, OrderState::refunded}) {
    const auto* const text = all.find(fmt::format("state.{}", to_string(state)));
    ASSERT_TRUE(text) << to_string(state);
    EXPECT_EQ(*text->as_text(), to_string(state));
  }
}

TEST(PageTexts, ARefusalHasTheWordsOfTheInterface) {
  const auto all = english();
  for (const auto* const problem : all_problems) {
    const auto urn = http::type_of(*problem);
    if (const auto* const text = all.find("problem." + urn.substr(urn.rfind(':') + 1)))
      EXPECT_EQ(*text->as_text(), problem->title);
  }
}

TEST(PageTexts, NumbersMoneyAndTimesAreWrittenAsPeopleDo) {
  const Languages languages;
  const auto& en = languages.all().front();
  const auto& de = *languages.find("de");
  const auto& zh = *languages.find("zh");
  EXPECT_EQ(en.money(149'900, "CNY").text(), "1,499.00 CNY");
  EXPECT_EQ(de.money(149'900, "CNY").text(), "1.499,00 CNY");
  EXPECT_EQ(zh.money(149'900, "CNY").text(), "CNY 1,499.00");
  EXPECT_EQ(en.money(5, "EUR").text(), "0.05 EUR");
  EXPECT_EQ(en.money(500, "JPY").text(), "500 JPY");
  EXPECT_EQ(en.money(1500, "KWD").text(), "1.500 KWD");
  EXPECT_EQ(en.number(1'234'567).text(), "1,234,567");
  EXPECT_EQ(en.number(-123).text(), "-123");
  EXPECT_EQ(en.number(999).text(), "999");
  EXPECT_EQ(en.about(2s).text(), "a few seconds");
  EXPECT_EQ(en.about(42s).text(), "about 45 seconds");
  EXPECT_EQ(en.about(10min).text(), "about 10 minutes");
  EXPECT_EQ(de.about(3h).text(), "etwa 3 Stunden");
  const WallTime then{std::chrono::seconds{1'795'000'000}};
  EXPECT_THAT(en.time(then).text(), HasSubstr(">2026-11-18 11:06:40 UTC</time>"));
  EXPECT_THAT(de.time(then).text(), HasSubstr(">18.11.2026, 11:06:40 UTC</time>"));
  EXPECT_THAT(zh.time(then).text(), HasSubstr(">2026年11月18日 11:06:40 UTC</time>"));
}

TEST(PageTexts, AFileThatIsWrongIsRefusedWithWhatToDo) {
  const auto whole = english();
  const auto made = [&](std::string_view left_out, std::string_view key, std::string_view text) {
    auto json = Json::object();
    for (const auto& [name, value] : *whole.as_object())
      if (name != left_out) json.add(name, name == key ? text : std::string_view{*value.as_text()});
    if (!whole.find(key)) json.add(key, text);
    return json.text();
  };
  const std::pair<std::string, std::string> rows[] = {
      {made("sale.buy", "sale.buy", ""), "'sale.buy' is missing; in English it is \"Buy\""},
      {made("", "sale.bye", "x"), "the pages have no text 'sale.bye'"},
      {made("", "sale.left", "{left} left"), "'sale.left' needs the same names in braces"},
      {made("", "sale.buy", std::string(3000, 'x')), "'sale.buy' is longer than 2000 bytes"},
      {"{\n \"sale.buy\": 7}", "'sale.buy': a text in quotes is needed"},
      {"[]", "texts stand in braces"},
      {"{\n  x", "fr.json:2:3: this is no JSON"}};
  for (const auto& [text, why] : rows) {
    const test::TempDir folder;
    write_file(folder / "fr.json", text);
    EXPECT_THAT([&] { Languages{folder.path().string()}; },
                testing::ThrowsMessage<Error>(HasSubstr(why)));
  }
  const test::TempDir folder;
  EXPECT_THROW(Languages{folder.path().string()}, Error) << "it has no file";
  EXPECT_THROW(Languages{(folder / "none").string()}, Error);
  write_file(folder / "french.json", made("", "sale.buy", "Acheter"));
  EXPECT_THAT([&] { Languages{folder.path().string()}; },
              testing::ThrowsMessage<Error>(HasSubstr("its name is no language")));
  std::filesystem::rename(folder / "french.json", folder / "fr.json");
  write_file(folder / "en.json", made("", "sale.buy", "Take it"));
  const Languages more{folder.path().string()};
  EXPECT_EQ(more.find("fr-CA")->say("sale.buy").text(), "Acheter");
  EXPECT_EQ(more.all().front().say("sale.buy").text(), "Take it") << "in place of ours";
}

class PagesInLanguages : public ShopTest {
 protected:
  Answer page(std::string_view wished, const std::string& path = "/sales/tea") const {
    return ask("GET", path, {{"Accept-Language", wished}});
  }
};

TEST_F(PagesInLanguages, SV13_ABrowserIsAnsweredInItsLanguage) {
  begin({tea(5)});
  const std::pair<const char*, const char*> rows[] = {
      {"de", "de"},        {"de-AT,en;q=0.5", "de"},
      {"DE", "de"},        {"zh-Hans-CN, zh;q=0.9", "zh"},
      {"", "en"},          {"fr, en;q=0.8", "en"},
      {"fr", "en"},        {"en;q=0.1, de;q=0.9", "de"},
      {"*", "en"},         {"de;q=0, zh;q=0.1", "zh"},
      {"en, de", "en"},    {";;q=,,", "en"},
      {"de;q=1e9x", "de"}, {"--", "en"}};
  for (const auto& [wished, language] : rows) {
    const auto answer = page(wished);
    EXPECT_THAT(answer.body, HasSubstr(fmt::format("<html lang=\"{}\">", language))) << wished;
    EXPECT_TRUE(answer.has("\r\nVary: Accept, Accept-Language, ")) << answer.head;
    EXPECT_TRUE(answer.has(fmt::format("Content-Language: {}", language)));
  }
  EXPECT_THAT(page("de").body, HasSubstr("5 von 5 noch da"));
  EXPECT_THAT(page("zh").body, HasSubstr("剩余 5 件,共 5 件"));
  EXPECT_THAT(page("de", "/sales/none").body, HasSubstr("Diesen Verkauf gibt es nicht"));
}

TEST_F(PagesInLanguages, SV13_ALinkChoosesALanguageWhichTheBrowserKeeps) {
  begin({tea(1)});
  Browser ann{service_->port()};
  Browser bob{service_->port()};
  auto hers = ann.get("/sales/tea?lang=de");
  EXPECT_THAT(hers.body, HasSubstr("<html lang=\"de\">"));
  EXPECT_THAT(hers.body, HasSubstr("href=\"/sales/tea?lang=zh\""));
  EXPECT_EQ(ann.cookie("sluice_lang"), "de");
  bob.get("/sales/tea?lang=zh");
  hers = ann.get("/sales/tea");
  const auto his = bob.get("/sales/tea");
  EXPECT_THAT(hers.body, HasSubstr(">Kaufen</button>"));
  const auto bought = ann.submit(hers, "/orders");
  EXPECT_THAT(bought.body, HasSubstr("<h2>Bestellung TEA"));
  const auto refused = bob.submit(his, "/orders");
  EXPECT_EQ(refused.status, 409);
  EXPECT_THAT(refused.body, HasSubstr("已售罄")) << "refusals, too";
  EXPECT_THAT(refused.body, HasSubstr("href=\"/sales/tea?lang=en\"")) << "a form has no page";
  EXPECT_THAT(ann.get("/sales/tea?lang=tlh").body, HasSubstr("<html lang=\"de\">"));
  EXPECT_THAT(ann.get("/sales/tea?lang=%22%3E%3Cb%3E").body, Not(HasSubstr("<b>")));
}

TEST_F(PagesInLanguages, TheShopsLoginMayBringALanguage) {
  const TokenKeys keys{{{"k1", std::string(32, 'k')}}};
  auto how = options();
  how.keys = keys;
  begin({tea(5)}, std::move(how));
  Browser ann{service_->port()};
  const auto token = buyer_token(keys, "ann", "tea", system_clock().wall() + 1h);
  EXPECT_THAT(ann.get("/sales/tea?lang=de&token=" + token).body,
              HasSubstr("Sie sind hier als ann."));
}

// What the texts name is looked up in the document of the interface: a problem that a page may
// answer has words in each language.
TEST_F(PagesInLanguages, SV13_EachRefusalOfAPageHasWords) {
  begin({tea(5)});
  const auto all = english();
  const auto document =
      JsonValue::parse(ask("GET", "/openapi.json").body, {.bytes = 4 << 20, .depth = 64}).value();
  const std::regex urn{"urn:sluice:problem:([a-z-]+)"};
  std::set<std::string> seen;
  for (const auto& [path, methods] : *document.find("paths")->as_object())
    for (const auto& [method, about] : *methods.as_object()) {
      if (!about.find("operationId")->as_text()->starts_with("page_")) continue;
      for (const auto& [status, answer] : *about.find("responses")->as_object()) {
        const auto* const reference = answer.find("$ref");
        if (!reference) continue;
        const auto name = reference->as_text()->substr(reference->as_text()->rfind('/') + 1);
        const auto text = *document.find("components")
                               ->find("responses")
                               ->find(name)
                               ->find("description")
                               ->as_text();
        for (std::sregex_iterator at{text.begin(), text.end(), urn}, end; at != end; ++at)
          seen.insert((*at)[1]);
      }
    }
  for (const auto* const own : http::own_problems)  // before a route is found
    if (own != &http::problems::internal_error) {
      const auto type = http::type_of(*own);
      seen.erase(type.substr(type.rfind(':') + 1));
    }
  EXPECT_GT(seen.size(), 20U);
  for (const auto& name : seen) EXPECT_TRUE(all.find("problem." + name)) << name;
}

TEST_F(PagesInLanguages, NU17_TheRootLeadsOn) {
  begin({tea(5)});
  const auto json = ask("GET", "/");
  EXPECT_EQ(json.status, 200);
  EXPECT_TRUE(json.has("application/json"));
  EXPECT_THAT(json.body, HasSubstr("\"/sales/tea\""));
  EXPECT_TRUE(json.has("\r\nVary: Accept, ")) << json.head;
  const auto html =
      ask("GET", "/",
          {{"Accept", "text/html,application/xhtml+xml,*/*;q=0.8"}, {"Accept-Language", "de"}});
  EXPECT_TRUE(html.has("text/html"));
  for (const auto* const link :
       {"href=\"/sales/tea\"", "href=\"/console\"", "href=\"/openapi.json\"", "href=\"/?lang=en\"",
        "<h1>Verkäufe</h1>"})
    EXPECT_THAT(html.body, HasSubstr(link));
  EXPECT_EQ(ask("GET", "/", {{"Accept", "application/json, text/html"}}).body, json.body);
}

}  // namespace
}  // namespace sluice::server
