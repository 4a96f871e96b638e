/// An OrderStore that a test watches: it is told of each call before it is forwarded, and may
/// throw.
#pragma once

#include <functional>
#include <string_view>

#include "sluice/order_store.hpp"

namespace sluice::test {

class WatchedOrders : public OrderStore {
 public:
  explicit WatchedOrders(OrderStore& orders) : orders_(orders) {}

  std::function<void(std::string_view call)> before = [](std::string_view) {};

  void add_sale(const std::string& sale, std::int64_t stock) override {
    before("add_sale");
    return orders_.add_sale(sale, stock);
  }
  InsertResult insert(const std::string& sale, std::span<const SaleOrder> orders,
                      std::int64_t epoch) override {
    before("insert");
    return orders_.insert(sale, orders, epoch);
  }
  std::int64_t begin_epoch(const std::string& sale, std::int64_t above, const StoreOfSale& store,
                           const std::string& token) override {
    before("begin_epoch");
    return orders_.begin_epoch(sale, above, store, token);
  }
  std::string epoch_token(const std::string& sale) override {
    before("epoch_token");
    return orders_.epoch_token(sale);
  }
  std::optional<StoreOfSale> store_of(const std::string& sale) override {
    before("store_of");
    return orders_.store_of(sale);
  }
  bool sell_in(const std::string& sale, const StoreOfSale& store,
               const std::string& mark) override {
    before("sell_in");
    return orders_.sell_in(sale, store, mark);
  }
  bool renew_store(const std::string& sale, const std::string& id,
                   const StoreOfSale& store) override {
    before("renew_store");
    return orders_.renew_store(sale, id, store);
  }
  std::vector<std::string> sold_elsewhere() override {
    before("sold_elsewhere");
    return orders_.sold_elsewhere();
  }
  std::string mark(const std::string& sale) override { return orders_.mark(sale); }
  std::int64_t epoch(const std::string& sale) override {
    before("epoch");
    return orders_.epoch(sale);
  }
  std::vector<SaleOrder> orders_of(const std::string& sale, const BuyerId& buyer,
                                   std::int64_t after, std::size_t most) override {
    before("orders_of");
    return orders_.orders_of(sale, buyer, after, most);
  }
  std::vector<SaleOrder> newest(const std::string& sale, const OrderQuery& which,
                                std::size_t most) override {
    before("newest");
    return orders_.newest(sale, which, most);
  }
  OrderFigures figures(const std::string& sale) override {
    before("figures");
    return orders_.figures(sale);
  }
  std::vector<SaleOrder> page(const std::string& sale, std::int64_t after,
                              std::size_t most) override {
    before("page");
    return orders_.page(sale, after, most);
  }
  std::vector<SaleOrder> find(const std::string& sale, std::span<const std::int64_t> ids) override {
    before("find");
    return orders_.find(sale, ids);
  }
  std::vector<bool> are_taken(const std::string& sale, std::span<const SaleOrder> orders) override {
    before("are_taken");
    return orders_.are_taken(sale, orders);
  }
  std::vector<BuyerTotals> totals(const std::string& sale,
                                  std::span<const BuyerId> buyers) override {
    before("totals");
    return orders_.totals(sale, buyers);
  }
  DatabaseTotals totals(const std::string& sale) override {
    before("totals");
    return orders_.totals(sale);
  }
  std::vector<std::string> sales() override {
    before("sales");
    return orders_.sales();
  }
  std::optional<DatabaseStock> stock(const std::string& sale) override {
    before("stock");
    return orders_.stock(sale);
  }
  void keep_definition(const std::string& sale, const Fields& fields) override {
    before("keep_definition");
    return orders_.keep_definition(sale, fields);
  }
  void change_definition(const std::string& sale, const std::string& field,
                         const std::string& value) override {
    before("change_definition");
    return orders_.change_definition(sale, field, value);
  }
  Fields definition(const std::string& sale) override {
    before("definition");
    return orders_.definition(sale);
  }
  std::int64_t buyers_above(const std::string& sale, std::int64_t limit) override {
    before("buyers_above");
    return orders_.buyers_above(sale, limit);
  }
  std::optional<SaleOrder> find_number(const std::string& sale,
                                       const std::string& number) override {
    before("find_number");
    return orders_.find_number(sale, number);
  }
  std::optional<SaleOrder> find_request(const std::string& sale, const BuyerId& buyer,
                                        const RequestId& request) override {
    before("find_request");
    return orders_.find_request(sale, buyer, request);
  }
  EndedOrder end_order(const std::string& sale, std::int64_t id, OrderState state,
                       const std::string& reason) override {
    before("end_order");
    return orders_.end_order(sale, id, state, reason);
  }
  InsertResult insert_ended(const std::string& sale, const SaleOrder& order, OrderState state,
                            const std::string& reason, std::int64_t epoch) override {
    before("insert_ended");
    return orders_.insert_ended(sale, order, state, reason, epoch);
  }
  std::vector<std::string> reasons(const std::string& sale,
                                   std::span<const std::int64_t> ids) override {
    before("reasons");
    return orders_.reasons(sale, ids);
  }
  std::vector<OrderReturn> returns(const std::string& sale, std::int64_t after, std::size_t most,
                                   bool only_pending) override {
    before("returns");
    return orders_.returns(sale, after, most, only_pending);
  }
  void return_done(const std::string& sale, std::int64_t id, std::int64_t seq) override {
    before("return_done");
    return orders_.return_done(sale, id, seq);
  }
  void returns_done(const std::string& sale, std::span<const OrderReturn> returns) override {
    for (std::size_t i = 0; i < returns.size(); ++i) before("return_done");
    return orders_.returns_done(sale, returns);
  }
  std::optional<StockChange> begin_stock_change(const std::string& sale,
                                                std::int64_t stock) override {
    before("begin_stock_change");
    return orders_.begin_stock_change(sale, stock);
  }
  std::optional<StockChange> pending_stock_change(const std::string& sale) override {
    before("pending_stock_change");
    return orders_.pending_stock_change(sale);
  }
  void end_stock_change(const std::string& sale, std::int64_t seq, bool applied) override {
    before("end_stock_change");
    return orders_.end_stock_change(sale, seq, applied);
  }
  std::int64_t last_stock_change(const std::string& sale) override {
    before("last_stock_change");
    return orders_.last_stock_change(sale);
  }
  void note_stock_change(const std::string& sale, std::int64_t seq, std::int64_t stock) override {
    before("note_stock_change");
    return orders_.note_stock_change(sale, seq, stock);
  }
  WallTime wall() override {
    before("wall");
    return orders_.wall();
  }
  OrderPayments& payments() override {
    before("payments");
    return orders_.payments();
  }
  void check_writable() override {
    before("check_writable");
    orders_.check_writable();
  }
  std::string identity() override {
    before("identity");
    return orders_.identity();
  }
  std::string describe() const override { return orders_.describe(); }

 private:
  OrderStore& orders_;
};

}  // namespace sluice::test
