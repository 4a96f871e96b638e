#include "sluice/sale.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/checks.hpp"
#include "cli/command.hpp"
#include "cli/exit_code.hpp"
#include "cli/signals.hpp"
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

void print(const Globals& globals, nlohmann::json json, const std::string& text) {
  fmt::print("{}\n", globals.json ? json.dump() : text);
}

int create(const Globals& globals, const SaleArgs& args) {
  const auto store = open_store(globals);
  const Sale sale = Sale::create(*store, args.definition).get();
  print(globals, {{"ok", true}, {"sale", args.definition.name}, {"stock", args.definition.stock}},
        fmt::format("sale '{}' with {} units", args.definition.name, args.definition.stock));
  return exit_ok;
}

int buy(const Globals& globals, const SaleArgs& args) {
  const auto store = open_store(globals);
  Sale sale = load_sale(*store, args.definition.name);
  const std::string request = args.request.empty() ? args.buyer : args.request;
  const Admission answer = sale.buy(BuyerId{args.buyer}, RequestId{request}, args.units).get();
  nlohmann::json json{{"ok", answer.has_order()}, {"outcome", to_string(answer.outcome)}};
  std::string text{to_string(answer.outcome)};
  if (answer.order) {
    json["order"] = {{"number", answer.order->number},
                     {"id", std::to_string(answer.order->id)},
                     {"units", answer.order->units}};
    text += fmt::format(": order {}, id {}, {} unit(s)", answer.order->number, answer.order->id,
                        answer.order->units);
  }
  print(globals, json, text);
  return answer.has_order() ? exit_ok : exit_refused;
}

int status(const Globals& globals, const SaleArgs& args) {
  const auto store = open_store(globals);
  const SaleStatus now = load_sale(*store, args.definition.name).status().get();
  print(globals,
        {{"ok", true},
         {"state", to_string(now.state)},
         {"stock", now.stock},
         {"sold", now.sold},
         {"left", now.left()},
         {"orders", now.orders},
         {"waiting", now.waiting},
         {"dead", now.dead}},
        fmt::format("{}: {} of {} sold in {} orders, {} left; {} on their way to the database, {} "
                    "dead letters",
                    to_string(now.state), now.sold, now.stock, now.orders, now.left(), now.waiting,
                    now.dead));
  return exit_ok;
}

int close(const Globals& globals, const SaleArgs& args) {
  const auto store = open_store(globals);
  load_sale(*store, args.definition.name).close().get();
  print(globals, {{"ok", true}}, fmt::format("sale '{}' is closed", args.definition.name));
  return exit_ok;
}

int dead_letters(const Globals& globals, const SaleArgs& args) {
  const auto store = open_store(globals);
  Sale sale = load_sale(*store, args.definition.name);
  if (!args.revive.empty()) {
    const bool found = sale.revive(args.revive).get();
    print(globals, {{"ok", found}},
          found ? "sent to the workers again" : "there is no such dead letter");
    return found ? exit_ok : exit_refused;
  }
  nlohmann::json all = nlohmann::json::array();
  std::string after;
  for (auto page = sale.dead_letters().get(); !page.empty();
       page = sale.dead_letters(after).get()) {
    for (const auto& letter : page) {
      after = letter.id;
      const std::string number = letter.order ? letter.order->number : "not an order";
      all.push_back({{"id", letter.id}, {"reason", letter.reason}, {"number", number}});
      if (!globals.json) fmt::print("{}  {}  {}\n", letter.id, number, letter.reason);
    }
  }
  if (globals.json)
    fmt::print("{}\n", nlohmann::json{{"ok", all.empty()}, {"dead_letters", all}}.dump());
  return all.empty() ? exit_ok : exit_check_failed;
}

int audit_sale(const Globals& globals, const SaleArgs& args) {
  const auto store = open_store(globals);
  Sale sale = load_sale(*store, args.definition.name);
  const auto orders = open_order_store(args.orders);
  const Audit found = audit(*store, sale, *orders);
  if (!globals.json) {
    print_checks(found.checks);
    fmt::print("{} admitted, {} in the database, {} on their way, {} dead letters\n",
               found.admitted, found.in_database, found.on_the_way, found.dead);
  } else {
    fmt::print("{}\n", nlohmann::json{{"ok", found.ok()},
                                      {"checks", json_of(found.checks)},
                                      {"admitted", found.admitted},
                                      {"in_database", found.in_database},
                                      {"on_the_way", found.on_the_way},
                                      {"dead", found.dead}}
                           .dump());
  }
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
  print(globals,
        {{"ok", done.dead == 0},
         {"inserted", done.inserted},
         {"repeated", done.repeated},
         {"dead", done.dead}},
        fmt::format("{} orders written, {} were there already, {} dead letters", done.inserted,
                    done.repeated, done.dead));
  return done.dead == 0 ? exit_ok : exit_check_failed;
}

CLI::App* add_verb(CLI::App& sale, const char* verb, const char* help, SaleArgs& args) {
  auto* const command = sale.add_subcommand(verb, help);
  command->add_option("NAME", args.definition.name, "Name of the sale")->required();
  return command;
}

using Verb = int (*)(const Globals&, const SaleArgs&);

}  // namespace

void add_sale_command(CLI::App& app, const Globals& globals, Action& action) {
  auto* const sale = app.add_subcommand("sale", "Define, hold and audit flash sales");
  sale->require_subcommand(1);
  const auto args = std::make_shared<SaleArgs>();
  const auto runs = [&globals, &action, args](CLI::App* command, Verb verb) {
    command->callback([&globals, &action, args, verb] {
      action = [&globals, args, verb] { return verb(globals, *args); };
    });
  };
  const auto orders = [&](CLI::App* command) {
    command->add_option("--orders", args->orders, "The database of the orders")
        ->capture_default_str();
  };

  auto* verb = add_verb(*sale, "create", "Define a sale", *args);
  verb->add_option("--stock", args->definition.stock, "Units to sell")->required();
  verb->add_option("--limit", args->definition.limit, "Orders a buyer may have; 0: no limit")
      ->capture_default_str();
  verb->add_option("--largest-order", args->definition.largest_order,
                   "Units an order may have; 0: no bound");
  verb->add_option("--type", args->definition.number_type, "What order numbers begin with")
      ->capture_default_str();
  verb->add_option("--zone", args->definition.zone, "IANA zone of the order numbers' days")
      ->capture_default_str();
  verb->add_option("--digits", args->definition.digits, "Width of an order number's counter")
      ->capture_default_str();
  runs(verb, create);

  verb = add_verb(*sale, "buy", "Buy for one buyer", *args);
  verb->add_option("--buyer", args->buyer, "Who buys")->required();
  verb->add_option("--request", args->request,
                   "The same again gets the same order; default: the buyer");
  verb->add_option("--units", args->units, "How many, all or none")->capture_default_str();
  runs(verb, buy);

  runs(add_verb(*sale, "status", "Stock, orders, and what is on its way", *args), status);
  runs(add_verb(*sale, "close", "Admit nobody any more", *args), close);

  verb = add_verb(*sale, "dead", "Orders that the database refused", *args);
  verb->add_option("--revive", args->revive,
                   "Send the dead letter with this id to the workers again");
  runs(verb, dead_letters);

  verb = add_verb(*sale, "work", "Move orders into the database until a signal comes", *args);
  orders(verb);
  verb->add_flag("--until-empty", args->until_empty, "End when no order is left in the stream");
  runs(verb, work);

  verb = add_verb(*sale, "audit", "Compare store and database to the last unit", *args);
  orders(verb);
  runs(verb, audit_sale);
}

}  // namespace sluice::cli
