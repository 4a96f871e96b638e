// Payments of a sale with buckets, and what is told of it: outside it is one sale.
#include <algorithm>

#include "server/operate_fixture.hpp"
#include "server/receiver.hpp"
#include "sluice/bucketed_sale.hpp"

namespace sluice::server {
namespace {

using test::Receiver;

constexpr std::int64_t buckets = 4;

class MoneyOfBuckets : public OperateTest {
 protected:
  ServiceOptions in_buckets() const {
    auto how = with_keys();
    how.shop.buckets = {{"tea", buckets}};
    how.shop.worker.claim_after = 60ms;
    how.providers = {acme_};
    how.messenger.every = 5ms;
    how.messenger.senders = 1;
    how.messenger.http.allows_private = true;
    return how;
  }
  void begin_sending_to(const Receiver& shop, std::vector<SaleDefinition> sales) {
    auto how = in_buckets();
    how.messenger.messages =
        MessageTarget{shop.url(), WebhookKeys{{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}}};
    begin(std::move(sales), std::move(how));
  }

  std::unique_ptr<OrderStore> database() const { return open_order_store(options().shop.orders); }

  /// A buyer of that bucket.
  std::string buyer_of(std::int64_t bucket) const {
    auto& sale = *service_->shop().find("tea")->sale().bucketed();
    for (int i = 0;; ++i) {
      auto name = fmt::format("b{}", i);
      if (&sale.bucket_of({name}) == &sale.bucket(bucket)) return name;
    }
  }
  /// Of an order that the database has.
  std::string bought(std::string_view buyer, std::string_view sale = "tea") const {
    const auto number = buy(buyer, "k", {}, sale).text("number");
    EXPECT_TRUE(test::comes_true([&] { return shown(number, sale).is_recorded(); })) << buyer;
    return number;
  }
  Answer shown(std::string_view order, std::string_view sale = "tea") const {
    return as(till_, "GET", fmt::format("/v1/sales/{}/orders/{}", sale, order));
  }
  Answer cancel(std::string_view buyer, std::string_view order,
                std::string_view sale = "tea") const {
    return ask("POST", fmt::format("/v1/sales/{}/orders/{}/cancel", sale, order),
               {{"Sluice-Buyer", std::string{buyer}}});
  }
  Answer tell_payment(const std::string& sale, const std::string& number) const {
    const Payment payment{.provider = "acme",
                          .event = "evt_" + number,
                          .sale = sale,
                          .order = number,
                          .amount = 500,
                          .currency = "CNY"};
    const auto body = HmacPayments::body_of(payment);
    const auto head = acme_->sign(body, payment.event, system_clock().wall());
    return ask("POST", "/v1/payments/acme",
               {{"webhook-id", head.id},
                {"webhook-timestamp", head.timestamp},
                {"webhook-signature", head.signature}},
               body);
  }

