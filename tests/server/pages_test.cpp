// The pages for buyers, by a browser without scripts.

#include <gtest/gtest.h>

#include <regex>

#include "server/browser.hpp"
#include "server/pages/frame.hpp"
#include "server/shop_fixture.hpp"
#include "sluice/sale_recovery.hpp"
#include "support/matchers.hpp"

namespace sluice::server {
namespace {

using test::Browser;
using testing::HasSubstr;
using testing::Not;

class Pages : public ShopTest {
 protected:
  Browser browser() const { return Browser{service_->port()}; }

  void begin_with_room(WaitingRoomDefinition room, std::int64_t stock = 5) {
    auto how = options();
    room.name = "tea";
    how.rooms = {room};
    begin({tea(stock)}, std::move(how));
  }
  std::int64_t sold() const {
    return *ask("GET", "/v1/sales/tea").json().find("sold")->as_integer();
  }
  /// Until a worker has brought the order into the database.
  static Answer recorded(Browser& browser, const std::string& order) {
    Answer page;
    EXPECT_TRUE(test::comes_true([&] {
      page = browser.get(order);
      return page.body.find("writing it down") == std::string::npos;
    }));
    return page;
  }
};

TEST_F(Pages, TheWholeWayWithoutScripts) {
  begin_with_room({.rate = 1000, .inside = 1});
  auto ann = browser();
  auto bob = browser();
  auto page = ann.get("/sales/tea");
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.body, HasSubstr("5 of 5 left"));
  page = ann.submit(page, "/queue");
  EXPECT_EQ(ann.path(), "/sales/tea")
      << "a form is answered by a page, so that a reload sends nothing";
  EXPECT_THAT(page.body, HasSubstr("It is your turn"));
  auto waiting = bob.submit(bob.get("/sales/tea"), "/queue");
  EXPECT_THAT(waiting.body, HasSubstr("ahead of you"));
  EXPECT_THAT(waiting.body, HasSubstr("http-equiv=\"refresh\""));
  EXPECT_THAT(waiting.body, Not(HasSubstr("Buy</button>")));
  const auto bought = ann.submit(page, "/orders");
  EXPECT_EQ(bought.status, 200) << bought.body;
  EXPECT_THAT(ann.path(), HasSubstr("/sales/tea/orders/"));
  EXPECT_THAT(bought.body, HasSubstr("Order TEA"));
  const auto order = ann.path();
  EXPECT_THAT(recorded(ann, order).body, HasSubstr("It is yours."));
  EXPECT_THAT(ann.get("/sales/tea").body, HasSubstr(order)) << "he finds it again";
  EXPECT_EQ(bob.get(order).status, 404) << "it is nobody else's";
  EXPECT_TRUE(test::comes_true([&] {
    waiting = bob.get("/sales/tea");
    return waiting.body.find("Buy</button>") != std::string::npos;
  }));
  EXPECT_EQ(bob.submit(waiting, "/orders").status, 200);
  EXPECT_EQ(sold(), 2);
}

TEST_F(Pages, AFormThatIsSentTwiceBuysOnce) {
  begin({tea(5, 0)});
  auto ann = browser();
  const auto page = ann.get("/sales/tea");
  ann.submit(page, "/orders", "units=2");
  const auto order = ann.path();
  ann.submit(page, "/orders", "units=2");
  EXPECT_EQ(ann.path(), order);
  EXPECT_EQ(sold(), 2);
  EXPECT_EQ(ann.submit(page, "/orders", "units=1").status, 422) << "the same wish, otherwise";
  ann.submit(ann.get("/sales/tea"), "/orders", "units=1");
  EXPECT_EQ(sold(), 3) << "a page that is loaded anew is a new wish";
}

TEST_F(Pages, V36_AReloadKeepsThePlaceAndTwoWindowsAreOne) {
  begin_with_room({.rate = 1000, .inside = 1});
  auto ann = browser();
  ann.submit(ann.get("/sales/tea"), "/queue");
  auto bob = browser();
  const auto first = bob.get("/sales/tea");
  const auto place = bob.submit(first, "/queue");
  auto carl = browser();
  carl.submit(carl.get("/sales/tea"), "/queue");
  EXPECT_THAT(place.body, HasSubstr("Your place is number 2."));
  EXPECT_THAT(bob.get("/sales/tea").body, HasSubstr("Your place is number 2.")) << "a reload";
  EXPECT_THAT(bob.submit(first, "/queue").body, HasSubstr("Your place is number 2.")) << "a window";
  EXPECT_THAT(carl.get("/sales/tea").body, HasSubstr("Your place is number 3."));
  const auto left = bob.submit(bob.get("/sales/tea"), "/queue/leave");
  EXPECT_THAT(left.body, HasSubstr("Join the waiting room"));
  EXPECT_EQ(bob.cookie("sluice_ticket"), "");
}

TEST_F(Pages, AFormOfAnotherSiteOrAnotherBuyerIsRefused) {
  begin({tea(5)});
  auto ann = browser();
  auto eve = browser();
  const auto mine = Browser::form(ann.get("/sales/tea"), "/orders");
  const auto hers = Browser::form(eve.get("/sales/tea"), "/orders");
  EXPECT_EQ(ann.send("POST", "/sales/tea/orders", hers.body).status, 403);
  EXPECT_EQ(ann.send("POST", "/sales/tea/orders", "wish=1").status, 403) << "without a token";
  for (const auto* field : {"Sec-Fetch-Site: cross-site\r\n", "Sec-Fetch-Site: same-site\r\n",
                            "Origin: http://evil\r\n", "Origin: null\r\n"})
    EXPECT_EQ(ann.send("POST", "/sales/tea/orders", mine.body, field).status, 403) << field;
  EXPECT_EQ(browser().send("POST", "/sales/tea/orders", mine.body).status, 401) << "no cookie";
  EXPECT_EQ(sold(), 0);
  EXPECT_EQ(ann.send("POST", "/sales/tea/orders", mine.body, "Origin: http://shop\r\n").status,
            303);
  EXPECT_EQ(sold(), 1);
}

TEST_F(Pages, WhatIsNoFormIsRefused) {
  begin({tea(5)});
  auto ann = browser();
  const auto mine = Browser::form(ann.get("/sales/tea"), "/orders");
  for (const auto& more :
       {std::string{"&units=0"}, std::string{"&units=-1"}, std::string{"&units=x"},
        std::string{"&units=99999999999999999999"}, std::string{"&wish=2"}, std::string{"&a=%ff"},
        std::string{"&a=%zz"},
        std::string{"&a=1&b=1&c=1&d=1&e=1&f=1&g=1&h=1&i=1&j=1&k=1&l=1&m=1&n=1&o"}}) {
    const auto answer = ann.send("POST", "/sales/tea/orders", mine.body + more);
    EXPECT_EQ(answer.status, 400) << more;
    EXPECT_TRUE(answer.has("text/html")) << more;
  }
  EXPECT_EQ(ask("POST", "/sales/tea/orders", {{"Content-Type", "application/json"}}, "{}").status,
            400);
  EXPECT_EQ(sold(), 0);
}

TEST_F(Pages, ANameWithMarkupIsText) {
  const std::string name = R"(<script>alert('1')</script>"&)";
  auto sale = tea(5);
  sale.name = name;
  begin({sale});
  auto ann = browser();
  const auto path = "/sales/" + http::escape(name);
  auto page = ann.get(path);
  ASSERT_EQ(page.status, 200);
  EXPECT_THAT(page.body, Not(HasSubstr("<script>")));
  EXPECT_THAT(page.body, HasSubstr("&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&quot;&amp;"));
  EXPECT_EQ(ann.submit(page, "/orders").status, 200);
  EXPECT_THAT(ann.path(), HasSubstr(path + "/orders/"));
  const auto none = ann.get("/sales/" + http::escape("<b>none</b>"));
  EXPECT_EQ(none.status, 404);
  EXPECT_THAT(none.body, Not(HasSubstr("<b>")));
}

