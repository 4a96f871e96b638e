// What the service sends: messages of orders to the shop, refunds to providers.
#include "server/messenger.hpp"

#include <sqlite3/soci-sqlite3.h>

#include <algorithm>
#include <map>
#include <set>

#include "sale/sql/soci.hpp"
#include "server/raw_server.hpp"
#include "server/receiver.hpp"
#include "server/shop_fixture.hpp"
#include "sluice/metrics.hpp"

namespace sluice::server {
namespace {

using test::RawServer;
using test::Receiver;

const WebhookKeys message_secrets{{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}};

class Messages : public ShopTest {
 protected:
  ServiceOptions sending() const {
    auto how = options();
    how.shop.worker.claim_after = 60ms;
    how.providers = {acme_};
    how.messenger.every = 5ms;
    how.messenger.http.allows_private = true;
    return how;
  }
  void begin_sending_to(const std::string& url) {
    auto how = sending();
    how.messenger.messages = MessageTarget{url, message_secrets};
    begin({paid_tea(100)}, std::move(how));
  }
  void begin_refunding_at(const std::string& url) {
    auto how = sending();
    how.messenger.refunds = {{acme_, url}};
    begin({paid_tea(100)}, std::move(how));
  }

  /// Buys, and pays as soon as the order is in the database.
  SaleOrder paid(std::string_view buyer, std::int64_t units = 1,
                 const std::string& sale = "tea") const {
    const auto body = fmt::format(R"({{"units":{}}})", units);
    const auto number = buy(buyer, "k", body, sale).text("number");
    const auto orders = open_order_store(options().shop.orders);
    EXPECT_TRUE(test::comes_true([&] { return orders->find_number(sale, number).has_value(); }));
    const Payment payment{.provider = "acme",
                          .event = "evt_" + number,
                          .sale = sale,
                          .order = number,
                          .amount = 500 * units,
                          .currency = "CNY"};
    EXPECT_EQ(service_->shop().find(sale)->sale().pay(*orders, payment).state,
              PaymentState::applied);
    return *orders->find_number(sale, number);
  }
  UnitsResult cancel(const SaleOrder& order, std::int64_t units, const std::string& key,
                     const std::string& sale = "tea") const {
    const auto orders = open_order_store(options().shop.orders);
    return service_->shop().find(sale)->sale().cancel_units(*orders, order.buyer, order.request,
                                                            units, key);
  }
  /// Two sales with much to send, and nobody who sends it.
  void leave_much_to_send() {
    begin(two_sales(), sending());
    for (int i = 0; i < of_each; ++i)
      for (const auto* const sale : {"tea", "nut"}) {
        const auto order = paid(fmt::format("b{}", i), 1, sale);
        cancel(order, 0, "k", sale);
      }
  }
  static std::vector<SaleDefinition> two_sales() {
    auto nut = paid_tea(100);
    nut.name = "nut";
    nut.number_type = "NUT";
    return {paid_tea(100), nut};
  }
  /// The longest row of things of one sale that came one after another.
  static std::ptrdiff_t longest_turn(const std::vector<Receiver::Got>& got,
                                     const std::function<std::string(const Receiver::Got&)>& sale) {
    std::ptrdiff_t longest = 0;
    for (auto begins = got.begin(); begins != got.end();) {
      const auto ends = std::find_if(begins, got.end(),
                                     [&](const auto& one) { return sale(one) != sale(*begins); });
      longest = std::max(longest, ends - begins);
      begins = ends;
    }
    return longest;
  }
  static constexpr int of_each = 8;
  /// Makes what failed due now, as time would.
  void hurry(const SaleOrder& order) const {
    const auto orders = open_order_store(options().shop.orders);
    auto& money = orders->payments();
    for (const auto& message : money.messages_of("tea", order.id))
      money.message_failed("tea", message, 0s);
    for (const auto& refund : money.refunds_of("tea", order.id))
      money.refund_failed(refund, "hurried", 0s);
  }
  /// While what fails is sent again at once.
  template <class Condition>
  bool comes_true_hurried(const SaleOrder& order, const Condition& holds) const {
    return test::comes_true([&] { return holds() || (hurry(order), false); });
  }
  PaymentTotals totals() const {
    return open_order_store(options().shop.orders)->payments().totals("tea");
  }

