/// An OrderStore on a SQL database, written once for all of them: what differs stands in a
/// SqlDialect. The class is spread over the files of this folder by subject.
///
/// Every transaction that changes a sale begins with the row of its stock: it changes that row, or
/// locks it. So writers of one sale come one after another, see what the last one has left, and
/// never wait for each other in a circle.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sale/sql/payments.hpp"
#include "sale/sql/sessions.hpp"
#include "sluice/order_store.hpp"

namespace sluice::sale {

class SqlOrderStore final : public OrderStore {
 public:
  explicit SqlOrderStore(SqlDialect dialect, OrderStoreLimits limits = {})
      : sessions_(std::move(dialect), limits.answer), payments_(sessions_) {}

  void add_sale(const std::string& sale, std::int64_t stock) override;
  InsertResult insert(const std::string& sale, std::span<const SaleOrder> orders,
                      std::int64_t epoch) override;
  std::int64_t begin_epoch(const std::string& sale, std::int64_t above, const StoreOfSale& store,
                           const std::string& token) override;
  std::string epoch_token(const std::string& sale) override;
  std::int64_t epoch(const std::string& sale) override;
  std::optional<StoreOfSale> store_of(const std::string& sale) override;
  bool sell_in(const std::string& sale, const StoreOfSale& store, const std::string& mark) override;
  bool renew_store(const std::string& sale, const std::string& before,
                   const StoreOfSale& store) override;
  std::vector<std::string> sold_elsewhere() override;
  std::string mark(const std::string& sale) override { return sessions_.links().find(sale).mark; }
  std::vector<SaleOrder> page(const std::string& sale, std::int64_t after,
                              std::size_t most) override;
  std::vector<SaleOrder> find(const std::string& sale, std::span<const std::int64_t> ids) override;
  std::vector<bool> are_taken(const std::string& sale, std::span<const SaleOrder> orders) override;
  std::vector<BuyerTotals> totals(const std::string& sale,
                                  std::span<const BuyerId> buyers) override;
  DatabaseTotals totals(const std::string& sale) override;
  OrderFigures figures(const std::string& sale) override;
  std::vector<std::string> sales() override;
  std::optional<DatabaseStock> stock(const std::string& sale) override;
  void keep_definition(const std::string& sale, const Fields& fields) override;
  void change_definition(const std::string& sale, const std::string& field,
                         const std::string& value) override;
  Fields definition(const std::string& sale) override;
  std::int64_t buyers_above(const std::string& sale, std::int64_t limit) override;
  std::optional<SaleOrder> find_number(const std::string& sale, const std::string& number) override;
  std::vector<SaleOrder> orders_of(const std::string& sale, const BuyerId& buyer,
                                   std::int64_t after, std::size_t most) override;
  std::vector<SaleOrder> newest(const std::string& sale, const OrderQuery& which,
                                std::size_t most) override;
  std::optional<SaleOrder> find_request(const std::string& sale, const BuyerId& buyer,
                                        const RequestId& request) override;
  EndedOrder end_order(const std::string& sale, std::int64_t id, OrderState state,
                       const std::string& reason) override;
  InsertResult insert_ended(const std::string& sale, const SaleOrder& order, OrderState state,
                            const std::string& reason, std::int64_t epoch) override;
  std::vector<std::string> reasons(const std::string& sale,
                                   std::span<const std::int64_t> ids) override;
  std::vector<OrderReturn> returns(const std::string& sale, std::int64_t after, std::size_t most,
                                   bool only_pending) override;
  void return_done(const std::string& sale, std::int64_t id, std::int64_t seq) override;
  void returns_done(const std::string& sale, std::span<const OrderReturn> returns) override;
  std::optional<StockChange> begin_stock_change(const std::string& sale,
                                                std::int64_t stock) override;
  std::optional<StockChange> pending_stock_change(const std::string& sale) override;
  void end_stock_change(const std::string& sale, std::int64_t seq, bool applied) override;
  std::int64_t last_stock_change(const std::string& sale) override;
  void note_stock_change(const std::string& sale, std::int64_t seq, std::int64_t stock) override;
  OrderPayments& payments() override { return payments_; }
  void check_writable() override;
  std::string identity() override;
  WallTime wall() override;
  std::string describe() const override { return dialect().description; }

 private:
  const SqlDialect& dialect() const noexcept { return sessions_.dialect(); }

  // order_store.cpp
  long long id_of(Connection& at, const std::string& sale) const {
    return id_of_sale(at, dialect(), sale);
  }
  long long locked_id(Connection& at, const std::string& sale) const {
    return locked_sale(at, dialect(), sale);
  }
  static long long id_or_none(Connection& at, const std::string& sale);
  static std::int64_t epoch_of(Connection& at, long long sale);
  static DatabaseStock stock_of(Connection& at, long long sale);
  std::string unless_there(std::string_view column) const;
  void enter_store(Connection& at, long long sale, const StoreOfSale& store, long long epoch) const;

  // insert.cpp
  bool insert_together(Connection& at, long long sale, std::span<const SaleOrder> orders,
                       std::int64_t epoch) const;
  static std::vector<SaleOrder> not_there(Connection& at, long long sale,
                                          std::span<const SaleOrder> orders, InsertResult& result);
  std::string insert_one(Connection& at, long long sale, const SaleOrder& order, std::int64_t epoch,
                         InsertResult& result) const;
  std::string insert_row(Connection& at, long long sale, const SaleOrder& order,
                         InsertResult& result) const;
  long long insert_rows(Connection& at, long long sale, std::span<const SaleOrder> orders) const;
  static bool take_units(Connection& at, long long sale, std::int64_t units, std::int64_t epoch);

  // read.cpp
  static std::optional<SaleOrder> find(Connection& at, long long sale, std::int64_t id);
  static std::vector<SaleOrder> find(Connection& at, long long sale,
                                     std::span<const std::int64_t> ids);
  static bool is_taken(Connection& at, long long sale, const SaleOrder& order);

  // ending.cpp
  static std::optional<Happened> end(const SaleTransaction& sale, OrderRow& row, OrderState state,
                                     const std::string& reason);

  // stock_changes.cpp
  static std::optional<StockChange> pending(Connection& at, long long sale);
  static long long last_change(Connection& at, long long sale);
  void change_stock(Connection& at, const std::string& name, long long sale, long long delta) const;
  void end_change(Connection& at, const std::string& name, long long sale,
                  const StockChange& change, bool applied) const;

  SqlSessions sessions_;
  SqlOrderPayments payments_;
  std::mutex identity_mutex_;
  std::string identity_;
};

}  // namespace sluice::sale
