// A sale with buckets, served: outside it is one sale.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <set>
#include <thread>

#include "server/operate_fixture.hpp"
#include "sluice/bucketed_sale.hpp"
#include "sluice/number.hpp"
#include "sluice/sale_recovery.hpp"

namespace sluice::server {
namespace {

class ServedBuckets : public OperateTest {
 protected:
  static constexpr std::int64_t count = 4;

  ServiceOptions in_buckets() const {
    auto how = with_keys();
    how.shop.buckets = {{"tea", count}};
    how.shop.worker.claim_after = 60ms;
    return how;
  }
  void begin_in_buckets(SaleDefinition sale) { begin({std::move(sale)}, in_buckets()); }

  Answer shop(std::string_view method, std::string_view path, std::string_view body = {}) const {
    return as(till_, method, path, body);
  }
  JsonValue sale() const { return ask("GET", "/v1/sales/tea").json(); }
  /// The path of an order that the database has.
  std::string bought(std::string_view buyer, std::string_view body = {}) const {
    const auto path = "/v1/sales/tea/orders/" + buy(buyer, "k", body).text("id");
    EXPECT_TRUE(test::comes_true([&] { return shop("GET", path).is_recorded(); }));
    return path;
  }
  Payment payment_of(const std::string& path) const {
    const auto shown = shop("GET", path);
    return {.provider = "acme",
            .event = "evt_" + shown.text("number"),
            .sale = "tea",
            .order = shown.text("number"),
            .amount = integer(shown.json(), {"due"}),
            .currency = "CNY"};
  }
  PaymentState pay(const Payment& payment) const {
    const auto orders = open_order_store(options().shop.orders);
    return service_->shop().find("tea")->sale().pay(*orders, payment).state;
  }
  PaymentState pay(const std::string& path) const { return pay(payment_of(path)); }
  /// Ids of all orders, page after page, until there are so many.
  std::multiset<std::string> all_ids(std::size_t many) const {
    std::multiset<std::string> ids;
    std::string after;
    test::comes_true([&] {
      const auto path = "/v1/sales/tea/all-orders?most=7&after=" + after;
      const auto page = shop("GET", path);
      EXPECT_EQ(page.status, 200) << page.body;
      const auto json = page.json();
      for (const auto& order : *json.find("orders")->as_array())
        ids.insert(*order.find("id")->as_text());
      after = page.text("after");
      return ids.size() >= many;
    });
    return ids;
  }
  bool is_sound() const {
    const auto answer = post("/v1/operate/sales/tea/audit");
    EXPECT_EQ(answer.status, 200) << answer.body;
    const auto json = answer.json();
    const auto* const sound = json.find("sound");
    EXPECT_TRUE(sound && sound->as_bool() && *sound->as_bool()) << answer.body;
    return sound && sound->as_bool() && *sound->as_bool();
  }
};

TEST_F(ServedBuckets, V32_EachUnitIsSoldOnceAndSoldOutIsSaidAtTheEndAlone) {
  begin_in_buckets(tea(100));
  std::map<std::string, int> admitted;
  std::set<std::string> numbers;
  for (int i = 0; i < 130; ++i) {
    const auto buyer = fmt::format("buyer-{}", i);
    const auto answer = buy(buyer, "k");
    if (answer.status == 201) {
      ++admitted[buyer];
      numbers.insert(answer.text("number"));
      EXPECT_EQ(answer.text("sale"), "tea");
      continue;
    }
    EXPECT_EQ(answer.problem(), "sold-out") << answer.body;
    EXPECT_EQ(admitted.size(), 100U) << "nobody hears of it while a unit is left";
  }
  EXPECT_EQ(admitted.size(), 100U);
  EXPECT_EQ(numbers.size(), 100U);
  const auto status = sale();
  EXPECT_EQ(integer(status, {"sold"}), 100);
  EXPECT_EQ(integer(status, {"left"}), 0);
  EXPECT_EQ(integer(status, {"buckets"}), count);
  EXPECT_EQ(integer(status, {"in_transfer"}), 0);
  const auto ids = all_ids(100);
  EXPECT_EQ(ids.size(), 100U);
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), 100U) << "none stands twice";
  EXPECT_TRUE(is_sound());
}