TEST_F(Pages, EachPageForbidsWhatItDoesNotNeed) {
  begin({tea(5)});
  auto ann = browser();
  for (const auto* path : {"/sales/tea", "/sales/none", "/sales/tea/orders/1"}) {
    const auto page = ann.send("GET", path);
    EXPECT_TRUE(page.has("Content-Security-Policy: default-src 'none'")) << path;
    EXPECT_TRUE(page.has("frame-ancestors 'none'")) << path;
    EXPECT_TRUE(page.has("Cache-Control: no-store")) << path;
    EXPECT_THAT(page.body, HasSubstr("<html lang=\"en\">"));
    EXPECT_THAT(page.body, Not(HasSubstr("style="))) << path;
    EXPECT_THAT(page.body, Not(HasSubstr("onclick"))) << path;
  }
  for (const auto* path : {"/sales/assets/buyers.css", "/sales/assets/buyers.js"}) {
    EXPECT_EQ(ann.send("GET", path).status, 200);
    EXPECT_TRUE(ann.send("GET", path).has("immutable"));
  }
}

TEST_F(Pages, RefusalsHaveTheWordsOfTheProblems) {
  begin({tea(1)});
  auto ann = browser();
  auto bob = browser();
  const auto hers = ann.get("/sales/tea");
  const auto his = bob.get("/sales/tea");
  ann.submit(hers, "/orders");
  const auto order = ann.path();
  const auto refused = bob.submit(his, "/orders");
  EXPECT_EQ(refused.status, 409);
  EXPECT_THAT(refused.body, HasSubstr("Nothing is left"));
  EXPECT_THAT(bob.get("/sales/tea").body, HasSubstr("Nothing is left"));
  EXPECT_THAT(ann.get("/sales/tea").body, HasSubstr(order)) << "who has bought finds his order";
}

