// The provider without money, before a real service.
#include "server/simulated_provider.hpp"

#include "base/sha256.hpp"
#include "server/shop_fixture.hpp"
#include "support/free_port.hpp"

namespace sluice::server {
namespace {

class Simulated : public ShopTest {
 protected:
  static SimulatedProviderOptions quick() {
    SimulatedProviderOptions options;
    options.delay = 1ms;
    options.late = 1ms;
    options.every = 10ms;
    options.first_pause = 5ms;
    return options;
  }
  void begin_both(PaymentTerms terms = {.price = 500, .currency = "CNY"},
                  SimulatedProviderOptions how = quick(), bool pays_all = false) {
    const auto key = make_shop_key("till", {Scope::orders});
    const auto port = test::free_port();
    how.provider = acme_;
    how.payments = fmt::format("http://127.0.0.1:{}/v1/payments/acme", port);
    if (pays_all) how.shop = PaidShop{fmt::format("http://127.0.0.1:{}", port), key.key};
    provider_.reset();
    provider_ = std::make_unique<SimulatedProvider>(std::move(how));
    auto service = options();
    service.http.listen.port = port;
    service.shop.worker.claim_after = 60ms;
    service.shop_keys = ShopKeys{{{"till", {Scope::orders}, sha256(key.key.substr(8))}}};
    service.providers = {acme_};
    service.messenger.every = 5ms;
    service.messenger.http.allows_private = true;
    service.messenger.refunds = {
        {acme_, fmt::format("http://127.0.0.1:{}/refund", provider_->port())}};
    begin({paid_tea(100, terms)}, std::move(service));
  }
  Answer pay(const std::string& number, std::string_view as, std::int64_t amount = 500) const {
    return test::ask(provider_->port(), "POST", "/pay", {},
                     fmt::format(R"({{"sale":"tea","order":"{}","amount":{},"currency":"CNY",)"
                                 R"("as":"{}"}})",
                                 number, amount, as));
  }
  std::string state(std::string_view buyer, const std::string& id) const {
    return ask("GET", "/v1/sales/tea/orders/" + id, {{"Sluice-Buyer", buyer}}).text("state");
  }
  JsonValue seen() const { return test::ask(provider_->port(), "GET", "/state").json(); }
  std::int64_t money(std::string_view what) const {
    const auto all = seen();
    const auto* const sums = all.find("money")->find("CNY");
    return sums ? *sums->find(what)->as_integer() : 0;
  }
  std::int64_t waiting() const {
    const auto all = seen();
    return *all.find("waiting")->as_integer();
  }
  std::size_t flagged() const {
    return open_order_store(options().shop.orders)
        ->payments()
        .list("tea", PaymentState::flagged, 10)
        .size();
  }

