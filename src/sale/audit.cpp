#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "sale/ledger.hpp"
#include "sale/order_queue.hpp"
#include "sluice/sale_audit.hpp"

namespace sluice::sale {
namespace {

constexpr std::size_t page_size = 1000;
constexpr std::size_t most_examples = 3;

/// Calls `visit` with every item of a stream, a page at a time.
template <class Visit>
void for_each_entry(Store& store, const std::string& stream, Visit&& visit) {
  const auto count = fmt::to_string(page_size);
  std::string from = "-";
  for (;;) {
    const auto page = store.run({"XRANGE", stream, from, "+", "COUNT", count}).get();
    for (const auto& entry : page.as_items()) visit(entry);
    if (page.as_items().size() < page_size) return;
    from = "(" + page.as_items().back().as_items().at(0).as_text();
  }
}

class Auditor {
 public:
  Auditor(Store& store, const Sale& sale, OrderStore& orders)
      : store_(store),
        sale_(sale.definition()),
        keys_(sale_.name),
        orders_(orders),
        ledger_(sale_) {}

  SaleAudit run();

 private:
  /// Name, figure, expected; ok when both are the same.
  void check(std::string name, std::int64_t figure, std::int64_t expected, std::string detail) {
    audit_.checks.push_back({.name = std::move(name),
                             .ok = figure == expected,
                             .figure = figure,
                             .expected = expected,
                             .detail = std::move(detail)});
  }

  bool read_store();
  void read_streams();
  void read_database();
  void check_units();
  void check_orders();
  void check_buyers();
  void check_numbers();
  void check_database();

  Store& store_;
  const SaleDefinition sale_;
  const SaleKeys keys_;
  OrderStore& orders_;
  Ledger ledger_;
  SaleAudit audit_;

