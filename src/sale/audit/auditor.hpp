/// One audit of one sale.
///
/// An audit walks through the streams, then through the store's records, then through the database,
/// each a page at a time, and looks up what it finds on the other side. Ids rise with each order,
/// so the sale's counters, read first, say which orders they count: those up to the last id. Later
/// ones are compared, too, but not counted. What the first look does not find may be on its way
/// from one place to another: it gets a second look.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/keyed_hash.hpp"
#include "sale/audit/counters.hpp"
#include "sale/differences.hpp"
#include "sale/ledger.hpp"
#include "sale/on_the_way.hpp"
#include "sale/records.hpp"
#include "sale/streams.hpp"
#include "sluice/order_store.hpp"
#include "sluice/sale_audit.hpp"

namespace sluice::sale {

class Auditor {
 public:
  Auditor(Store& store, const Sale& sale, OrderStore& orders, AuditOptions options)
      : store_(store),
        sale_(sale.definition()),
        keys_(sale_.name),
        orders_(orders),
        records_(store, sale_),
        differences_(options.named) {}

  SaleAudit run();

 private:
  static constexpr int looks = 3;
  static constexpr int looks_at_stock = 10;

  // The checks that count differences.
  static constexpr std::string_view poison = "entries_that_make_no_order";
  static constexpr std::string_view of_nobody = "entries_handed_to_nobody";
  static constexpr std::string_view without_entry = "pending_entries_that_are_gone";
  static constexpr std::string_view early = "pending_entries_not_handed_out";
  static constexpr std::string_view entries_differ = "orders_of_the_stream_that_differ";
  static constexpr std::string_view nowhere = "orders_admitted_but_nowhere";
  static constexpr std::string_view strangers = "orders_nobody_was_admitted_for";
  static constexpr std::string_view orders_differ = "orders_of_the_database_that_differ";
  static constexpr std::string_view buyers_differ = "buyers_that_differ";
  static constexpr std::string_view above_limit = "buyers_above_limit";
  static constexpr std::string_view damaged = "records_that_make_no_order";
  static constexpr std::string_view returns_differ = "returns_that_differ";
  static constexpr std::string_view definition_differs = "definition_that_differs";
  static constexpr std::string_view counters_differ = "counters_that_differ";
  static constexpr std::string_view expires = "keys_that_expire";
  static constexpr std::string_view unlisted = "lists_of_sales_that_differ";

  /// Name, figure, expected; ok when both are the same.
  void check(std::string_view name, std::int64_t figure, std::int64_t expected,
             std::string detail) {
    audit_.checks.push_back({.name = std::string{name},
                             .ok = figure == expected,
                             .figure = figure,
                             .expected = expected,
                             .detail = std::move(detail)});
  }
  /// So many differences; `detail` where there is none.
  void check(std::string_view name, std::string detail) {
    const auto found = differences_.count(name);
    check(name, found, 0, found == 0 ? std::move(detail) : differences_.summary(name));
  }

  void walk_streams();
  void compare_entries(const std::vector<StreamOrder>& entries);
  void walk_group();

  void walk_records();
  void look_up(const Records::Page& page);
  void look_up(const SaleOrder& record, const SaleOrder* row);
  void look_again();
  void compare_buyers(const std::vector<BuyerRecord>& buyers);
  void check_limits(const BuyerRecord& record);
  void look_at_buyers_again();
  std::int64_t places_left(const BuyerRecord& record, const BuyerTotals* in_database);
  bool fits(const BuyerRecord& record, const BuyerTotals* in_database, bool say);
  void count_elsewhere(BuyerTotals& his);

  void walk_rows(const std::function<void(const std::vector<SaleOrder>&)>& visit);
  void compare_rows(const std::vector<SaleOrder>& rows);
  bool is_same(const SaleOrder& row, const SaleOrder& record) const;
  bool compare(const SaleOrder& record, SaleOrder row);
  void look_at_row_again(const SaleOrder& seen);
  void read_ending();
  void read_parts();
  void each_return(bool only_pending, const std::function<void(const OrderReturn&)>& visit);
  void walk_returns();
  void walk_returned();
  bool is_return(const std::string& name, const std::string& units);

  void compare_definition();
  void compare_counters();
  void compare_stock();
  void compare_list();
  void look_for_expiry();
  void check_gate();
  void report();
  void report_common();
  void report_numbers();
  void report_database();
  void report_money();
  void tell_unknown_columns();
  void report_archived();
  void tell_what_is_unknown();

  Store& store_;
  const SaleDefinition sale_;
  const SaleKeys keys_;
  OrderStore& orders_;
  Records records_;
  Differences differences_;
  SaleAudit audit_;

  Counters counters_;
  std::int64_t cut_ = -1;  // the last id that they count
  Ledger ledger_;
  OnTheWay on_the_way_{sale_};
  std::vector<SaleOrder> not_found_;  // neither there nor on their way, at the first look
  std::vector<BuyerId> odd_buyers_;
  std::unordered_set<std::int64_t> ending_;  // the database has ended them, the store has not
  std::unordered_map<std::int64_t, std::int64_t> parts_;  // units of theirs that were cancelled
  std::unordered_set<std::string> returns_;  // all returns of the database, as the store has them
  std::unordered_set<std::string, KeyedHash> ending_buyers_;
  DatabaseTotals database_;
  bool in_database_ = true;  // the database knows the sale
  std::optional<SaleOrder> last_order_;
  bool group_is_there_ = true;
};

}  // namespace sluice::sale
