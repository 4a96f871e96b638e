// Orders of a sale that end, or of which a part is taken back.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/command_line/exit_code.hpp"
#include "cli/output.hpp"
#include "cli/sale_args.hpp"

namespace sluice::cli {
namespace {

std::string_view word_of(UnitsResult::Outcome outcome) {
  using enum UnitsResult::Outcome;
  switch (outcome) {
    case cancelled: return "taken back";
    case repeated: return "repeated";
    case other_units: return "other units";
    case ended: return "ended";
    case too_many: return "too many";
    case unknown: return "unknown";
  }
  return "unknown";
}

std::string text_of(const UnitsResult& result) {
  using enum UnitsResult::Outcome;
  if (result.outcome == unknown || !result.order) return "there is no such order";
  const auto& order = result.order->order;
  if (result.outcome == ended)
    return fmt::format("order {} is {}: nothing is left of it", order.number,
                       to_string(order.state));
  if (result.outcome == too_many)
    return fmt::format("order {} has {} unit(s) left", order.number,
                       order.units - result.order->returned);
  if (result.outcome == other_units)
    return fmt::format("this key took back {} unit(s) of order {} before: use another key",
                       result.units, order.number);
  return fmt::format("{} unit(s) of order {} {} taken back{}", result.units, order.number,
                     result.outcome == repeated ? "were before" : "are",
                     result.refund == 0 ? "; nothing was paid for them"
                                        : fmt::format("; {} goes back", result.refund));
}

}  // namespace

int cancel_order(const Globals& globals, const SaleArgs& args) {
  const auto store = open_store_of_sale(globals);
  Sale sale = load_sale_of_order(*store, args);
  const auto orders = open_orders(args, *store);
  BuyerId buyer{args.buyer};
  RequestId request{args.request};
  if (args.number.empty() == (buyer.value.empty() || request.value.empty()))
    throw Error{Errc::bad_argument, "say which order: --number, or --buyer and --request"};
  if (!args.number.empty()) {
    const auto order = orders->find_number(sale.definition().name, args.number);
    if (order) buyer = order->buyer, request = order->request;
  }
  EndedOrder ended;
  if (!buyer.value.empty()) ended = sale.cancel(*orders, buyer, request, args.reason);
  if (!ended.order) {
    print(globals.json, Json::object({{"ok", false}, {"cancelled", false}}),
          "there is no such order; one that is still on its way is found by --buyer and --request");
    return exit_refused;
  }
  const auto& order = *ended.order;
  print(globals.json,
        Json::object({{"ok", true},
                      {"cancelled", ended.now},
                      {"number", order.number},
                      {"units", order.units},
                      {"state", to_string(order.state)},
                      {"reason", ended.reason}}),
        fmt::format("order {} of {} unit(s) {} {}{}", order.number, order.units,
                    ended.now ? "is" : "was before", to_string(order.state),
                    ended.reason.empty() ? "" : ": " + ended.reason));
  return exit_ok;
}

int refund_order(const Globals& globals, const SaleArgs& args) {
  const auto store = open_store_of_sale(globals);
  Sale sale = load_sale_of_order(*store, args);
  const auto orders = open_orders(args, *store);
  UnitsResult result;
  if (const auto order = orders->find_number(sale.definition().name, args.number))
    result = sale.cancel_units(*orders, order->buyer, order->request, args.refunded_units, args.key,
                               args.reason);
  using enum UnitsResult::Outcome;
  const bool is_done = result.outcome == cancelled || result.outcome == repeated;
  Json json = Json::object({{"ok", is_done}, {"outcome", word_of(result.outcome)}});
  if (result.order) {
    json.add("number", result.order->order.number);
    json.add("state", to_string(result.order->order.state));
  }
  if (is_done) {
    json.add("units", result.units);
    json.add("refund", result.refund);
  }
  print(globals.json, json, text_of(result));
  return is_done ? exit_ok : exit_refused;
}

namespace {

bool is_bucket(OrderStore& orders, const std::string& name) {
  const auto fields = orders.definition(name);
  return std::ranges::any_of(fields, [](const auto& field) { return field.first == "bucket"; });
}

}  // namespace

std::vector<std::string> rows_of(OrderStore& orders, const std::string& sale) {
  if (orders.stock(sale)) return {sale};
  std::vector<std::string> rows;
  for (auto& name : orders.sales())
    if (name.starts_with(sale) && name.rfind(':') == sale.size() && is_bucket(orders, name))
      rows.push_back(std::move(name));
  if (rows.empty()) rows.push_back(sale);
  return rows;
}

std::vector<Option> cancel_options(SaleArgs& args, const Option& orders) {
  return {{"--number", "NUMBER", "The order with this number", into_word(args.number)},
          {"--buyer", "NAME", "Or the order of this buyer", into_word(args.buyer)},
          {"--request", "ID", "and this request", into_word(args.request)},
          {"--reason", "TEXT", "Kept with the order", into(args.reason)},
          orders};
}

std::vector<Option> refund_options(SaleArgs& args, const Option& orders) {
  return {
      {"--number", "NUMBER", "The order with this number", into_word(args.number), true},
      {"--units", "N", "So many of its units; without it all that are left",
       into(args.refunded_units, 1, 1'000'000'000'000)},
      {"--key", "KEY", "Names this wish: the same again takes nothing more back",
       into_word(args.key), true},
      {"--reason", "TEXT", "Kept with the order where nothing of it is left", into(args.reason)},
      orders};
}

}  // namespace sluice::cli