  std::shared_ptr<const HmacPayments> acme_ = std::make_shared<HmacPayments>(
      "acme", WebhookKeys{{"whsec_bWFueSBieXRlcyBvZiBhIHByb3ZpZGVyJ3Mgc2VjcmV0"}});
};

std::vector<std::string> types_of(const std::vector<Receiver::Got>& got) {
  std::vector<std::string> types;
  for (const auto& one : got) types.push_back(one.text("type"));
  return types;
}

TEST_F(Messages, AChangeOfAnOrderIsTold) {
  Receiver shop;
  begin_sending_to(shop.url());
  const auto order = paid("ann", 2);
  ASSERT_TRUE(test::comes_true([&] { return shop.count() == 1; }));
  const auto got = shop.got().front();
  EXPECT_EQ(message_secrets.refuse(got.head, got.body, system_clock().wall()), "");
  EXPECT_EQ(got.media, "application/cloudevents+json");
  EXPECT_EQ(got.text("type"), "order.paid");
  EXPECT_EQ(got.text("source"), "/v1/sales/tea");
  EXPECT_TRUE(got.text("id").starts_with(fmt::format("{}-1-", order.id))) << got.text("id");
  const auto event = got.json();
  EXPECT_EQ(*event.find("data")->find("amount")->as_integer(), 1000);
  EXPECT_EQ(*event.find("data")->find("buyer")->as_text(), "ann");
  EXPECT_TRUE(test::comes_true([&] { return totals().messages == 0; }));
}

TEST_F(Messages, V48_WhileTheTargetIsDownAllWaitInOrder) {
  Receiver shop{[](const auto&) { return 503; }};
  auto how = sending();
  how.messenger.messages = MessageTarget{shop.url(), message_secrets};
  how.messenger.senders = 1;
  begin({paid_tea(100)}, std::move(how));
  const auto order = paid("ann");
  cancel(order, 0, "k");
  ASSERT_TRUE(comes_true_hurried(order, [&] { return shop.count() >= 3; }));
  for (const auto& got : shop.got())
    EXPECT_EQ(got.head.id, shop.got().front().head.id) << "the first alone";
  shop.answers([](const auto&) { return 200; });
  ASSERT_TRUE(comes_true_hurried(order, [&] { return totals().messages == 0; }));
  const auto got = shop.got();
  EXPECT_EQ(got.back().text("type"), "order.refunding");
  EXPECT_EQ(got[got.size() - 2].text("type"), "order.paid");
}

TEST_F(Messages, ATargetSaysHowLongToWait) {
  RawServer shop{[](const std::string&) {
    return RawServer::Script{"HTTP/1.1 503 Busy\r\nRetry-After: 7200\r\nContent-Length: 0\r\n\r\n"};
  }};
  begin_sending_to(shop.url());
  const auto order = paid("ann");
  const auto orders = open_order_store(options().shop.orders);
  soci::session somebody{soci::sqlite3, "db=" + (folder_ / "orders.db").string()};
  somebody << "PRAGMA busy_timeout = 10000";
  EXPECT_TRUE(test::comes_true([&] {  // what waits for two hours is marked
    somebody << "UPDATE sale_messages SET state = 'dead' WHERE attempts = 1 AND "
                "due_us - at_us BETWEEN 7200000000 AND 7300000000";
    return orders->payments().messages_of("tea", order.id).front().state == "dead";
  }));
}

TEST_F(Messages, V48_After410NothingIsSentUntilReplay) {
  Receiver shop{[](const auto&) { return 410; }};
  auto how = sending();
  how.messenger.messages = MessageTarget{shop.url(), message_secrets};
  how.messenger.senders = 1;  // another could be on its way with bob's message when the 410 comes
  begin({paid_tea(100)}, std::move(how));
  const auto before = paid("ann");
  const auto orders = open_order_store(options().shop.orders);
  ASSERT_TRUE(test::comes_true([&] { return shop.count() == 1; }));
  paid("bob");
  // Whoever asks for what is due gets nothing.
  EXPECT_TRUE(test::comes_true(
      [&] { return orders->payments().messages_of("tea", before.id).front().attempts == 1; }));
  EXPECT_TRUE(
      test::comes_true([&] { return orders->payments().take_messages("tea", 10, 0s).empty(); }));
  EXPECT_EQ(shop.count(), 1U);
  EXPECT_EQ(totals().messages, 2) << "nothing is lost";
  shop.answers([](const auto&) { return 204; });
  orders->payments().replay_messages("tea");
  EXPECT_TRUE(test::comes_true([&] { return totals().messages == 0; }));
  EXPECT_EQ(shop.count(), 3U);
}

TEST_F(Messages, SendersOfTwoProcessesSendEachOnce) {
  Receiver shop;
  begin_sending_to(shop.url());
  auto how = sending();
  how.messenger.messages = MessageTarget{shop.url(), message_secrets};
  Service other{*store_, std::move(how), std::vector{paid_tea(100)}};
  constexpr int count = 12;
  for (int i = 0; i < count; ++i) cancel(paid(fmt::format("b{}", i)), 0, "k");
  ASSERT_TRUE(test::comes_true([&] { return totals().messages == 0; }));
  std::map<std::string, int> last;  // version by order
  std::set<std::string> ids;
  for (const auto& got : shop.got()) {
    EXPECT_TRUE(ids.insert(got.head.id).second) << got.head.id << " twice";
    const auto event = got.json();
    const auto version = static_cast<int>(*event.find("data")->find("version")->as_integer());
    EXPECT_EQ(++last[got.text("subject")], version);
  }
  EXPECT_EQ(ids.size(), 2U * count);
}

TEST_F(Messages, ASaleWithMuchToTellHoldsUpNoOther) {
  leave_much_to_send();
  Receiver shop;
  auto how = sending();
  how.messenger.messages = MessageTarget{shop.url(), message_secrets};
  how.messenger.senders = 1;
  begin(two_sales(), std::move(how));
  constexpr std::size_t all = 4 * of_each;  // each order is paid and taken back
  ASSERT_TRUE(test::comes_true([&] { return shop.count() >= all; }));
  EXPECT_LT(longest_turn(shop.got(), [](const auto& one) { return one.text("source"); }), of_each);
}

TEST_F(Messages, V49_AnAddressThatIsNotPublicIsSentNothing) {
  Receiver shop;
  auto how = sending();
  how.messenger.messages = MessageTarget{shop.url(), message_secrets};
  how.messenger.http.allows_private = false;
  begin({paid_tea(100)}, std::move(how));
  const auto failed = metrics().sale_message_failures.load();
  paid("ann");
  EXPECT_TRUE(test::comes_true([&] { return metrics().sale_message_failures > failed; }));
  EXPECT_EQ(shop.count(), 0U);
  EXPECT_EQ(totals().messages, 1);
}

TEST_F(Messages, V49_ARedirectIsAFailure) {
  Receiver inside;
  RawServer shop{[&](const std::string&) {
    return RawServer::Script{fmt::format(
        "HTTP/1.1 308 Moved\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n", inside.url())};
  }};
  begin_sending_to(shop.url());
  const auto failed = metrics().sale_message_failures.load();
  paid("ann");
  EXPECT_TRUE(test::comes_true([&] { return metrics().sale_message_failures > failed; }));
  EXPECT_EQ(inside.count(), 0U);
  EXPECT_EQ(totals().messages, 1);
}

TEST_F(Messages, ATargetThatIsSlowOrSpeaksNonsenseIsTriedAgain) {
  for (const char* const bytes : {"HTTP/1.1 20", "nonsense\r\n\r\n"}) {
    RawServer shop{[&](const std::string&) {
      return RawServer::Script{.bytes = bytes, .closes = *bytes == 'n'};
    }};
    auto how = sending();
    how.messenger.messages = MessageTarget{shop.url(), message_secrets};
    how.messenger.http.whole = 100ms;
    begin({paid_tea(100)}, std::move(how));
    const auto failed = metrics().sale_message_failures.load();
    paid(*bytes == 'n' ? "ann" : "bob");
    EXPECT_TRUE(test::comes_true([&] { return metrics().sale_message_failures > failed; }));
    service_.reset();
  }
  EXPECT_EQ(totals().messages, 2);
}

TEST_F(Messages, WhoAnswersWithoutEndHasTakenIt) {
  RawServer shop{[](const std::string&) {
    return RawServer::Script{
        .bytes = "HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n" + std::string(1 << 20, 'x'),
        .repeats = true};
  }};
  begin_sending_to(shop.url());
  paid("ann");
  EXPECT_TRUE(test::comes_true([&] { return totals().messages == 0; }));
}

TEST_F(Messages, WhatIsUnderWayAtTheEndIsSentByTheNextProcess) {
  auto how = sending();
  how.messenger.http.whole = 600s;
  how.messenger.http.after_stop = 1ms;
  SaleOrder order;
  {
    RawServer shop{
        [](const std::string&) { return RawServer::Script{.bytes = "HTTP", .closes = false}; }};
    how.messenger.messages = MessageTarget{shop.url(), message_secrets};
    begin({paid_tea(100)}, std::move(how));
    order = paid("ann");
    ASSERT_TRUE(test::comes_true([&] { return shop.asked() == 1; }));
    service_->stop(1s, 0s);
    service_.reset();
  }
  EXPECT_EQ(totals().messages, 1);
  Receiver shop;
  begin_sending_to(shop.url());
  EXPECT_TRUE(comes_true_hurried(order, [&] { return totals().messages == 0; }));
  EXPECT_TRUE(shop.got().back().head.id.starts_with(fmt::format("{}-1-", order.id)));
}

TEST_F(Messages, V05_ASoldOutSaleTellsThatItReopened) {
  Receiver shop;
  auto how = sending();
  how.messenger.messages = MessageTarget{shop.url(), message_secrets};
  begin({paid_tea(1, {.window = 50ms, .grace = 0us, .price = 500, .currency = "CNY"})},
        std::move(how));
  EXPECT_EQ(buy("ann", "k").status, 201);
  ASSERT_TRUE(test::comes_true([&] { return shop.count() >= 2; }));
  const auto types = types_of(shop.got());
  EXPECT_EQ(std::ranges::count(types, "order.expired"), 1);
  EXPECT_EQ(std::ranges::count(types, "sale.reopened"), 1);
  EXPECT_TRUE(test::comes_true([&] { return buy("bob", "k").status == 201; }));
}

class Refunds : public Messages {};

TEST_F(Refunds, V15_AProviderThatFailsGetsTheSameKeyUntilItTakesIt) {
  Receiver provider{[](const auto&) { return 503; }};
  begin_refunding_at(provider.url());
  const auto order = paid("ann", 5);
  EXPECT_EQ(cancel(order, 2, "two of them").refund, 1000);
  ASSERT_TRUE(comes_true_hurried(order, [&] { return provider.count() >= 3; }));
  provider.answers([](const auto&) { return 200; });
  ASSERT_TRUE(comes_true_hurried(order, [&] { return totals().refunds == 0; }));
  const auto key = provider.got().front().key;
  EXPECT_TRUE(key.starts_with("payment.") && key.ends_with(".0-1000")) << key;
  for (const auto& got : provider.got()) {
    EXPECT_EQ(got.key, key);
    EXPECT_EQ(got.text("id"), key);
    EXPECT_EQ(got.text("sale"), "tea");
    EXPECT_EQ(got.text("order"), order.number);
    EXPECT_EQ(got.text("payment"), "evt_" + order.number);
    EXPECT_EQ(got.text("currency"), "CNY");
    const auto body = got.json();
    EXPECT_EQ(*body.find("amount")->as_integer(), 1000);
    EXPECT_EQ(WebhookKeys{{"whsec_bWFueSBieXRlcyBvZiBhIHByb3ZpZGVyJ3Mgc2VjcmV0"}}.refuse(
                  got.head, got.body, system_clock().wall()),
              "");
  }
  const auto orders = open_order_store(options().shop.orders);
  EXPECT_EQ(orders->payments().refunds_of("tea", order.id).front().state, "done");
}

TEST_F(Refunds, ASaleWithManyHoldsUpNoOther) {
  leave_much_to_send();
  Receiver provider;
  auto how = sending();
  how.messenger.refunds = {{acme_, provider.url()}};
  begin(two_sales(), std::move(how));
  ASSERT_TRUE(test::comes_true([&] { return provider.count() >= 2 * of_each; }));
  EXPECT_LT(longest_turn(provider.got(), [](const auto& one) { return one.text("sale"); }),
            of_each);
}

TEST_F(Refunds, OfAProviderThatIsNotSaidHereWaitForAnotherProcess) {
  Receiver provider;
  const auto other = std::make_shared<const HmacPayments>(
      "other", WebhookKeys{{"whsec_bWFueSBieXRlcyBvZiBhIHByb3ZpZGVyJ3Mgc2VjcmV0"}});
  auto how = sending();
  how.messenger.refunds = {{other, provider.url()}};
  begin({paid_tea(100)}, std::move(how));
  const auto order = paid("ann");
  cancel(order, 0, "k");
  service_.reset();
  EXPECT_EQ(provider.count(), 0U);
  const auto orders = open_order_store(options().shop.orders);
  EXPECT_EQ(orders->payments().refunds_of("tea", order.id).front().attempts, 0);
  begin_refunding_at(provider.url());
  EXPECT_TRUE(test::comes_true([&] { return totals().refunds == 0; }));
  EXPECT_EQ(provider.count(), 1U);
}

}  // namespace
}  // namespace sluice::server