  std::int64_t stock_ = 0;  // as it is now
  std::int64_t sold_ = 0;
  std::int64_t counted_ = 0;            // orders, by the sale's own counter
  std::vector<LedgerLine> on_the_way_;  // stream and dead letters, ids rising
  std::int64_t orders_of_buyers_ = 0;   // by the buyers' own counts
  std::int64_t poison_ = 0;
  std::int64_t database_units_ = 0;
};

bool Auditor::read_store() {
  const auto reply = store_.run({"HMGET", keys_.sale, "sold", "orders", "capacity"}).get();
  const auto& fields = reply.as_items();
  if (fields.at(0).is_null()) return false;
  sold_ = fields.at(0).as_integer();
  counted_ = fields.at(1).as_integer();
  stock_ = fields.at(2).as_integer();
  return true;
}

/// Before the database, so that an order which moves meanwhile is seen twice and not missed.
void Auditor::read_streams() {
  const auto add = [&](const std::optional<SaleOrder>& order) {
    if (order) {
      on_the_way_.push_back(line_of(*order, sale_));
    } else {
      ++poison_;
    }
  };
  for_each_entry(store_, keys_.orders, [&](const Value& entry) { add(entry_of(entry).order); });
  for_each_entry(store_, keys_.dead, [&](const Value& entry) {
    ++audit_.dead;
    add(dead_letter_of(entry).order);
  });
  std::sort(on_the_way_.begin(), on_the_way_.end(),
            [](const LedgerLine& a, const LedgerLine& b) { return a.id < b.id; });
}

/// Merges the database with what is on the way into the ledger.
void Auditor::read_database() {
  auto waiting = on_the_way_.begin();
  std::int64_t last = -1;
  const auto pass_waiting = [&](std::int64_t below) {
    for (; waiting != on_the_way_.end() && waiting->id < below; ++waiting) {
      if (waiting->id == last)
        continue;  // in the database, not yet acknowledged; or dead and in the stream
      ledger_.add(*waiting);
      last = waiting->id;
      ++audit_.on_the_way;
    }
  };
  std::int64_t after = -1;
  for (;;) {
    const auto page = orders_.page(sale_.name, after, page_size);
    for (const auto& order : page) {
      pass_waiting(order.id);
      ledger_.add(line_of(order, sale_));
      last = order.id;
      if (order.state == OrderState::awaiting) database_units_ += order.units;
    }
    audit_.in_database += static_cast<std::int64_t>(page.size());
    if (page.size() < page_size) break;
    after = page.back().id;
  }
  pass_waiting(std::numeric_limits<std::int64_t>::max());
}

void Auditor::check_units() {
  check("sold_plus_left_is_stock", ledger_.units() + (stock_ - sold_), stock_,
        fmt::format("{} units in orders, {} left", ledger_.units(), stock_ - sold_));
  check("units_of_orders_are_sold", ledger_.units(), sold_,
        fmt::format("{} orders in the database, {} on the way or dead", audit_.in_database,
                    audit_.on_the_way));
  check("units_oversold", std::max<std::int64_t>(sold_ - stock_, 0), 0,
        fmt::format("sold {} of {}", sold_, stock_));
}

/// The store's record of requests against the ledger, both ways.
void Auditor::check_orders() {
  std::int64_t missing = 0;
  std::vector<std::string> examples;
  const auto look_at = [&](const std::string& name, std::int64_t id) {
    if (ledger_.mark(id)) return;
    ++missing;
    if (examples.size() < most_examples) examples.push_back(name);
  };
  Records records{store_, sale_};
  std::string from;
  do {
    const auto page = records.scan(from, page_size).get();
    for (const auto& buyer : page.buyers) {
      look_at(buyer.latest.number, buyer.latest.id);
      orders_of_buyers_ += buyer.latest.n;
    }
    for (const auto& order : page.earlier) look_at(order.number, order.id);
    for (const auto& damaged : page.damaged) look_at(damaged, -1);
    from = page.next;
  } while (!from.empty());
  for (const auto& hash : {keys_.buyers, keys_.requests})
    audit_.admitted += store_.run({"HLEN", hash}).get().as_integer();
  check("orders_admitted_but_nowhere", missing, 0,
        examples.empty() ? fmt::format("{} orders admitted", audit_.admitted)
                         : fmt::format("{}", fmt::join(examples, ", ")));
  const auto strangers = ledger_.unmarked(most_examples);
  check("orders_nobody_was_admitted_for", ledger_.unmarked_count(), 0,
        strangers.empty() ? "every order has its request"
                          : fmt::format("ids {}", fmt::join(strangers, ", ")));
  check("orders_counted", counted_, audit_.admitted,
        "the sale's counter against its record of requests");
  check("entries_that_make_no_order", poison_, 0, "in the stream or among the dead letters");
}

void Auditor::check_buyers() {
  check("orders_of_all_buyers", orders_of_buyers_, audit_.admitted,
        "the buyers' own counts add up");
  const auto above = sale_.limit > 0 ? orders_.buyers_above(sale_.name, sale_.limit) : 0;
  check("buyers_above_limit", above + ledger_.above_limit(), 0,
        sale_.limit > 0 ? fmt::format("limit {}", sale_.limit) : "no limit");
}

void Auditor::check_numbers() {
  check("numbers_dense_and_ids_rising", ledger_.numbers_in_place(), ledger_.orders(),
        ledger_.first_fault().empty() ? "1, 2, 3 ... for each day, in the order of the ids"
                                      : ledger_.first_fault());
}

void Auditor::check_database() {
  const auto stock = orders_.stock(sale_.name);
  const auto initial = stock ? stock->initial : -1;
  const auto taken = stock ? stock->initial + stock->changed - stock->left : -1;
  check("database_stock_began_as_stock", initial, sale_.stock, orders_.describe());
  check("database_stock_lost_what_was_ordered", taken, database_units_,
        fmt::format("{} orders", audit_.in_database));
}

SaleAudit Auditor::run() {
  const bool loaded = read_store();
  check("sale_is_loaded", loaded ? 1 : 0, 1, store_.describe());
  if (!loaded) return std::move(audit_);
  read_streams();
  read_database();
  check_units();
  check_orders();
  check_buyers();
  check_numbers();
  check_database();
  return std::move(audit_);
}

}  // namespace

}  // namespace sluice::sale

sluice::SaleAudit sluice::audit(Store& store, const Sale& sale, OrderStore& orders) {
  return sale::Auditor{store, sale, orders}.run();
}
