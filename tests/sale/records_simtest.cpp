// Orders in the store are read, found, written and removed whole.
#include <gtest/gtest.h>

#include <set>

#include "engine/embedded_store.hpp"
#include "sale/records.hpp"
#include "sluice/order_store.hpp"
#include "sluice/order_worker.hpp"
#include "sluice/sale_audit.hpp"

namespace sluice::sale {
namespace {

using namespace std::chrono_literals;

constexpr WallTime noon{1'767'369'600s};

TEST(OrderText, IsReadAsItIsWritten) {
  const SaleOrder order{.number = "MT202601020001",
                        .id = ((1'767'369'600LL - 1'704'067'200) << 32) | (1 << 20 | 1),
                        .units = 2,
                        .buyer = {"ann"},
                        .n = 3,
                        .issued_at = noon + 5us,
                        .request = {"a b\nc"}};
  EXPECT_EQ(text_of(order), "a 3 1048577 MT202601020001 2 1767369600000005 a b\nc");
  EXPECT_EQ(order_of(text_of(order), "ann"), order);
  auto other = order;
  other.state = OrderState::cancelled;
  EXPECT_EQ(order_of(text_of(other), "ann"), other);
  other.id += 1LL << 32;
  EXPECT_THROW(text_of(other), Error) << "an id of another second";
  for (const auto* const text :
       {"", "rubbish", "x 3 1 MT1 2 1767369600000005 r", "a 0 1 MT1 2 1767369600000005 r",
        "a 3 1 MT1 0 1767369600000005 r", "a 3 1 MT1 2 1767369600000005 ", "a 3 1 MT1 2 5 r",
        "a 3 1  2 1767369600000005 r", "a 3 -1 MT1 2 1767369600000005 r",
        "a 3 4294967296 MT1 2 1767369600000005 r", "aa 3 1 MT1 2 1767369600000005 r",
        "a 3 1 MT1 2 99999999999999999 r"})
    EXPECT_FALSE(order_of(text, "ann")) << text;
  EXPECT_FALSE(order_of(text_of(order), ""));
}

class RecordsTest : public testing::Test {
 protected:
  SaleOrder buy(const std::string& buyer, const std::string& request, std::int64_t units = 1) {
    return *sale_.buy({buyer}, {request}, units).get().order;
  }
  std::set<std::string> numbers_in(Records& records, std::size_t most) {
    std::set<std::string> numbers;
    std::string from;
    do {
      const auto page = records.scan(from, most).get();
      for (const auto& buyer : page.buyers) numbers.insert(buyer.latest.number);
      for (const auto& order : page.earlier) numbers.insert(order.number);
      for (const auto& damaged : page.damaged) numbers.insert(damaged);
      from = page.next;
    } while (!from.empty());
    return numbers;
  }
  /// The same sale in a store that lost everything.
  struct Lost {
    explicit Lost(const SaleDefinition& definition)
        : sale(Sale::create(*store, definition).get()), records(*store, definition) {}
    std::int64_t put(std::span<const SaleOrder> orders) {
      store->run({"HSET", "{s}:sale", "recovering", "token"}).get();
      return records.put(orders, "token").get();
    }
    VirtualClock clock{noon};
    std::unique_ptr<Store> store = engine::open_embedded({.clock = &clock});
    Sale sale;
    Records records;
  };

  VirtualClock clock_{noon};
  std::unique_ptr<Store> store_ = engine::open_embedded({.clock = &clock_});
  const SaleDefinition definition_{.name = "s", .stock = 5000, .limit = 0, .number_type = "MT"};
  Sale sale_ = Sale::create(*store_, definition_).get();
  Records records_{*store_, definition_};
};

TEST_F(RecordsTest, EveryOrderIsScannedAndFound) {
  std::vector<SaleOrder> orders;
  std::set<std::string> numbers;
  for (int i = 0; i < 300; ++i) {
    orders.push_back(buy("b" + std::to_string(i % 40), "r" + std::to_string(i)));
    numbers.insert(orders.back().number);
  }
  EXPECT_EQ(numbers_in(records_, 7), numbers);
  EXPECT_EQ(numbers_in(records_, 1000), numbers);

  std::vector<Wish> wishes;
  for (const auto& order : orders) wishes.push_back({order.buyer, order.request});
  wishes.push_back({{"b1"}, {"r2"}});
  wishes.push_back({{"nobody"}, {"r2"}});
  const auto found = records_.find(wishes).get();
  for (std::size_t i = 0; i < orders.size(); ++i) EXPECT_EQ(found[i], orders[i]);
  EXPECT_FALSE(found[300]);
  EXPECT_FALSE(found[301]);

  const std::vector<BuyerId> buyers{{"b39"}, {"nobody"}};
  const auto known = records_.find(buyers).get();
  EXPECT_EQ(known[0]->live, 7);
  EXPECT_EQ(known[0]->units, 7);
  EXPECT_EQ(known[0]->latest, orders[279]);
  EXPECT_FALSE(known[1]);

  store_->run({"HSET", "{s}:buyers", "b1", "rubbish"}).get();
  store_->run({"HSET", "{s}:requests", "x", "rubbish"}).get();
  const auto damaged = numbers_in(records_, 1000);
  EXPECT_TRUE(damaged.contains("buyers: b1"));
  EXPECT_TRUE(damaged.contains("requests: x"));
}

TEST_F(RecordsTest, AStoreThatLostEverythingGetsItsOrdersBack) {
  std::vector<SaleOrder> orders;
  for (int i = 0; i < 100; ++i)
    orders.push_back(buy("b" + std::to_string(i % 7), "r" + std::to_string(i), 1 + i % 3));
  Lost lost{definition_};
  for (const std::size_t i : {3, 10})  // twice, and in any order
    lost.put({&orders[i], 1});
  const std::vector<SaleOrder> backwards(orders.rbegin(), orders.rend());
  EXPECT_EQ(lost.put(backwards), 98);
  EXPECT_EQ(lost.put(orders), 0);
  for (const auto* const key : {"{s}:buyers", "{s}:requests"}) {
    auto there = lost.store->run({"HGETALL", key}).get();
    auto here = store_->run({"HGETALL", key}).get();
    const auto pairs = [](const Value& value) {
      std::set<std::pair<std::string, std::string>> all;
      for (std::size_t i = 0; i < value.as_items().size(); i += 2)
        all.emplace(value.as_items()[i].as_text(), value.as_items()[i + 1].as_text());
      return all;
    };
    EXPECT_EQ(pairs(there), pairs(here));
  }
  EXPECT_THROW(lost.records.put(orders, "of an earlier recovery").get(), Error);
}

// The store forgot ann's order, and admitted her request anew, under the number of bob.
TEST_F(RecordsTest, E15_AnOrderOfTheDatabaseTakesThePlaceOfAnotherUnderItsRequest) {
  const auto bob = buy("bob", "r", 2);
  const auto ann = buy("ann", "r", 3);
  Lost lost{definition_};
  const auto anew = *lost.sale.buy({"ann"}, {"r"}, 5).get().order;
  EXPECT_EQ(anew.number, bob.number);
  EXPECT_EQ(lost.put(std::vector<SaleOrder>{bob, ann}), 2);
  EXPECT_EQ(lost.sale.buy({"ann"}, {"r"}, 3).get().order, ann);
  const std::vector<BuyerId> buyer{{"ann"}};
  EXPECT_EQ(lost.records.find(buyer).get()[0]->units, 3);
}

TEST_F(RecordsTest, RefusesOrdersOfAnotherSale) {
  auto order = buy("ann", "r");
  Lost lost{definition_};
  for (const auto* const number : {"XX202601020001", "MT20260102001", "MT2026010200a1", "MT"}) {
    order.number = number;
    EXPECT_THROW(lost.put({&order, 1}), Error) << number;
  }
  EXPECT_EQ(lost.sale.status().get().orders, 0);
}

TEST_F(RecordsTest, UnitsAreGivenBackOnce) {
  auto earlier = buy("ann", "r1", 2);
  auto latest = buy("ann", "r2", 3);
  const auto give_back = [&](SaleOrder& order) {
    order.state = OrderState::cancelled;
    return records_.give_back({.order = order, .seq = 1, .units = order.units}).get();
  };
  EXPECT_EQ(give_back(earlier), Records::Returned::now);
  EXPECT_EQ(give_back(earlier), Records::Returned::before);
  EXPECT_EQ(sale_.status().get().sold, 3);
  EXPECT_EQ(give_back(latest), Records::Returned::now);
  EXPECT_EQ(give_back(latest), Records::Returned::before);
  EXPECT_EQ(sale_.status().get().sold, 0);
  const std::vector<BuyerId> ann{{"ann"}};
  const auto known = records_.find(ann).get()[0];
  EXPECT_EQ(known->live, 0);
  EXPECT_EQ(known->units, 0);
  EXPECT_EQ(known->latest, latest);
  const std::vector<Wish> wish{{{"ann"}, {"r1"}}};
  EXPECT_EQ(records_.find(wish).get()[0], earlier);
  auto stranger = latest;
  stranger.number = "MT202601029999";
  stranger.id += 1;
  EXPECT_EQ(give_back(stranger), Records::Returned::unknown);
  stranger.buyer = {"nobody"};
  EXPECT_EQ(give_back(stranger), Records::Returned::unknown);
  EXPECT_EQ(store_->run({"HGET", "{s}:sale", "given_back"}).get().as_text(), "5");
}

}  // namespace
}  // namespace sluice::sale