TEST_F(ServedBuckets, V32_ManyWhoComeTogetherGetEachUnitOnce) {
  begin_in_buckets(tea(100));
  std::atomic<int> sold = 0;
  {
    std::vector<std::jthread> crowd;
    for (int t = 0; t < 8; ++t)
      crowd.emplace_back([&, t] {
        for (int i = 0; i < 20; ++i) {
          const auto buyer = fmt::format("buyer-{}-{}", t, i);
          auto answer = buy(buyer, "k");
          while (answer.status == 503) answer = buy(buyer, "k");
          if (answer.status == 201)
            ++sold;
          else
            EXPECT_EQ(answer.problem(), "sold-out");
        }
      });
  }
  EXPECT_EQ(sold, 100);
  EXPECT_EQ(integer(sale(), {"sold"}), 100);
}

TEST_F(ServedBuckets, ARepeatGetsTheSameOrderAndABuyerHasOne) {
  begin_in_buckets(tea(100));
  const auto first = buy("ann", "k");
  EXPECT_EQ(first.status, 201);
  const auto again = buy("ann", "k");
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(again.text("id"), first.text("id"));
  EXPECT_EQ(buy("ann", "k2").problem(), "already-bought");
}

TEST_F(ServedBuckets, ABucketIsNoSaleAtAnyDoor) {
  begin_in_buckets(tea(100));
  const auto looks_again = [&] {  // the service looks for new sales meanwhile
    for (int i = 0; i < 3; ++i) service_->shop().look();
  };
  looks_again();
  for (std::int64_t i = 0; i < count; ++i) {
    const auto name = fmt::format("tea%3A{}", i);
    EXPECT_EQ(service_->shop().find(fmt::format("tea:{}", i)), nullptr);
    EXPECT_EQ(buy("ann", "k", {}, name).problem(), "no-sale");
    for (const auto* const path : {"", "/events"})
      EXPECT_EQ(ask("GET", "/v1/sales/" + name + path).problem(), "no-sale") << path;
    EXPECT_EQ(ask("GET", "/v1/sales/" + name + "/orders/1", {{"Sluice-Buyer", "ann"}}).problem(),
              "no-sale");
    EXPECT_EQ(ask("GET", "/sales/" + name).status, 404);
    EXPECT_EQ(ask("POST", "/v1/sales/" + name + "/queue", {{"Sluice-Buyer", "ann"}}).status, 404);
    EXPECT_EQ(shop("GET", "/v1/sales/" + name + "/all-orders").problem(), "no-sale");
    EXPECT_EQ(get("/v1/operate/sales/" + name + "/orders").problem(), "no-sale");
    EXPECT_EQ(post("/v1/operate/sales/" + name + "/close", R"({"confirm":"tea:0"})").problem(),
              "no-sale");
  }
  const auto all = ask("GET", "/v1/sales").json();
  EXPECT_EQ(all.find("sales")->as_array()->size(), 1U);
}

TEST_F(ServedBuckets, OrdersAreFoundPaidCancelledAndTakenBack) {
  begin_in_buckets(paid_tea(40));
  const auto ann = bought("ann", R"({"units":2})");
  const auto bob = bought("bob");
  const auto shown = shop("GET", ann);
  EXPECT_EQ(shown.text("sale"), "tea");
  EXPECT_EQ(shop("GET", "/v1/sales/tea/orders/" + shown.text("number")).text("buyer"), "ann");
  EXPECT_EQ(ask("GET", ann, {{"Sluice-Buyer", "bob"}}).problem(), "no-order");
  EXPECT_EQ(pay(ann), PaymentState::applied);
  EXPECT_EQ(shop("GET", ann).text("state"), "paid");
  EXPECT_EQ(ask("POST", bob + "/cancel", {{"Sluice-Buyer", "bob"}}).text("state"), "cancelled");
  EXPECT_EQ(integer(sale(), {"left"}), 38);
  const auto bearer = "Bearer " + till_.key;
  const auto back = ask("POST", ann + "/refund",
                        {{"Authorization", bearer}, {"Idempotency-Key", "r"}}, R"({"units":1})");
  EXPECT_EQ(back.status, 200) << back.body;
  EXPECT_EQ(integer(sale(), {"left"}), 39);
  EXPECT_TRUE(is_sound());
}