TEST_F(Pages, WhoHasBoughtIsShownHisOrder) {
  begin({tea(5)});
  auto ann = browser();
  auto other_window = ann.get("/sales/tea");
  ann.submit(ann.get("/sales/tea"), "/orders");
  const auto order = ann.path();
  const auto refused = ann.submit(other_window, "/orders");
  EXPECT_EQ(refused.status, 409);
  EXPECT_THAT(refused.body, HasSubstr("You have as many orders as you may have"));
  EXPECT_THAT(refused.body, HasSubstr(order));
  EXPECT_EQ(sold(), 1);
}

TEST_F(Pages, ASaleThatHasNotBegunSaysWhenAndOneThatIsOverSaysSo) {
  auto later = tea(5);
  later.opens_at = system_clock().wall() + 2h;
  auto over = tea(5);
  over.name = "over";
  over.number_type = "OVER";
  begin({later, over});
  service_->shop().find("over")->sale().close().get();
  auto ann = browser();
  const auto early = ann.get("/sales/tea");
  EXPECT_THAT(early.body, HasSubstr("The sale has not begun"));
  EXPECT_THAT(early.body, HasSubstr("data-opens-in-ms=\"7"));
  EXPECT_THAT(early.body, HasSubstr("http-equiv=\"refresh\""));
  EXPECT_THAT(early.body, Not(HasSubstr("<form")));
  EXPECT_THAT(ann.get("/sales/over").body, HasSubstr("The sale is over"));
}

TEST_F(Pages, ARoomThatIsClosedTakesNobody) {
  begin_with_room({.rate = 1000, .inside = 1});
  WaitingRoom::load(*store_, TokenKeys{{{.id = "k", .secret = std::string(32, 'k')}}}, "tea")
      .get()
      ->close()
      .get();
  auto ann = browser();
  const auto refused = ann.submit(ann.get("/sales/tea"), "/queue");
  EXPECT_EQ(refused.status, 410);
  EXPECT_THAT(refused.body, HasSubstr("The waiting room is closed"));
}

TEST_F(Pages, ASaleThatIsRecoveredSaysSo) {
  begin({tea(5)});
  auto ann = browser();
  const auto page = ann.get("/sales/tea");
  store_->run({"FLUSHALL"}).get();
  const auto during = ann.get("/sales/tea");
  EXPECT_THAT(during.body, testing::AnyOf(HasSubstr("gets back what its store has lost"),
                                          HasSubstr("left</p>")));
  const auto orders = open_order_store(options().shop.orders);
  recover(*store_, "tea", *orders, {.new_store = true});
  EXPECT_TRUE(test::comes_true(
      [&] { return ann.get("/sales/tea").body.find("5 of 5 left") != std::string::npos; }));
}

