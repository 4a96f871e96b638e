/// Sales and orders as JSON, its schemas, and the answer to each outcome.
#pragma once

#include <string>
#include <string_view>

#include "http/response.hpp"
#include "sluice/bucketed_sale.hpp"
#include "sluice/order_payments.hpp"

namespace sluice::server {

extern const std::string sale_schema;
extern const std::string sale_list_schema;
extern const std::string order_schema;
extern const std::string order_details_schema;
extern const std::string buy_schema;
extern const std::string cancel_schema;
extern const std::string refund_schema;
extern const std::string order_list_schema;

Json json_of(const SaleDefinition& sale, const BucketedStatus& status);
/// What the shop sees of an order beyond its buyer.
struct ShopsView {
  std::string reason;  ///< why it ended
  std::vector<Refund> refunds;
};
/// An order as its buyer, the shop or an operator sees it: there is one JSON of orders.
struct ShownOrder {
  SaleOrder order;
  bool is_recorded = false;  ///< the database has it; otherwise it is on its way there
  std::optional<PayableOrder> money = {};  ///< as the database has it
  std::optional<ShopsView> to_shop = {};
};
Json json_of(std::string_view sale, const ShownOrder& shown);
Json json_of(const Refund& refund);
/// As the store has told it to its buyer, who may know it from before: whether the database has it
/// is not said.
Json told_json(std::string_view sale, const SaleOrder& order);
/// Of the state in which an order stands.
std::string tag_of(const ShownOrder& shown);
/// "/v1/sales/maotai/orders/123"
std::string path_of(std::string_view sale, const SaleOrder& order);

/// `left`: of not_enough alone.
http::Response answer_of(const SaleDefinition& sale, const Admission& admission,
                         std::int64_t left = 0);
http::Response answer_of(const http::Request& request, std::string_view sale,
                         const ShownOrder& shown);

}  // namespace sluice::server