TEST_F(ServedBuckets, OperatorsSeeBucketsAndChangeTheWhole) {
  begin_in_buckets(paid_tea(40));
  for (int i = 0; i < 12; ++i) bought(fmt::format("buyer-{}", i));
  const auto state = state_where([](const JsonValue& sale) {
    return integer(sale, {"by_state", "awaiting"}) == 12 && integer(sale, {"waiting"}) == 0;
  });
  const auto& tea = state.find("sales")->as_array()->front();
  const auto& buckets = *tea.find("buckets")->as_array();
  ASSERT_EQ(buckets.size(), 4U);
  std::int64_t stock = 0;
  for (const auto& bucket : buckets) stock += integer(bucket, {"stock"});
  EXPECT_EQ(stock, 40);
  EXPECT_EQ(integer(tea, {"sold"}), 12);
  EXPECT_EQ(integer(tea, {"worker", "inserted"}), 12);

  std::set<std::string> ids;
  for (std::string after; ids.size() < 12;) {  // five at a time, over all buckets
    const auto page = get("/v1/operate/sales/tea/orders?most=5&after=" + after);
    const auto json = page.json();
    ASSERT_EQ(page.status, 200) << page.body;
    for (const auto& order : *json.find("orders")->as_array())
      EXPECT_TRUE(ids.insert(*order.find("id")->as_text()).second) << "twice";
    after = page.text("next");
    if (after.empty()) break;
  }
  EXPECT_EQ(ids.size(), 12U);
  const auto his = get("/v1/operate/sales/tea/orders?q=buyer-3").json();
  EXPECT_EQ(his.find("orders")->as_array()->size(), 1U);
  EXPECT_EQ(get("/v1/operate/sales/tea/orders?after=9:1").problem(), "bad-parameter");
  for (const auto* const list : {"dead-letters", "payments", "messages"})
    EXPECT_EQ(get(fmt::format("/v1/operate/sales/tea/{}", list)).status, 200) << list;

  EXPECT_EQ(post("/v1/operate/sales/tea/stock", R"({"confirm":"tea","stock":50})").status, 204);
  EXPECT_EQ(integer(sale(), {"stock"}), 50);
  EXPECT_EQ(post("/v1/operate/sales/tea/stock", R"({"confirm":"tea","stock":11})").status, 409);
  EXPECT_EQ(post("/v1/operate/sales/tea/stock", R"({"confirm":"tea","stock":12})").status, 204);
  EXPECT_EQ(buy("zoe", "k").problem(), "sold-out");
  EXPECT_EQ(post("/v1/operate/sales/tea/close", R"({"confirm":"tea"})").status, 204);
  EXPECT_EQ(buy("zoe", "k").problem(), "closed");
  EXPECT_TRUE(is_sound());
}

TEST_F(ServedBuckets, ALetterThatIsDeadIsNamedWithItsBucket) {
  begin_in_buckets(tea(40));
  const auto third = service_->shop().find("tea")->sale().parts()[3]->definition().name;
  store_->run({"XADD", "{" + third + "}:orders", "*", "what", "nonsense"}).get();
  std::string id;
  ASSERT_TRUE(test::comes_true([&] {
    const auto json = get("/v1/operate/sales/tea/dead-letters").json();
    const auto& letters = *json.find("letters")->as_array();
    if (letters.empty()) return false;
    id = *letters.front().find("id")->as_text();
    return true;
  }));
  EXPECT_TRUE(id.starts_with("3:")) << id;
  const auto settle = [&](std::string word) {
    return post("/v1/operate/sales/tea/dead-letters/" + word + "/settle", R"({"confirm":"tea"})");
  };
  EXPECT_EQ(settle("0" + id.substr(1)).problem(), "no-letter") << "of another bucket";
  EXPECT_EQ(settle(id.substr(2)).problem(), "no-letter") << "of none";
  EXPECT_EQ(settle(id).status, 200);
}

