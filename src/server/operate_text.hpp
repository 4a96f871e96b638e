/// What operators see, as JSON.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "http/response.hpp"
#include "server/shop.hpp"
#include "sluice/order_payments.hpp"
#include "sluice/waiting_room.hpp"

namespace sluice::server {

/// "2026-01-02T03:04:05.678Z": always with milliseconds.
std::string millisecond_text(WallTime time);
Json json_of(const std::optional<WallTime>& time);

/// Text of errors and other programs: no longer than a line of a page has room for.
std::string_view cut(std::string_view text);
/// The first of the sales that are not served, and why not.
Json json_of(const std::map<std::string, std::string, std::less<>>& not_served);

Json json_of(const KeptPayment& kept);
/// With what it tells of.
Json json_of(const OrderMessage& message);

/// Has texts of buyers: a browser takes it for nothing but what it says it is.
http::Response for_operators(http::Response answer);

/// How a sale stands for its operators.
struct WatchedSale {
  std::shared_ptr<Offer> offer;
  bool is_known = false;  ///< the store has said how it stands
  SaleStatus status;
  std::vector<SaleStatus> buckets = {};  ///< none: the stock lies in one place
  std::int64_t under_way = 0;            ///< units on their way between buckets
  OrderFlow flow;
  std::optional<WaitingRoomStatus> room;
  std::string trouble;                ///< why it could not be asked, or its worker ended
  double admitted_per_s = 0;          ///< by all processes
  double let_in_per_s = 0;            ///< into the room
  std::optional<OrderFigures> money;  ///< empty: the database has not said yet
};
Json json_of(const WatchedSale& view);

/// How this process stands.
struct WatchedProcess {
  std::string name;  ///< "host:4711"
  std::chrono::seconds uptime{};
  std::string trouble;
  std::int64_t connections = 0;
  double requests_per_s = 0;
};
Json json_of(const WatchedProcess& view);

}  // namespace sluice::server