  std::shared_ptr<const HmacPayments> acme_ = std::make_shared<HmacPayments>(
      "acme", WebhookKeys{{"whsec_bWFueSBieXRlcyBvZiBhIHByb3ZpZGVyJ3Mgc2VjcmV0"}});
  std::unique_ptr<SimulatedProvider> provider_;
};

TEST_F(Simulated, WhatNoServiceWouldTakeAndWhatAStrangersPageAsksIsRefused) {
  begin_both();
  const auto wish = [&](std::string_view amount, std::string_view currency,
                        std::string_view origin) {
    const auto body = fmt::format(R"({{"sale":"tea","order":"T1","amount":{},"currency":"{}"}})",
                                  amount, currency);
    return origin.empty()
               ? test::ask(provider_->port(), "POST", "/pay", {}, body)
               : test::ask(provider_->port(), "POST", "/pay", {{"Origin", origin}}, body);
  };
  for (const char* const amount : {"0", "-1", "1e3", "9223372036854775807", "1000000000001"})
    EXPECT_EQ(wish(amount, "CNY", "").problem(), "bad-body") << amount;
  for (const char* const currency : {"", "cny", "YUAN"})
    EXPECT_EQ(wish("500", currency, "").problem(), "bad-body") << currency;
  for (const char* const origin : {"https://evil.example", "null", "http://8.8.8.8", ""})
    EXPECT_EQ(wish("500", "CNY", origin).status, *origin ? 403 : 202) << origin;
  EXPECT_EQ(wish("500", "CNY", "http://localhost:3000").status, 202);
}

TEST_F(Simulated, EachWayToPayDoesWhatItSays) {
  begin_both();
  const auto bought = [&](std::string_view buyer) { return buy(buyer, "k"); };
  const auto ann = bought("ann");
  const auto bob = bought("bob");
  const auto cid = bought("cid");
  const auto dan = bought("dan");
  EXPECT_EQ(pay(ann.text("number"), "again").status, 202);
  EXPECT_EQ(pay(bob.text("number"), "twice").status, 202);
  EXPECT_EQ(pay(cid.text("number"), "wrong").status, 202);
  EXPECT_EQ(pay(dan.text("number"), "never").status, 202);
  EXPECT_TRUE(test::comes_true([&] { return state("ann", ann.text("id")) == "paid"; }));
  EXPECT_TRUE(test::comes_true([&] { return state("bob", bob.text("id")) == "paid"; }));
  EXPECT_TRUE(test::comes_true([&] { return flagged() == 2; })) << "bob's second, and cid's";
  EXPECT_TRUE(test::comes_true([&] { return waiting() == 0; }));
  EXPECT_EQ(state("cid", cid.text("id")), "awaiting");
  EXPECT_EQ(state("dan", dan.text("id")), "awaiting");
  EXPECT_EQ(money("paid"), 500 + 1000 + 501);
}

TEST_F(Simulated, WhatIsNoWishIsSaid) {
  begin_both();
  for (const char* const body :
       {"", "x", "[]", R"({"sale":"tea"})",
        R"({"sale":"tea","order":"T1","amount":0,"currency":"CNY"})",
        R"({"sale":"tea","order":"T1","amount":"5","currency":"CNY"})",
        R"({"sale":"tea","order":"T1","amount":5,"currency":"CNY","as":"soon"})"})
    EXPECT_EQ(test::ask(provider_->port(), "POST", "/pay", {}, body).problem(), "bad-body") << body;
  EXPECT_EQ(test::ask(provider_->port(), "POST", "/refund", {}, "{}").problem(), "not-signed");
}

TEST_F(Simulated, V15_RefundsThatFailAreTakenOnce) {
  auto how = quick();
  how.refunds_fail = 60;
  begin_both({.price = 500, .currency = "CNY"}, std::move(how));
  auto& sale = service_->shop().find("tea")->sale();
  const auto orders = open_order_store(options().shop.orders);
  std::vector<std::int64_t> ids;
  constexpr int count = 8;
  for (int i = 0; i < count; ++i) {
    const auto buyer = fmt::format("b{}", i);
    const auto order = buy(buyer, "k");
    pay(order.text("number"), "pay");
    EXPECT_TRUE(test::comes_true([&] { return state(buyer, order.text("id")) == "paid"; }));
    sale.cancel_units(*orders, {buyer}, {"k"}, 0, "back");
    ids.push_back(std::stoll(order.text("id")));
  }
  EXPECT_TRUE(test::comes_true([&] {
    for (const auto id : ids)  // as time would make them due
      for (const auto& refund : orders->payments().refunds_of("tea", id))
        orders->payments().refund_failed(refund, "hurried", 0s);
    return orders->payments().totals("tea").refunds == 0;
  }));
  EXPECT_EQ(money("paid"), 500 * count);
  EXPECT_EQ(money("given_back"), 500 * count);
}

TEST_F(Simulated, ARefundIsRefusedThatWasNotPaidOrIsTooMuch) {
  begin_both();
  pay("T1", "pay");
  EXPECT_TRUE(test::comes_true([&] { return waiting() == 0; }));
  std::string event;
  {
    const auto orders = open_order_store(options().shop.orders);
    EXPECT_TRUE(test::comes_true([&] {
      for (const auto& kept : orders->payments().list("tea", PaymentState::waiting, 10))
        event = kept.payment.event;
      return !event.empty();
    }));
  }
  const auto refund = [&](const std::string& key, const std::string& payment, int amount) {
    const auto body = fmt::format(R"({{"id":"{}","payment":"{}","amount":{},"currency":"CNY"}})",
                                  key, payment, amount);
    const auto head = acme_->sign(body, "r", system_clock().wall());
    return test::ask(provider_->port(), "POST", "/refund",
                     {{"webhook-id", head.id},
                      {"webhook-timestamp", head.timestamp},
                      {"webhook-signature", head.signature},
                      {"Idempotency-Key", key}},
                     body)
        .status;
  };
  EXPECT_EQ(refund("1", "evt_none", 5), 400);
  EXPECT_EQ(refund("1", event, 501), 400);
  EXPECT_EQ(refund("1", event, 300), 200);
  EXPECT_EQ(refund("1", event, 300), 200) << "the same again";
  EXPECT_EQ(refund("1", event, 200), 400) << "another amount";
  EXPECT_EQ(refund("2", event, 201), 400) << "more than is left";
  EXPECT_EQ(refund("2", event, 200), 200);
  EXPECT_EQ(money("given_back"), 500);
}

TEST_F(Simulated, PaysEveryNewOrderOfTheShop) {
  begin_both({.price = 500, .currency = "CNY"}, quick(), true);
  std::vector<std::string> ids;
  for (int i = 0; i < 20; ++i)
    ids.push_back(buy(fmt::format("b{}", i), "k", R"({"units":2})").text("id"));
  for (int i = 0; i < 20; ++i)
    EXPECT_TRUE(test::comes_true([&] {
      return state(fmt::format("b{}", i), ids[static_cast<std::size_t>(i)]) == "paid";
    })) << i;
  EXPECT_EQ(money("paid"), 20'000) << "each once";
}

TEST(PayingHabits, AreReadAndFollowed) {
  const auto mixed = PayingHabits::of("pay=3, never=1");
  int never = 0;
  for (int i = 0; i < 4000; ++i) never += mixed.choose() == Paying::never;
  EXPECT_GT(never, 700);
  EXPECT_LT(never, 1300);
  EXPECT_EQ(PayingHabits::of("late").choose(), Paying::late);
  for (const char* const words :
       {"", "soon", "pay=", "pay=x", "pay=-1", "pay=0", "pay,,late", "pay=99999999", "=1"})
    EXPECT_THROW(PayingHabits::of(words), Error) << words;
}

}  // namespace
}  // namespace sluice::server