TEST_F(ServedBuckets, AServiceThatBeginsAgainFindsTheWholeSale) {
  begin_in_buckets(tea(40));
  const auto first = buy("ann", "k");
  begin({}, with_keys());  // which is told nothing of buckets
  EXPECT_EQ(buy("ann", "k").text("id"), first.text("id"));
  EXPECT_EQ(integer(sale(), {"buckets"}), count);
  begin_in_buckets(tea(40));  // joins it, in the same words
  EXPECT_EQ(buy("ann", "k").text("id"), first.text("id"));
}

TEST_F(ServedBuckets, OtherWordsForTheSameSaleAreRefused) {
  begin_in_buckets(tea(40));
  auto without = with_keys();
  EXPECT_THROW(begin({tea(40)}, without), Error) << "no buckets";
  auto other = in_buckets();
  other.shop.buckets["tea"] = 3;
  EXPECT_THROW(begin({tea(40)}, other), Error) << "another number of them";
  begin({}, with_keys());
  EXPECT_EQ(integer(sale(), {"buckets"}), count) << "and nothing was made";
}

TEST_F(ServedBuckets, AStoreThatCameBackEmptyIsRecoveredWholeWhenAPersonSaysSo) {
  begin_in_buckets(tea(40));
  for (int i = 0; i < 12; ++i) bought(fmt::format("buyer-{}", i));
  service_.reset();
  store_ = engine::open_embedded();
  begin({}, with_keys());
  EXPECT_NE(ask("GET", "/v1/sales/tea").status, 200) << "it may be another store";
  const auto orders = open_order_store(options().shop.orders);
  recover_buckets(*store_, "tea", *orders, {.new_store = true});
  EXPECT_TRUE(
      test::comes_true([&] { return ask("GET", "/v1/sales/tea").text("state") == "open"; }));
  EXPECT_EQ(integer(sale(), {"sold"}), 12);
  EXPECT_EQ(integer(sale(), {"left"}), 28);
  EXPECT_EQ(buy("buyer-3", "k").status, 200);
}

/// A backup of the database that lacks the last orders, and a store that was started again or has
/// an archived sale: neither ends a service that begins then, and other sales are sold.
TEST_F(ServedBuckets, AnOlderDatabaseKeepsNoOtherSaleFromBeingServed) {
  const SaleDefinition milk{.name = "milk", .stock = 9, .number_type = "MILK"};
  const auto database = folder_ / "orders.db";
  const auto backup = folder_ / "backup.db";
  for (const bool is_archived : {false, true}) {
    SCOPED_TRACE(is_archived);
    service_.reset();
    store_ = engine::open_embedded();
    for (const auto* const end : {"", "-wal", "-shm"})
      std::filesystem::remove(database.string() + end);
    begin({paid_tea(40), milk}, in_buckets());
    pay(bought("early"));
    service_.reset();
    std::filesystem::copy(database, backup, std::filesystem::copy_options::overwrite_existing);
    begin({paid_tea(40), milk}, in_buckets());
    std::vector<Payment> late;
    for (int i = 0; i < 5; ++i) late.push_back(payment_of(bought(fmt::format("late-{}", i))));
    for (const auto& payment : late) pay(payment);
    service_.reset();
    if (is_archived) {
      const auto orders = open_order_store(options().shop.orders);
      auto sale = *BucketedSale::load(*store_, "tea").get();
      sale.close(*orders);
      for (std::int64_t i = 0; i < count; ++i) EXPECT_TRUE(sale.bucket(i).archive(*orders));
    } else {
      for (std::int64_t i = 0; i < count; ++i)
        store_->run({"HSET", fmt::format("{{tea:{}}}:sale", i), "store", "gone"}).get();
    }
    std::filesystem::rename(backup, database);
    begin({paid_tea(40), milk}, in_buckets());
    EXPECT_TRUE(test::comes_true([&] { return buy("ann", "k", {}, "milk").status == 201; }));
    const auto state = is_archived ? "archived" : "open";
    EXPECT_TRUE(test::comes_true([&] {
      return ask("GET", "/v1/sales/tea").text("state") == state;
    })) << ask("GET", "/v1/sales/tea").body;
    for (const auto& payment : late) EXPECT_NO_THROW(pay(payment)) << "its provider tells it again";
    if (!is_archived) continue;
    const auto is_trouble = [&](int value) {
      const auto line = fmt::format("sluice_service_trouble{{trouble=\"sale\"}} {}\n", value);
      return test::comes_true([&] {
        return test::ask(service_->health_port(), "GET", "/metrics").body.contains(line);
      });
    };
    EXPECT_TRUE(is_trouble(1)) << "the database of an archived sale came back from before";
    const auto orders = open_order_store(options().shop.orders);
    for (int time = 0; time < 2; ++time) recover_buckets(*store_, "tea", *orders);
    EXPECT_TRUE(is_trouble(0)) << "a person has accepted it";
    EXPECT_EQ(orders->payments().list("", PaymentState::flagged, 9).size(), late.size())
        << "the database has lost their orders";
  }
}

