// Histories of sales: their orders, their ends, and what recovers them.
#include <fmt/format.h>

#include "contract/late_line.hpp"
#include "sluice/bucketed_sale.hpp"
#include "sluice/order_store.hpp"
#include "sluice/order_worker.hpp"
#include "sluice/sale.hpp"
#include "sluice/sale_audit.hpp"
#include "sluice/sale_recovery.hpp"
#include "support/temp_dir.hpp"

namespace sluice::test {
namespace {

/// A sale, its database and its worker.
struct LateSale {
  explicit LateSale(LatePlay& what) : play(what) {}

  void tell(std::string_view when) {
    const auto now = sale.status().get();
    play.say(when,
             fmt::format("{}, {} of {} sold, {} orders, {} waiting, {} dead", to_string(now.state),
                         now.sold, now.stock, now.orders, now.waiting, now.dead));
  }
  void buy(const std::string& buyer, const std::string& request, std::int64_t units) {
    const auto got = sale.buy({buyer}, {request}, units).get();
    play.say(buyer,
             fmt::format("{}, {} units", to_string(got.outcome), got.order ? got.order->units : 0));
  }
  void drain(std::string_view when) {
    worker.drain();
    tell(when);
  }
  void recover_it(std::string_view when) {
    (void)recover(play.store(), "s", *orders);
    tell(when);
  }
  void run(std::initializer_list<std::string_view> command) {
    (void)play.other().run(command).get();
  }

  LatePlay& play;
  const TempDir folder;
  std::unique_ptr<OrderStore> orders =
      open_order_store("sqlite:" + (folder / "orders.db").string());
  const SaleDefinition definition{.name = "s", .stock = 20, .limit = 2, .number_type = "MT"};
  Sale sale = Sale::create(play.store(), definition, *orders);
  OrderWorker worker{play.store(), sale, *orders};
};

void a_sale_lives_and_ends(LatePlay& play) {
  LateSale s{play};
  s.tell("made");
  play.say("flow", std::to_string(s.sale.flow().get().entries));
  s.buy("ann", "r", 2);
  s.buy("bob", "r", 3);
  s.drain("two orders");
  (void)s.sale.cancel(*s.orders, {"ann"}, {"r"}, "test");
  s.tell("ann cancelled");
  s.buy("ann", "second", 1);
  (void)s.sale.cancel_units(*s.orders, {"bob"}, {"r"}, 1, "key");
  s.drain("bob has two");
  play.say("stock", s.sale.change_stock(*s.orders, 30));
  s.tell("thirty");
  play.say("stock", s.sale.change_stock(*s.orders, 25));
  s.tell("twenty-five");
  play.say("audit", audit(play.store(), s.sale, *s.orders).ok());
  s.sale.close(*s.orders);
  s.tell("closed");
  s.buy("carl", "r", 1);
  s.drain("all are in");
  play.say("archived", s.sale.archive(*s.orders));
  s.tell("archived");
}

void letters_come_back(LatePlay& play) {
  LateSale s{play};
  s.buy("ann", "r", 2);
  s.run({"XADD", "{s}:orders", "*", "order", "odd", "buyer", "x"});
  s.drain("one is dead");
  for (const auto& letter : s.sale.dead_letters().get()) (void)s.sale.revive(letter.id).get();
  s.drain("dead again");
  for (const auto& letter : s.sale.dead_letters().get())
    (void)s.sale.give_back(*s.orders, letter.id, "test");
  s.tell("given back");
  s.run({"XGROUP", "DESTROY", "{s}:orders", "orders"});
  s.buy("bob", "r", 1);
  s.drain("grouped again");
  s.buy("carl", "r", 1);
  s.drain("three orders");
}

void a_sale_is_recovered(LatePlay& play) {
  LateSale s{play};
  s.buy("ann", "r", 2);
  s.drain("one order");
  s.run({"HSET", "{s}:sale", "store", "another"});
  s.recover_it("recovered");
  s.buy("bob", "r", 3);
  s.drain("two orders");
  (void)s.sale.cancel(*s.orders, {"bob"}, {"r"}, "test");
  s.tell("bob cancelled");
  s.run({"DEL", "{s}:sale", "{s}:buyers", "{s}:requests", "{s}:returned"});
  s.recover_it("recovered from nothing");
  s.buy("ann", "r", 2);
  s.buy("carl", "r", 1);
  s.drain("three orders");
  s.buy("dora", "r", 1);
  s.run({"DEL", "{s}:orders"});
  s.recover_it("sent again");
  s.drain("four orders");
  play.say("audit", audit(play.store(), s.sale, *s.orders).ok());
}

void a_lost_sale_is_made_again(LatePlay& play) {
  LateSale s{play};
  s.buy("ann", "r", 2);
  s.drain("one order");
  const auto id = play.other().run({"GET", "sluice:sales:store"}).get();
  s.run({"FLUSHALL"});
  s.run({"SET", "sluice:sales:store", id.as_text()});  // another store would be refused
  (void)Sale::create(play.store(), s.definition).get();
  (void)Sale::create(play.store(), s.definition, *s.orders);
  s.tell("shut");
  s.recover_it("recovered");
  s.buy("bob", "r", 3);
  s.drain("two orders");
  s.buy("carl", "r", 1);
  s.drain("three orders");
}

void a_sale_has_buckets(LatePlay& play) {
  const TempDir folder;
  const auto orders = open_order_store("sqlite:" + (folder / "orders.db").string());
  auto sale = BucketedSale::create(play.store(),
                                   {.name = "b", .stock = 12, .limit = 0, .number_type = "BT"},
                                   {.buckets = 3}, *orders);
  const auto buy = [&](const char* buyer, std::int64_t units) {
    const auto got = sale.buy({buyer}, {"r"}, units).get();
    play.say(buyer, to_string(got.outcome));
  };
  const auto moves = [&](const char* when) {
    std::int64_t frozen = 0, capacity = 0;
    for (const auto* const key : {"{b:0}:sale", "{b:1}:sale", "{b:2}:sale"}) {
      frozen += play.other().run({"HEXISTS", key, "frozen"}).get().as_integer();
      capacity += std::stoll(play.other().run({"HGET", key, "capacity"}).get().as_text());
    }
    play.say(when, fmt::format("{} units, {} frozen", capacity, frozen));
  };
  moves("made");
  buy("ann", 7);
  moves("units moved");
  play.say("stock", sale.change_stock(*orders, 15));
  moves("fifteen");
  (void)play.other().run({"HDEL", "{b:0}:sale", "moves"}).get();
  (void)recover_buckets(play.store(), "b", *orders);
  moves("recovered");
  buy("bob", 6);
  moves("sold");
  (void)play.other().run({"HDEL", "{b:1}:sale", "moves"}).get();
  (void)recover_buckets(play.store(), "b", *orders);
  moves("recovered again");
  buy("carl", 1);
  moves("sold");
}

}  // namespace

std::vector<LateHistory> late_histories_of_sales() {
  return {{"sale", a_sale_lives_and_ends, true},
          {"sale: letters", letters_come_back, true},
          {"sale: recovered", a_sale_is_recovered, true},
          {"sale: made again", a_lost_sale_is_made_again, true},
          {"sale: buckets", a_sale_has_buckets, true}};
}

}  // namespace sluice::test