  std::shared_ptr<const HmacPayments> acme_ = std::make_shared<HmacPayments>(
      "acme", WebhookKeys{{"whsec_bWFueSBieXRlcyBvZiBhIHByb3ZpZGVyJ3Mgc2VjcmV0"}});
};

std::int64_t count_of(const Receiver& shop, std::string_view type) {
  return std::ranges::count_if(shop.got(),
                               [&](const auto& got) { return got.text("type") == type; });
}

// The number says which bucket it is, so that money is not lost where another one is named.
TEST_F(MoneyOfBuckets, V09_APaymentPaysItsOrderWhetherItNamesTheSaleOrAnyBucket) {
  begin({paid_tea(40)}, in_buckets());
  for (std::int64_t i = 0; i < buckets; ++i) {
    const auto number = bought(buyer_of(i));
    const auto named = i == 0 ? std::string{"tea"} : fmt::format("tea:{}", (i + 2) % buckets);
    for (int again = 0; again < 2; ++again)
      EXPECT_EQ(tell_payment(named, number).status, 204) << named;
    EXPECT_EQ(shown(number).text("state"), "paid") << named << " for " << number;
  }
}

TEST_F(MoneyOfBuckets, V10_APaymentOfAWholeSaleThatIsNotLoadedIsToldAgain) {
  begin({}, in_buckets());
  database()->add_sale("rare:0", 10);  // another process is about to enter it
  const auto told = tell_payment("rare", "RA202601020001");
  EXPECT_EQ(told.problem(), "recovering") << told.body;
  EXPECT_TRUE(told.has("Retry-After"));
  EXPECT_TRUE(database()->payments().list("rare", PaymentState::waiting, 10).empty());
}

TEST_F(MoneyOfBuckets, V05_MessagesNameTheSaleAndItReopensOnce) {
  Receiver shop;
  begin_sending_to(shop, {paid_tea(buckets + 1)});
  std::vector<std::string> numbers;
  for (std::int64_t i = 0; i < buckets; ++i) numbers.push_back(bought(buyer_of(i)));
  EXPECT_EQ(cancel(buyer_of(1), numbers[1]).status, 200);
  ASSERT_TRUE(test::comes_true([&] { return count_of(shop, "order.cancelled") == 1; }));
  EXPECT_EQ(count_of(shop, "sale.reopened"), 0) << "a bucket was empty, the sale was not";

  bought("dan");
  bought("eve");
  EXPECT_EQ(buy("fay", "k").problem(), "sold-out");
  EXPECT_EQ(cancel(buyer_of(2), numbers[2]).status, 200);
  EXPECT_EQ(cancel(buyer_of(3), numbers[3]).status, 200);
  ASSERT_TRUE(test::comes_true([&] {
    return count_of(shop, "order.cancelled") == 3 && count_of(shop, "sale.reopened") == 1;
  }));
  for (const auto& got : shop.got()) {
    const auto json = got.json();
    EXPECT_EQ(*member(json, {"data", "sale"})->as_text(), "tea") << got.body;
    EXPECT_TRUE(got.text("source").starts_with("/v1/sales/tea#")) << got.body;
    EXPECT_TRUE(got.text("type") != "sale.reopened" || got.text("subject") == "tea") << got.body;
  }
}

TEST_F(MoneyOfBuckets, V48_WhoAnswersGoneHearsOfNoBucketUntilItIsReplayed) {
  Receiver shop{
      [](const auto& got) { return got.text("source").starts_with("/v1/sales/tea") ? 410 : 204; }};
  auto pea = paid_tea(10);
  pea.name = "pea";
  pea.number_type = "PEA";
  begin_sending_to(shop, {paid_tea(40), pea});
  const auto hear_of_pea = [&](std::string_view buyer) {
    const auto before = shop.count();
    EXPECT_EQ(cancel(buyer, bought(buyer, "pea"), "pea").status, 200);
    EXPECT_TRUE(test::comes_true([&] { return shop.count() > before; })) << buyer;
  };
  EXPECT_EQ(cancel(buyer_of(0), bought(buyer_of(0))).status, 200);
  ASSERT_TRUE(test::comes_true([&] { return shop.count() == 1; }));
  for (std::int64_t i = 1; i < buckets; ++i)
    EXPECT_EQ(cancel(buyer_of(i), bought(buyer_of(i))).status, 200);
  for (const auto* const buyer : {"ann", "bob", "cid"}) hear_of_pea(buyer);  // rounds of all sales
  EXPECT_EQ(shop.count(), 4U) << "one of tea, three of pea";
  shop.answers([](const auto&) { return 204; });
  EXPECT_EQ(post("/v1/operate/sales/tea/messages/replay").status, 200);
  EXPECT_TRUE(test::comes_true([&] { return shop.count() == 4 + buckets; }));
}

TEST_F(MoneyOfBuckets, SV20_OperatorsSeeAndOperateItAsOneSale) {
  Receiver shop{[](const Receiver::Got&) { return 500; }};
  begin_sending_to(shop, {paid_tea(40)});
  std::vector<std::string> numbers;
  for (std::int64_t bucket = 0; bucket < buckets; ++bucket)
    numbers.push_back(bought(buyer_of(bucket)));
  for (const auto& number : numbers) EXPECT_EQ(tell_payment("tea", number).status, 204);
  const auto look = [&](std::string_view path) {
    return get(fmt::format("/v1/operate/sales/tea{}", path)).json();
  };
  const auto rows = [&](std::string_view path, const char* name) {
    return *look(path).find(name)->as_array();
  };
  std::vector<std::string> listed;
  std::string after;
  do {
    const auto page = look("/orders?state=paid&most=3&after=" + after);
    for (const auto& order : *page.find("orders")->as_array())
      listed.push_back(*order.find("id")->as_text());
    after = page.find("next")->is_null() ? "" : *page.find("next")->as_text();
  } while (!after.empty());
  EXPECT_EQ(listed.size(), numbers.size());
  EXPECT_TRUE(std::ranges::is_sorted(listed, std::greater{})) << "newest first, over all buckets";
  std::int64_t amount = 0;
  for (const auto& day : rows("/totals", "days")) amount += integer(day, {"amount"});
  EXPECT_EQ(amount, 500 * buckets);
  ASSERT_TRUE(test::comes_true(
      [&] { return rows("/messages?state=failing", "messages").size() == numbers.size(); }));
  for (const auto& message : rows("/messages?state=failing", "messages"))
    EXPECT_EQ(post(fmt::format("/v1/operate/sales/tea/messages/{}/resend",
                               *message.find("id")->as_text()))
                  .status,
              200);
  const auto order = look("/orders/" + numbers.back());
  const auto id = *order.find("id")->as_text();
  ASSERT_EQ(order.find("payments")->as_array()->size(), 1U);
  EXPECT_EQ(post(fmt::format("/v1/operate/sales/tea/messages/{}:1/resend", id)).status, 200)
      << "as its page names it, without a bucket";
  EXPECT_EQ(ask("POST", fmt::format("/v1/operate/sales/tea/orders/{}/refund", id),
                {{"Authorization", "Bearer " + ann_.key}, {"Idempotency-Key", "1"}},
                R"({"confirm":"tea","reason":"ill"})")
                .text("state"),
            "refunding");
}

}  // namespace
}  // namespace sluice::server
