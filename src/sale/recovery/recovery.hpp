/// One recovery of one sale.
///
/// The gate is shut while it goes on. What the database has is brought into the store; then what
/// the streams have, and what the store alone knows is sent to the database again. At last all that
/// the sale counts is counted anew, and the gate is opened.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "sale/on_the_way.hpp"
#include "sale/records.hpp"
#include "sale/recovery/count.hpp"
#include "sale/streams.hpp"
#include "sluice/order_store.hpp"
#include "sluice/sale_recovery.hpp"

namespace sluice::sale {

class Recovery {
 public:
  /// `here`: the store, with the id that it is known by from now on. `mends_definition`: what
  /// stands in the store can not be read.
  Recovery(Store& store, const SaleDefinition& sale, OrderStore& orders, StoreOfSale here,
           bool mends_definition)
      : store_(store),
        sale_(sale),
        keys_(sale_.name),
        orders_(orders),
        records_(store, sale_),
        on_the_way_(sale_),
        here_(std::move(here)),
        mends_definition_(mends_definition) {}

  /// Where it fails, the next one may begin at once.
  SaleRecovery run(const OrderStore::Fields& kept);

 private:
  using Pairs = std::vector<std::pair<std::string, std::string>>;

  static constexpr std::size_t most_written = 256;  // in one script

  SaleRecovery carry_out(OrderStore::Fields kept);
  void make_way() noexcept;
  void close_gate(const OrderStore::Fields& kept);
  void restore_orders();
  void reconcile_streams();
  void restore_earlier_orders();
  void bring_on_the_way();
  bool is_on_the_way(const SaleOrder& order) const;
  void end_again(const SaleOrder& order, bool is_there);
  void insert_with_parts(std::vector<SaleOrder>& lost);
  bool insert_standing(SaleOrder order);
  const std::map<std::int64_t, std::int64_t>& returned_of(std::int64_t id);
  void tell_parts_of(std::int64_t id);
  std::unordered_set<std::string> refused_retakes();
  void send_again(std::span<const SaleOrder> orders);
  void remove_entries(const std::vector<StreamOrder>& entries);
  Count count();
  bool count(Count& all);
  void count_twins(Count& all);
  void count_buyers(Count& all);
  void restore_returned(const Count& all);
  Pairs stock(const Count& all);
  std::int64_t stock_before();
  Pairs numbers();
  Pairs lane(const OrderStore::Fields& kept);
  void open_gate(const Count& all, const OrderStore::Fields& kept);

  std::int64_t put(std::span<const SaleOrder> orders,
                   Records::Source source = Records::Source::store);
  std::vector<SaleOrder> retaken(std::span<const SaleOrder> rows);
  void read_returns();
  void tell_parts();
  template <class Visit>
  void each_page(Visit&& visit);
  template <class Visit>
  void each_row(Visit&& visit);
  template <class Write>
  void in_parts(const Pairs& pairs, const Write& write);
  std::unordered_map<std::int64_t, SaleOrder> rows_of(std::span<const SaleOrder> orders) const;
  void check_mine(bool is_mine) const;
  void stay_known();

  Store& store_;
  const SaleDefinition sale_;
  const SaleKeys keys_;
  OrderStore& orders_;
  Records records_;
  OnTheWay on_the_way_;
  std::vector<SaleOrder> sent_;
  std::unordered_map<std::string, std::int64_t> returns_;  // of the database
  std::unordered_set<std::string> asked_;                  // retakes, which are not in returns_
  std::vector<std::pair<std::int64_t, std::int64_t>> new_ends_;  // in returns_: id and seq
  Count::Units parts_;
  /// What the store has of returns: of an order, by version, units. Empty: it was not asked yet.
  std::optional<std::unordered_map<std::int64_t, std::map<std::int64_t, std::int64_t>>> returned_;
  SaleRecovery done_;

  const StoreOfSale here_;
  const bool mends_definition_;
  const std::string token_ = random_hex_128();
  std::string this_store_;
  std::int64_t epoch_ = 0;        // of the store, before
  std::int64_t store_stock_ = 0;  // units, before
  std::int64_t store_changes_ = 0;
  bool is_closed_ = false;
  SteadyTime known_since_ = store_.clock().steady();
};

template <class Visit>
void Recovery::each_row(Visit&& visit) {
  std::int64_t after = std::numeric_limits<std::int64_t>::min();
  for (;;) {
    const auto rows = orders_.page(sale_.name, after, page_size);
    visit(rows);
    stay_known();
    if (rows.size() < page_size) return;
    after = rows.back().id;
  }
}

template <class Visit>
void Recovery::each_page(Visit&& visit) {
  std::string from;
  do {
    auto page = records_.scan(from, page_size).get();
    visit(page);
    stay_known();
    from = std::move(page.next);
  } while (!from.empty());
}

template <class Write>
void Recovery::in_parts(const Pairs& pairs, const Write& write) {
  for (std::size_t at = 0; at < pairs.size(); at += most_written) {
    std::vector<std::string_view> args{token_};
    for (auto i = at; i < std::min(at + most_written, pairs.size()); ++i)
      args.insert(args.end(), {pairs[i].first, pairs[i].second});
    write(Words{args});
    stay_known();
  }
}

}  // namespace sluice::sale
