// What an audit says in the end.
#include <fmt/format.h>

#include <algorithm>

#include "sale/audit/auditor.hpp"
#include "sale/audit/unknown_columns.hpp"
#include "sale/store_of_sale.hpp"
#include "sale/sums.hpp"

namespace sluice::sale {

void Auditor::report() {
  const auto sold = counters_.number("sold");
  const auto given_back = counters_.number("given_back");
  const auto capacity = counters_.number("capacity");
  const auto taken = difference(ledger_.units(), given_back);
  check("sold_plus_left_is_stock", sum(taken, capacity - sold), capacity,
        fmt::format("{} units in orders, {} given back, {} left", ledger_.units(), given_back,
                    capacity - sold));
  check("units_of_orders_are_sold", taken, sold,
        fmt::format("{} orders in the database, {} on the way or dead", audit_.in_database,
                    audit_.on_the_way));
  check("units_oversold", std::max<std::int64_t>(sold - capacity, 0), 0,
        fmt::format("sold {} of {}", sold, capacity));
  report_numbers();
  check(orders_differ, "every order of the database is as the store has it");
  check(strangers, "every order of the database is known to the store");
  check(nowhere, fmt::format("{} orders admitted", audit_.admitted));
  check(entries_differ, "every order on its way is as the store has it");
  check(poison, "in the stream or among the dead letters");
  check(damaged, "the store's records can be read");
  check(buyers_differ, "each buyer has the orders that are counted for him");
  check(above_limit, sale_.limit > 0 ? fmt::format("limit {}", sale_.limit) : "no limit");
  check("group_of_workers", group_is_there_ ? 1 : 0, 1,
        group_is_there_ ? "it is there" : "it is lost; a worker makes it again");
  check(of_nobody, "every entry that was handed out is pending for a worker");
  check(without_entry, "every pending entry is in the stream");
  check(early, "no entry is pending before it was handed out");
  check(returns_differ, "what was given back is of orders that ended");
  check(counters_differ, "last order, day, numbers and stock");
  check(definition_differs, "as the database keeps it");
  report_common();
  report_database();
}

void Auditor::report_common() {
  check(expires, "every key stays");
  check(unlisted, "the store's lists of sales have this one");
}

void Auditor::report_numbers() {
  check("orders_counted", audit_.admitted, ledger_.orders(),
        "the sale's counter against the orders that there are");
  const auto gaps = counters_.number("gaps");
  check("numbers_dense_and_ids_rising", sum(ledger_.in_place(), gaps), ledger_.orders(),
        ledger_.first_fault().empty()
            ? "1, 2, 3 ... for each day, in the order of the ids"
            : fmt::format("{} gap(s) by recoveries; {}", gaps, ledger_.first_fault()));
}

void Auditor::report_database() {
  if (!in_database_) {
    audit_.unknown.push_back(
        fmt::format("{} does not know the sale yet, a worker enters it: whether this is "
                    "the database of the sale nobody can tell",
                    orders_.describe()));
    return;
  }
  const auto& stock = database_.stock;
  check("database_stock_began_as_stock", stock.initial, sale_.stock, orders_.describe());
  check("database_stock_lost_what_was_ordered",
        difference(sum(sum(stock.initial, stock.changed), stock.moved), stock.left),
        database_.units, fmt::format("{} orders", database_.orders));
  check("database_changes_add_up", stock.changed, database_.changes,
        "the list of stock changes against their sum");
  check("changes_out_of_order", database_.odd_changes, 0,
        "changes of the stock count from 1, and all but the last have ended");
  check("orders_with_an_odd_version", database_.odd, 0,
        "an order that stands has version 0 and no reason, one that ended has its return");
  check("returns_of_no_order", database_.odd_returns, 0,
        "each is of an order that ended with so many units");
  report_money();
}

/// Payments, deadlines, refunds and messages, of a sale that has some.
void Auditor::report_money() {
  if (!sale_.payment || !in_database_) return;
  const auto money = orders_.payments().totals(sale_.name);
  check("payments_that_do_not_fit_their_orders", money.odd_payments, 0,
        "each order that was paid has one payment, and no other has one");
  check("money_that_is_missing_or_too_much", money.odd_refunds, 0,
        "what was paid and did not go back is the price of the units that an order has");
  check("payments_in_no_state", money.odd_events, 0, "every payment is of an order, or waits");
  check("orders_without_a_deadline", money.odd_deadlines, 0,
        "every order that awaits its payment has one, and none is out of its time");
  check("messages_that_differ_from_versions", money.odd_messages, 0,
        "the messages of each order lead to how it stands, and its returns are theirs");
  const auto tell = [&](std::int64_t figure, std::string_view what) {
    if (figure > 0) audit_.unknown.push_back(fmt::format("{} {}", figure, what));
  };
  tell(money.flagged, "payment(s) do not fit, and a person has to look at them");
  tell(money.waiting, "payment(s) wait for an order that is not in the database");
  tell(money.asking, "late payment(s) wait for the store to say whether units are left");
  tell(money.refunds, "refund(s) were not sent yet");
  tell(money.dead, "message(s) could not be delivered");
}

/// What stands in the database alone, and follows from nothing else there.
void Auditor::tell_unknown_columns() {
  if (!in_database_) return;
  std::string all;
  for (const auto& column : unknown_columns)
    if (sale_.payment || !column.is_of_money)
      all += fmt::format("{}{} ({}.{})", all.empty() ? "" : "; ", column.what, column.table,
                         column.name);
  audit_.unknown.push_back("what the database alone knows: " + all);
}

/// An archive leaves the counters; the orders are in the database alone, where some may have ended
/// since.
void Auditor::report_archived() {
  const auto hashes = store_.run({"EXISTS", keys_.buyers, keys_.requests, keys_.returned}).get();
  check("sale_is_archived", 1, 1,
        fmt::format("{} keeps its counters, {} its orders", store_.describe(), orders_.describe()));
  check("archive_is_finished", hashes.as_integer(), 0,
        hashes.as_integer() == 0 ? "no orders are left in the store"
                                 : "hashes of orders are left in the store: archive once more");
  const bool is_rolled_back = counters_.has(std::string{rolled_back_field});
  check("database_came_back_from_before", is_rolled_back ? 1 : 0, 0,
        is_rolled_back ? rolled_back(sale_.name, orders_.describe()) : "nothing says that it did");
  const auto sold = counters_.number("sold");
  const auto given_back = counters_.number("given_back");
  check("units_of_orders_were_sold", difference(ledger_.units(), given_back), sold,
        fmt::format("{} units in orders, {} given back before the archive", ledger_.units(),
                    given_back));
  report_numbers();
  check(counters_differ, "last order, day, numbers and stock");
  check(definition_differs, "as the database keeps it");
  report_common();
  report_database();
  tell_unknown_columns();
  audit_.unknown.push_back(
      "the sale is archived: buyers, request ids and instants of its orders stand in the database "
      "alone; compare them with the file of the archive");
}

void Auditor::tell_what_is_unknown() {
  if (database_.pending_changes > 0)
    audit_.unknown.push_back(
        "a change of the stock is under way: whether the store has as much to sell as the "
        "database");
  tell_unknown_columns();
  audit_.unknown.push_back(
      "an order that a buyer was told of and that neither the store nor the database has: compare "
      "with what buyers have");
  audit_.unknown.push_back(
      "a change that was made in the same way in the store and in the database; the words of a "
      "reason for which an order ended; how many units a change asked for that was refused; "
      "whether somebody closed the sale by hand");
  if (!ending_.empty())
    audit_.unknown.push_back(fmt::format(
        "{} order(s) ended in the database, and the store was not told yet", ending_.size()));
}

}  // namespace sluice::sale