TEST_F(ServedBuckets, AWaitingRoomLetsInForTheUnitsOfAllBuckets) {
  auto how = in_buckets();
  WaitingRoomDefinition room{.rate = 1000, .inside = 1};
  room.name = "tea";
  how.rooms = {room};
  begin({tea(count)}, std::move(how));
  std::vector<std::string> tickets;
  const auto name = [](std::int64_t i) { return fmt::format("buyer-{}", i); };
  for (std::int64_t i = 0; i <= count; ++i)
    tickets.push_back(
        ask("POST", "/v1/sales/tea/queue", {{"Sluice-Buyer", name(i)}}).text("ticket"));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto& ticket = tickets[static_cast<std::size_t>(i)];
    EXPECT_EQ(buy(name(i), "k").problem(), "not-inside");
    EXPECT_EQ(ask("POST", "/v1/sales/tea/orders",
                  {{"Sluice-Buyer", name(i)}, {"Sluice-Ticket", ticket}, {"Idempotency-Key", "k"}})
                  .status,
              201)
        << i;
  }
  EXPECT_TRUE(test::comes_true([&] {
    const auto last = ask("GET", "/v1/sales/tea/queue",
                          {{"Sluice-Buyer", name(count)}, {"Sluice-Ticket", tickets.back()}});
    return integer(last.json(), {"units_left"}) == 0;
  }));
}

// Each bucket has numbers of its own; who needs one series gives it to the orders of the database.
// A program that dies before it has noted a number gets the same one again.
TEST_F(ServedBuckets, OneSeriesOverAllBucketsIsGivenToOrdersThatAreRecorded) {
  constexpr std::size_t orders = 20;
  begin_in_buckets(tea(40));
  for (std::size_t i = 0; i < orders; ++i) bought(fmt::format("buyer-{}", i));
  std::map<std::string, std::string> invoices;  // by the order's id: what the program has noted
  std::string after;
  int killed = 0;
  while (invoices.size() < orders) {
    Series series{*store_, "INV"};
    const auto page = shop("GET", "/v1/sales/tea/all-orders?most=3&after=" + after);
    ASSERT_EQ(page.status, 200) << page.body;
    const auto json = page.json();
    bool dies = false;
    for (const auto& order : *json.find("orders")->as_array()) {
      const auto& id = *order.find("id")->as_text();
      const auto number = series.next_of(id, 1).get();
      ASSERT_TRUE(number);
      if ((dies = killed < 5 && ++killed % 2 == 1)) break;
      invoices.emplace(id, number->front().text);
    }
    if (!dies) after = page.text("after");
  }
  std::set<std::string> numbers;
  for (const auto& [id, number] : invoices) numbers.insert(number.substr(number.size() - 4));
  EXPECT_EQ(numbers.size(), orders);
  EXPECT_EQ(*numbers.begin(), "0001");
  EXPECT_EQ(*numbers.rbegin(), fmt::format("{:04}", orders)) << "without a gap";
}

// In a cluster they lie on servers of their own, which may be the only ones that lost something.
TEST_F(ServedBuckets, ListsOfSalesThatAServerLostAreMadeAgain) {
  begin_in_buckets(tea(40));
  bought("ann");
  for (const auto* const list : {"sluice:sales", "sluice:sales:names", "sluice:sales:types"}) {
    service_->shop().look();
    store_->run({"DEL", list}).get();
    service_->shop().look();
    EXPECT_TRUE(is_sound()) << list;
  }
  EXPECT_EQ(store_->run({"GET", "sluice:sales"}).get().as_text(), "4") << "a new sale gets its own";
}

}  // namespace
}  // namespace sluice::server
