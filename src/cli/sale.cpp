#include "sluice/sale.hpp"

#include <fmt/format.h>

#include "base/integer.hpp"
#include "base/random.hpp"
#include "cli/command.hpp"
#include "cli/command_line/exit_code.hpp"
#include "cli/command_line/signals.hpp"
#include "cli/command_line/streams.hpp"
#include "cli/output.hpp"
#include "sluice/order_store.hpp"
#include "sluice/order_worker.hpp"
#include "sluice/sale_audit.hpp"

namespace sluice::cli {
namespace {

struct SaleArgs {
  SaleDefinition definition;
  std::string buyer;
  std::string request;
  std::int64_t units = 1;
  std::string orders = "sqlite:orders.db";
  std::string revive;
  bool until_empty = false;
};

Sale load_sale(Store& store, const std::string& name) {
  auto sale = Sale::load(store, name).get();
  if (!sale)
    throw Error{Errc::bad_argument,
                fmt::format("{} knows no sale '{}': make it with 'sluice sale create {} --stock N'",
                            store.describe(), name, name)};
  return std::move(*sale);
}

int create(const Globals& globals, const SaleArgs& args) {
  const auto store = open_store(globals);
  const Sale sale = Sale::create(*store, args.definition).get();
  warn_if_in_memory(globals, "the sale");
  print(globals.json,
        Json::object(
            {{"ok", true}, {"sale", args.definition.name}, {"stock", args.definition.stock}}),
        fmt::format("sale '{}' with {} units", args.definition.name, args.definition.stock));
  return exit_ok;
}

int buy(const Globals& globals, const SaleArgs& args) {
  const auto store = open_store(globals);
  Sale sale = load_sale(*store, args.definition.name);
  const std::string request = args.request.empty() ? random_uuid() : args.request;
  const Admission answer = sale.buy(BuyerId{args.buyer}, RequestId{request}, args.units).get();
  Json json = Json::object(
      {{"ok", answer.has_order()}, {"outcome", to_string(answer.outcome)}, {"request", request}});
  std::string text{to_string(answer.outcome)};
  if (const auto& order = answer.order) {
    json.add("order", Json::object({{"number", order->number},
                                    {"id", std::to_string(order->id)},
                                    {"units", order->units}}));
    text += fmt::format(": order {}, id {}, {} unit(s)", order->number, order->id, order->units);
    if (order->request.value == request && order->units != args.units)
      complain("request '{}' bought {} unit(s) the first time; the {} of this time were not bought",
               request, order->units, args.units);
  }
  if (answer.has_order()) text += fmt::format(", request {}", request);
  print(globals.json, json, text);
  return answer.has_order() ? exit_ok : exit_refused;
}

int status(const Globals& globals, const SaleArgs& args) {
  const auto store = open_store(globals);
  const SaleStatus now = load_sale(*store, args.definition.name).status().get();
  print(globals.json,
        Json::object({{"ok", true},
                      {"state", to_string(now.state)},
                      {"stock", now.stock},
                      {"sold", now.sold},
                      {"left", now.left()},
                      {"orders", now.orders},
                      {"waiting", now.waiting},
                      {"dead", now.dead}}),
        fmt::format("{}: {} of {} sold in {} orders, {} left; {} on their way to the database, {} "
                    "dead letters",
                    to_string(now.state), now.sold, now.stock, now.orders, now.left(), now.waiting,
                    now.dead));
  return exit_ok;
}

int close(const Globals& globals, const SaleArgs& args) {
  const auto store = open_store(globals);
  load_sale(*store, args.definition.name).close().get();
  print(globals.json, Json::object({{"ok", true}}),
        fmt::format("sale '{}' is closed", args.definition.name));
  return exit_ok;
}

/// "1767369600000-0", as the letters are listed; a server calls others an error of its own.
bool is_letter_id(std::string_view id) {
  const auto dash = id.find('-');
  return dash != id.npos && parse_integer<std::uint64_t>(id.substr(0, dash)) &&
         parse_integer<std::uint64_t>(id.substr(dash + 1));
}

int dead_letters(const Globals& globals, const SaleArgs& args) {
  const auto store = open_store(globals);
  Sale sale = load_sale(*store, args.definition.name);
  if (!args.revive.empty()) {
    const bool found = is_letter_id(args.revive) && sale.revive(args.revive).get();
    print(globals.json, Json::object({{"ok", found}}),
          found ? "sent to the workers again" : "there is no such dead letter");
    return found ? exit_ok : exit_refused;
  }
  Json all = Json::array();
  std::string after;
  for (auto page = sale.dead_letters().get(); !page.empty();
       page = sale.dead_letters(after).get()) {
    for (const auto& letter : page) {
      after = letter.id;
      const std::string number = letter.order ? letter.order->number : "not an order";
      all.add(Json::object({{"id", letter.id}, {"reason", letter.reason}, {"number", number}}));
      if (!globals.json) put("{}  {}  {}\n", letter.id, number, letter.reason);
    }
  }
  if (globals.json) print(Json::object({{"ok", after.empty()}, {"dead_letters", all}}));
  return after.empty() ? exit_ok : exit_check_failed;
}

int audit_sale(const Globals& globals, const SaleArgs& args) {
  const auto store = open_store(globals);
  Sale sale = load_sale(*store, args.definition.name);
  const auto orders = open_order_store(args.orders);
  const SaleAudit found = audit(*store, sale, *orders);
  if (!globals.json) print_checks(found.checks);
  print(globals.json,
        Json::object({{"ok", found.ok()},
                      {"checks", json_of(found.checks)},
                      {"admitted", found.admitted},
                      {"in_database", found.in_database},
                      {"on_the_way", found.on_the_way},
                      {"dead", found.dead}}),
        fmt::format("{} admitted, {} in the database, {} on their way, {} dead letters",
                    found.admitted, found.in_database, found.on_the_way, found.dead));
  return found.ok() ? exit_ok : exit_check_failed;
}

/// Until SIGINT or SIGTERM, or with --until-empty until the stream is.
int work(const Globals& globals, const SaleArgs& args) {
  const StopOnSignal stop;
  const auto store = open_store(globals);
  const Sale sale = load_sale(*store, args.definition.name);
  const auto orders = open_order_store(args.orders);
  OrderWorker worker{*store, sale, *orders};
  if (args.until_empty) {
    worker.drain(stop.token());
  } else {
    worker.run(stop.token());
  }
  const WorkerProgress done = worker.progress();
  print(globals.json,
        Json::object({{"ok", done.dead == 0},
                      {"inserted", done.inserted},
                      {"repeated", done.repeated},
                      {"dead", done.dead}}),
        fmt::format("{} orders written, {} were there already, {} dead letters", done.inserted,
                    done.repeated, done.dead));
  return done.dead == 0 ? exit_ok : exit_check_failed;
}

std::vector<Option> definition_options(SaleDefinition& definition) {
  constexpr std::int64_t most = 1'000'000'000'000;
  return {{"--stock", "N", "Units to sell", into(definition.stock, 0, most), true},
          {"--type", "TEXT", "What order numbers begin with; no other sale of the store has it",
           into(definition.number_type), true},
          {"--limit", "N", "Orders a buyer may have; 0: no limit", into(definition.limit, 0, most)},
          {"--largest-order", "N", "Units an order may have; 0: no bound",
           into(definition.largest_order, 0, most)},
          {"--zone", "ZONE", "IANA zone of the order numbers' days", into(definition.zone)},
          {"--digits", "N", "Width of an order number's counter", into(definition.digits, 1, 12)}};
}

}  // namespace

Command sale_command(const Globals& globals) {
  const auto args = std::make_shared<SaleArgs>();
  const auto verb = [&](std::string name, std::string summary, std::vector<Option> options,
                        int (*run)(const Globals&, const SaleArgs&)) {
    return Command{.name = std::move(name),
                   .summary = std::move(summary),
                   .arguments = {{"NAME", "Name of the sale", into(args->definition.name)}},
                   .options = std::move(options),
                   .action = [&globals, args, run] { return run(globals, *args); }};
  };
  const Option orders{"--orders", "URL", "The database of the orders", into(args->orders)};
  return {
      .name = "sale",
      .summary = "Define, hold and audit flash sales",
      .commands = {
          verb("create", "Define a sale", definition_options(args->definition), create),
          verb("buy", "Buy for one buyer",
               {{"--buyer", "NAME", "Who buys", into(args->buyer), true},
                {"--request", "ID",
                 "The same again gets the same order; without it each call is a new wish",
                 into(args->request)},
                {"--units", "N", "How many, all or none", into(args->units, 1, 1'000'000'000'000)}},
               buy),
          verb("status", "Stock, orders, and what is on its way", {}, status),
          verb("close", "Admit nobody any more", {}, close),
          verb("dead", "Orders that the database refused",
               {{"--revive", "ID", "Send the dead letter with this id to the workers again",
                 into(args->revive)}},
               dead_letters),
          verb("work", "Move orders into the database until a signal comes",
               {orders,
                {"--until-empty", "", "End when no order is left in the stream",
                 into(args->until_empty)}},
               work),
          verb("audit", "Compare store and database to the last unit", {orders}, audit_sale)}};
}

}  // namespace sluice::cli