TEST_F(Pages, AnUnpaidOrderIsCancelledByItsBuyerAlone) {
  begin({paid_tea(5)});
  auto ann = browser();
  auto eve = browser();
  ann.submit(ann.get("/sales/tea"), "/orders");
  const auto order = ann.path();
  const auto page = recorded(ann, order);
  EXPECT_THAT(page.body, HasSubstr("5.00 CNY"));
  EXPECT_THAT(page.body, HasSubstr("Pay by"));
  const auto form = Browser::form(eve.get("/sales/tea"), "/orders");
  EXPECT_EQ(eve.send("POST", order + "/cancel", form.body).status, 404);
  const auto cancelled = ann.submit(page, "/cancel");
  EXPECT_EQ(ann.path(), order);
  EXPECT_THAT(cancelled.body, HasSubstr("This order is cancelled."));
  EXPECT_EQ(sold(), 0);
  EXPECT_THAT(cancelled.body, Not(HasSubstr("/cancel\"")));
  EXPECT_THAT(cancelled.body, Not(HasSubstr("To pay")));
}

TEST_F(Pages, SV13_APageOfAnOpenSaleStaysTrue) {
  begin({tea(5)});
  auto ann = browser();
  EXPECT_THAT(ann.get("/sales/tea").body, HasSubstr("data-seen-poll-ms=\"15000\""));
  ann.submit(ann.get("/sales/tea"), "/orders");
  EXPECT_THAT(ann.get("/sales/tea").body, HasSubstr("data-poll-ms=\"15000\"")) << "without a form";
}

TEST_F(Pages, SV13_WhatIsToPaySaysSoAndLeadsToTheCheckout) {
  const TokenKeys keys{{{"k1", std::string(32, 'k')}}};
  auto how = options();
  how.keys = keys;
  how.pages.checkout = "https://shop.example/pay?lang=en";
  begin({paid_tea(5)}, std::move(how));
  auto ann = browser();
  ann.get("/sales/tea?token=" + buyer_token(keys, "ann", "tea", system_clock().wall() + 1h));
  ann.submit(ann.get("/sales/tea"), "/orders");
  const auto order = ann.path();
  const auto page = recorded(ann, order);
  EXPECT_THAT(page.body, HasSubstr("<dt>To pay</dt><dd>5.00 CNY</dd>"));
  std::smatch link;
  const std::regex form{R"re(href="https://shop\.example/pay\?lang=en&amp;sale=tea&amp;)re"
                        R"re(order=([^&]+)&amp;token=([^"]+)")re"};
  ASSERT_TRUE(std::regex_search(page.body, link, form)) << page.body;
  const auto claims = keys.check(link[2].str(), "checkout:tea", "ann", system_clock().wall());
  ASSERT_TRUE(claims);
  EXPECT_EQ(claims->more.at("order"), link[1].str());
  EXPECT_EQ(claims->more.at("amount"), "500");
  EXPECT_EQ(claims->more.at("currency"), "CNY");

  const auto orders = open_order_store(options().shop.orders);
  const Payment payment{.provider = "acme",
                        .event = "e",
                        .sale = "tea",
                        .order = link[1].str(),
                        .amount = 500,
                        .currency = "CNY"};
  orders->payments().keep(payment);
  EXPECT_EQ(orders->payments().apply(payment).state, PaymentState::applied);
  const auto paid = ann.get(order);
  EXPECT_THAT(paid.body, HasSubstr("<dt>Paid</dt><dd>5.00 CNY</dd>"));
  EXPECT_THAT(paid.body, Not(HasSubstr("To pay")));
  EXPECT_THAT(paid.body, Not(HasSubstr("shop.example")));
}

// His hold would pass while he reads the form. Scripts ask before it does; without them the page
// comes back once it has, and says so.
TEST_F(Pages, WhoIsInsideKeepsHisPlaceWhileHeLooksAtTheForm) {
  begin_with_room({.rate = 1000, .inside = 1, .hold = 20s});
  auto ann = browser();
  const auto page = ann.submit(ann.get("/sales/tea"), "/queue");
  ASSERT_THAT(page.body, HasSubstr("It is your turn"));
  const auto number = [&](const std::string& begins) {
    const std::regex value{begins + "([0-9]+)"};
    std::smatch found;
    return std::regex_search(page.body, found, value) ? std::stol(found[1]) : 0;
  };
  EXPECT_GT(number("data-seen-poll-ms=\""), 0) << page.body;
  EXPECT_LE(number("data-seen-poll-ms=\""), 10'000) << "well before it passes";
  EXPECT_GE(number("data-poll-ms=\""), 20'000) << "no window that is left behind keeps it";
  EXPECT_GE(number("http-equiv=\"refresh\" content=\""), 20) << "what he types stays until then";
  EXPECT_THAT(page.body, HasSubstr("<noscript><p>Your place is kept until "));
}

class PagesWithKeys : public Pages {
 protected:
  void SetUp() override { begin_with_keys({}); }
  void begin_with_keys(RateLimitOptions rates) {
    auto how = options();
    how.keys = keys_;
    how.rates = rates;
    begin({tea(5), {.name = "milk", .stock = 5, .number_type = "MILK"}}, std::move(how));
  }
  std::string token(std::string_view sale = "tea", std::chrono::seconds lasts = 1h) const {
    return token_of("ann", sale, lasts);
  }
  std::string token_of(const std::string& buyer, std::string_view sale = "tea",
                       std::chrono::seconds lasts = 1h) const {
    return buyer_token(keys_, buyer, sale, system_clock().wall() + lasts);
  }

  const TokenKeys keys_{{{.id = "k", .secret = std::string(32, 'k')}}};
};

TEST_F(PagesWithKeys, TheShopsLoginBringsATokenWhichLeavesTheUrl) {
  auto ann = browser();
  const auto greeted = ann.send("GET", "/sales/tea?token=" + token());
  EXPECT_EQ(greeted.status, 303);
  EXPECT_TRUE(greeted.has("Location: /sales/tea\r\n"));
  EXPECT_TRUE(greeted.has("Referrer-Policy: no-referrer"));
  EXPECT_TRUE(greeted.has("Path=/sales/tea; HttpOnly; SameSite=Lax"));
  EXPECT_FALSE(greeted.has("Secure"));
  EXPECT_EQ(ann.submit(ann.get("/sales/tea"), "/orders").status, 200);
  const auto latest = service_->shop().find("tea")->sale().latest(BuyerId{"ann"}).get();
  ASSERT_TRUE(latest);
  EXPECT_THAT(ann.path(), HasSubstr(fmt::to_string(latest->id))) << "he has bought in his own name";
}

// Anybody can send a link with a token of his own: what its visitor buys would be the sender's.
TEST_F(PagesWithKeys, ALinkMakesNobodyAnotherBuyerUnasked) {
  auto ann = browser();
  const auto first = token();
  const auto again = token();
  EXPECT_THAT(ann.get("/sales/tea?token=" + first).body, HasSubstr("You are here as ann."));
  const auto asked = ann.get("/sales/tea?token=" + token_of("<b>eve</b>"));
  EXPECT_THAT(asked.body, HasSubstr("You are here as ann, and this link is for &lt;b&gt;eve"));
  EXPECT_EQ(ann.cookie("sluice_buyer"), first) << "not yet";
  EXPECT_THAT(ann.get("/sales/tea").body, HasSubstr("You are here as ann."));
  EXPECT_EQ(ann.get("/sales/tea?token=" + again).status, 200);
  EXPECT_EQ(ann.cookie("sluice_buyer"), again) << "she logged in again";
  const auto form = Browser::form(asked, "/buyer");
  EXPECT_EQ(
      ann.send("POST", "/sales/tea/buyer", form.body, "Sec-Fetch-Site: cross-site\r\n").status,
      403);
  EXPECT_EQ(browser().send("POST", "/sales/tea/buyer", form.body).status, 401);
  EXPECT_EQ(ann.send("POST", "/sales/tea/buyer", form.body + "x").status, 401) << "no token";
  EXPECT_THAT(ann.submit(asked, "/buyer").body, HasSubstr("You are here as &lt;b&gt;eve"));
}

TEST_F(PagesWithKeys, BuyersAndAddressesAreHeldToTheirRates) {
  begin_with_keys({.buyer = {.quota = 3, .window = 100s}, .client = {.quota = 10, .window = 100s}});
  auto ann = browser();
  ann.set_cookie("sluice_buyer", token());
  const auto page = ann.get("/sales/tea");
  EXPECT_EQ(ann.get("/sales/tea/orders/1").status, 404);
  EXPECT_EQ(ann.submit(page, "/orders").status, 429) << "its answer is a third page";
  EXPECT_EQ(sold(), 1);
  const auto refused = ann.send("GET", "/sales/tea");
  EXPECT_EQ(refused.status, 429);
  EXPECT_TRUE(refused.has("Retry-After: "));
  EXPECT_EQ(ann.send("POST", "/sales/tea/orders", Browser::form(page, "/orders").body).status, 429);
  EXPECT_EQ(ann.send("GET", "/sales/tea?token=" + token()).status, 429);
  auto bob = browser();
  bob.set_cookie("sluice_buyer", token_of("bob"));
  EXPECT_EQ(bob.get("/sales/tea").status, 200) << "ann's refusals do not count for her address";
  int looks = 0;
  while (looks < 20 && browser().get("/sales/tea").status == 200) ++looks;
  EXPECT_LT(looks, 10) << "who has no name counts for his address";
  EXPECT_EQ(browser().get("/sales/tea?token=x").status, 429) << "nor may he try tokens";
  EXPECT_EQ(browser().get("/sales/assets/buyers.css").status, 200);
}

// It is left open in a waiting room, and must not stand still at the first failure.
TEST_F(PagesWithKeys, APageThatIsRefusedForAMomentComesBackByItself) {
  begin_with_keys({.buyer = {.quota = 1, .window = 60s}, .client = {}});
  auto ann = browser();
  ann.set_cookie("sluice_buyer", token());
  const auto page = ann.get("/sales/tea");
  for (const auto* const path : {"/sales/tea", "/sales/tea/orders/1"}) {
    const auto refused = ann.get(path);
    ASSERT_EQ(refused.status, 429);
    EXPECT_THAT(refused.body, HasSubstr("http-equiv=\"refresh\""));
    EXPECT_THAT(refused.body, Not(HasSubstr("data-poll-ms=\"\"")));
  }
  const auto sent = ann.send("POST", "/sales/tea/orders", Browser::form(page, "/orders").body);
  ASSERT_EQ(sent.status, 429);
  EXPECT_THAT(sent.body, Not(HasSubstr("http-equiv"))) << "a form is not sent twice";
  EXPECT_THAT(browser().get("/sales/none").body, Not(HasSubstr("http-equiv")));
}

TEST_F(PagesWithKeys, WhoTriedTheSaleBeforeThereWereKeysCanLogIn) {
  auto ann = browser();
  begin({tea(5)});
  ann = browser();
  ann.get("/sales/tea");
  EXPECT_EQ(ann.cookie("sluice_buyer"), "") << "of two by one name neither would be taken";
  EXPECT_NE(ann.cookie("sluice_browser"), "");
}

TEST_F(PagesWithKeys, WhoWasNotBroughtCanLookAndNotBuy) {
  auto eve = browser();
  const auto page = eve.get("/sales/tea");
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.body, HasSubstr("5 of 5 left"));
  EXPECT_THAT(page.body, HasSubstr("come here from the shop"));
  EXPECT_THAT(page.body, Not(HasSubstr("<form")));
  EXPECT_EQ(eve.cookie("sluice_buyer"), "");
  for (const auto& bad : {std::string{"x"}, token("milk"), token("tea", -1h), token() + "x"}) {
    const auto refused = eve.send("GET", "/sales/tea?token=" + bad);
    EXPECT_EQ(refused.status, 401) << bad;
    EXPECT_FALSE(refused.has("Set-Cookie"));
  }
}

TEST_F(PagesWithKeys, ACookieOfAnotherSaleOrAnOldOneIsNobodys) {
  for (const auto& value : {token("milk"), token("tea", -1h), std::string{"x"}}) {
    auto ann = browser();
    ann.set_cookie("sluice_buyer", value);
    EXPECT_THAT(ann.get("/sales/tea").body, Not(HasSubstr("<form")));
  }
  auto ann = browser();
  ann.set_cookie("sluice_buyer", token("*"));
  EXPECT_THAT(ann.get("/sales/tea").body, HasSubstr("<form"));
}

TEST_F(PagesWithKeys, BehindAProxyThatSpeaksTlsCookiesAreSecure) {
  auto ann = browser();
  EXPECT_TRUE(ann.send("GET", "/sales/tea?token=" + token(), {}, "X-Forwarded-Proto: https\r\n")
                  .has("SameSite=Lax; Secure"));
}

TEST(Html, WhatComesFromOutsideIsEscaped) {
  Html html;
  html << "<p title=\""_html << std::string_view{"\"'><&\0", 6} << "\">"_html << 7;
  EXPECT_EQ(html.text(), "<p title=\"&quot;&#39;&gt;&lt;&amp;\xEF\xBF\xBD\">7");
  static_assert(!std::is_constructible_v<Markup, std::string>);
  static_assert(!std::is_constructible_v<Markup, const char*>);
}

}  // namespace
}  // namespace sluice::server
