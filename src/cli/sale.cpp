#include "sluice/sale.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <variant>

#include "base/instant.hpp"
#include "base/integer.hpp"
#include "base/random.hpp"
#include "cli/command.hpp"
#include "cli/command_line/exit_code.hpp"
#include "cli/command_line/signals.hpp"
#include "cli/command_line/streams.hpp"
#include "cli/missing_places.hpp"
#include "cli/output.hpp"
#include "cli/sale_args.hpp"
#include "cli/sales_file.hpp"
#include "sluice/bucketed_sale.hpp"
#include "sluice/order_store.hpp"
#include "sluice/order_worker.hpp"
#include "sluice/sale_audit.hpp"
#include "sluice/sale_recovery.hpp"

namespace sluice::cli {

namespace {

/// A password in it would be seen by others in `ps` where it stands on the command line.
std::string url_of_orders(const SaleArgs& args) {
  const char* const set = std::getenv("SLUICE_ORDERS");
  return !args.orders.empty() ? args.orders : set && *set ? set : "sqlite:orders.db";
}

}  // namespace

std::unique_ptr<OrderStore> open_orders(const SaleArgs& args, Store& store, bool only_reads) {
  const auto url = url_of_orders(args);
  need_database(store, args.definition.name, url, !only_reads);
  return open_order_store(url);
}

std::unique_ptr<Store> open_store_of_sale(const Globals& globals) {
  if (const auto url = store_url(globals); is_missing(url))
    throw Error{Errc::bad_argument, url + " is not there: it has no sales"};
  return open_store(globals);
}

namespace {

/// Both have the same verbs.
using AnySale = std::variant<Sale, BucketedSale>;

AnySale load_any(Store& store, const std::string& name) {
  if (auto sale = Sale::load(store, name).get()) return std::move(*sale);
  if (auto sale = BucketedSale::load(store, name).get()) return std::move(*sale);
  throw Error{Errc::bad_argument,
              fmt::format("{} knows no sale '{}': make it with 'sluice sale create {} --stock N'",
                          store.describe(), name, name)};
}

/// For what is done to the whole sale at once.
AnySale load_whole(Store& store, const std::string& name) {
  auto any = load_any(store, name);
  if (const auto* const sale = std::get_if<Sale>(&any))
    if (const auto& place = sale->definition().bucket)
      throw Error{Errc::bad_argument,
                  fmt::format("'{}' is bucket {} of {}: name the whole sale, '{}'", name,
                              place->index, place->count, name.substr(0, name.rfind(':')))};
  return any;
}

SaleStatus status_of(Sale& sale) { return sale.status().get(); }
SaleStatus status_of(BucketedSale& sale) { return sale.status().get().whole; }
SaleStatus status_of(AnySale& any) {
  return std::visit([](auto& sale) { return status_of(sale); }, any);
}

}  // namespace

/// For what is done bucket by bucket.
Sale load_sale(Store& store, const std::string& name) {
  auto any = load_any(store, name);
  if (auto* const sale = std::get_if<Sale>(&any)) return std::move(*sale);
  throw Error{Errc::bad_argument,
              fmt::format("sale '{0}' has {1} buckets: do it for each, '{0}:0' to '{0}:{2}'", name,
                          std::get<BucketedSale>(any).buckets(),
                          std::get<BucketedSale>(any).buckets() - 1)};
}

/// The one that has, or would have, the order which the options name.
Sale load_sale_of_order(Store& store, const SaleArgs& args) {
  auto any = load_any(store, args.definition.name);
  if (auto* const sale = std::get_if<Sale>(&any)) return std::move(*sale);
  auto& whole = std::get<BucketedSale>(any);
  auto* const bucket = args.number.empty() ? &whole.bucket_of(BuyerId{args.buyer})
                                           : whole.bucket_of_number(args.number);
  return std::move(bucket ? *bucket : whole.bucket(0));
}

/// A word that is not empty: one that is may come from a variable of a shell that was not set, and
/// must not mean that the option was left out.
Target into_word(std::string& word) {
  const auto set = [&word](const std::string& given) {
    if (given.empty())
      throw Error{Errc::bad_argument, "it is empty: give a value, or leave the option out"};
    word = given;
  };
  return {Target::Takes::one_word, set, {}};
}

namespace {

/// What NAME and the options, or the file, define.
std::vector<PlannedSale> definitions_of(const SaleArgs& args) {
  if (!args.file.empty()) {
    if (!args.definition.name.empty())
      throw Error{Errc::bad_argument, "give NAME and its options, or --file, not both"};
    return read_sales(args.file);
  }
  const auto need = [](bool given, const char* what) {
    if (!given) throw Error{Errc::bad_argument, fmt::format("{} is missing", what)};
  };
  need(!args.definition.name.empty(), "NAME");
  need(args.stock >= 0, "--stock");
  need(!args.definition.number_type.empty(), "--type");
  auto definition = args.definition;
  definition.stock = args.stock;
  auto payment = args.payment;
  payment.window = args.pay_within;
  payment.grace = args.grace;
  if (payment != PaymentTerms{}) definition.payment = payment;
  return {{.definition = definition, .buckets = args.buckets}};
}

void check(Store& store, const PlannedSale& sale) {
  if (sale.buckets > 1)
    BucketedSale::check(store, sale.definition, {.buckets = sale.buckets}).get();
  else
    Sale::check(store, sale.definition).get();
}

/// `orders`: null, where the database is not at hand.
void create_in(Store& store, const PlannedSale& sale, OrderStore* orders) {
  const BucketOptions options{.buckets = sale.buckets};
  if (sale.buckets > 1 && orders)
    BucketedSale::create(store, sale.definition, options, *orders);
  else if (sale.buckets > 1)
    BucketedSale::create(store, sale.definition, options).get();
  else if (orders)
    Sale::create(store, sale.definition, *orders);
  else
    Sale::create(store, sale.definition).get();
}

Json created_json(const PlannedSale& sale, Json json = Json::object()) {
  json.add("sale", sale.definition.name);
  json.add("stock", sale.definition.stock);
  if (sale.buckets > 1) json.add("buckets", sale.buckets);
  return json;
}

std::string created_text(const PlannedSale& sale) {
  const auto where = sale.buckets > 1 ? fmt::format(" in {} buckets", sale.buckets) : "";
  return fmt::format("sale '{}' with {} units{}", sale.definition.name, sale.definition.stock,
                     where);
}

int create(const Globals& globals, const SaleArgs& args) {
  if (args.buckets > 1 && !args.file.empty())
    throw Error{Errc::bad_argument,
                "--buckets is for one sale; those of --file have \"buckets\" of their own"};
  const auto sales = definitions_of(args);
  const auto store = open_store(globals);
  for (const auto& sale : sales) check(*store, sale);  // all, before any is created
  Json all = Json::array();
  std::string text;
  const auto orders = args.also_orders.empty() ? nullptr : open_order_store(args.also_orders);
  for (const auto& sale : sales) {
    create_in(*store, sale, orders.get());
    all.add(created_json(sale));
    text += fmt::format("{}{}", text.empty() ? "" : "\n", created_text(sale));
  }
  warn_if_in_memory(globals, "the sale");
  if (args.file.empty())
    print(globals.json, created_json(sales[0], Json::object({{"ok", true}})), text);
  else
    print(globals.json, Json::object({{"ok", true}, {"sales", all}}),
          text.empty() ? "the file has no sales" : text);
  return exit_ok;
}

Json status_of(const SaleStatus& now, Json::Member first) {
  return Json::object({std::move(first),
                       {"state", to_string(now.state)},
                       {"stock", now.stock},
                       {"sold", now.sold},
                       {"left", now.left()},
                       {"orders", now.orders},
                       {"waiting", now.waiting},
                       {"dead", now.dead}});
}

int list(const Globals& globals, const SaleArgs&) {
  const auto store = open_store_of_sale(globals);
  Json all = Json::array();
  for (const auto& name : Sale::names(*store).get()) {
    auto sale = Sale::load(*store, name).get();
    const SaleStatus now = sale ? sale->status().get() : SaleStatus{};
    all.add(status_of(now, {"name", name}));
    if (!globals.json)
      put("{:<24} {:<12} {:>12} of {:>12} sold, {} orders\n", name, to_string(now.state), now.sold,
          now.stock, now.orders);
  }
  if (globals.json) print(Json::object({{"ok", true}, {"sales", all}}));
  return exit_ok;
}

int buy(const Globals& globals, const SaleArgs& args) {
  const auto store = open_store_of_sale(globals);
  AnySale any = load_whole(*store, args.definition.name);
  const std::string request = args.request.empty() ? random_uuid() : args.request;
  const Admission answer = std::visit(
      [&](auto& sale) {
        return sale.buy(BuyerId{args.buyer}, RequestId{request}, args.units).get();
      },
      any);
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

int change_stock(const Globals& globals, const SaleArgs& args) {
  const auto store = open_store_of_sale(globals);
  AnySale any = load_whole(*store, args.definition.name);
  const auto orders = open_orders(args, *store);
  const bool changed =
      std::visit([&](auto& sale) { return sale.change_stock(*orders, args.stock); }, any);
  const SaleStatus now = status_of(any);
  print(globals.json,
        Json::object(
            {{"ok", changed}, {"stock", now.stock}, {"sold", now.sold}, {"left", now.left()}}),
        changed ? fmt::format("the stock is {}: {} sold, {} left", now.stock, now.sold, now.left())
        : now.sold > args.stock
            ? fmt::format("the stock stays {}: {} are sold, which is more than {}", now.stock,
                          now.sold, args.stock)
            : fmt::format("the stock stays {}; now {} are sold: try again", now.stock, now.sold));
  return changed ? exit_ok : exit_refused;
}

/// What goes on after an archive, or waits for a person: in words, and as JSON.
std::string left_open(const OrderFigures& figures, Json& json) {
  const std::pair<const char*, std::int64_t> all[] = {
      {"refunds that are not sent yet", figures.refunds},
      {"payments that a person has to look at", figures.payments_flagged},
      {"messages that are not sent yet", figures.messages},
      {"of these stopped by their receiver (sale replay)", figures.messages_stopped},
      {"messages that were given up (sale replay)", figures.messages_dead}};
  json = Json::object({{"refunds", figures.refunds},
                       {"payments_flagged", figures.payments_flagged},
                       {"messages", figures.messages},
                       {"messages_stopped", figures.messages_stopped},
                       {"messages_dead", figures.messages_dead}});
  std::string text;
  for (const auto& [what, count] : all)
    if (count > 0) text += fmt::format("{}{}: {}", text.empty() ? "; open: " : ", ", what, count);
  return text;
}

int archive(const Globals& globals, const SaleArgs& args) try {
  const StopOnSignal stop;
  const auto store = open_store_of_sale(globals);
  Sale sale = load_sale(*store, args.definition.name);
  const auto orders = open_orders(args, *store);
  const bool now = sale.archive(*orders, {.file = args.file, .step = args.step}, stop.token());
  Json open;
  const auto text = left_open(orders->figures(args.definition.name), open);
  print(globals.json, Json::object({{"ok", true}, {"archived", now}, {"open", open}}),
        fmt::format("sale '{}' {} archived; its orders are in {}{}", args.definition.name,
                    now ? "is" : "was", orders->describe(), text));
  return exit_ok;
} catch (const SaleIsNotOver& refusal) {
  report(refusal);
  return exit_refused;
}

int status_of_buckets(const Globals& globals, BucketedSale& sale) {
  const BucketedStatus now = sale.status().get();
  const auto& whole = now.whole;
  Json json = status_of(whole, {"ok", true});
  Json buckets = Json::array();
  std::string text = fmt::format(
      "{}: {} of {} sold in {} orders, {} left; {} on their way to the database, {} dead letters",
      to_string(whole.state), whole.sold, whole.stock, whole.orders, whole.left(), whole.waiting,
      whole.dead);
  for (std::size_t i = 0; i < now.buckets.size(); ++i) {
    const auto& bucket = now.buckets[i];
    buckets.add(status_of(bucket, {"bucket", i}));
    text += fmt::format("\n  bucket {:>2}: {:<10} {:>10} of {:>10} sold", i,
                        to_string(bucket.state), bucket.sold, bucket.stock);
  }
  if (now.under_way > 0) text += fmt::format("\n  {} on their way between buckets", now.under_way);
  json.add("under_way", now.under_way);
  json.add("buckets", std::move(buckets));
  print(globals.json, json, text);
  return exit_ok;
}

int status(const Globals& globals, const SaleArgs& args) {
  const auto store = open_store_of_sale(globals);
  AnySale any = load_any(*store, args.definition.name);
  if (auto* const sale = std::get_if<BucketedSale>(&any)) return status_of_buckets(globals, *sale);
  const SaleStatus now = status_of(any);
  print(globals.json, status_of(now, {"ok", true}),
        fmt::format("{}: {} of {} sold in {} orders, {} left; {} on their way to the database, {} "
                    "dead letters",
                    to_string(now.state), now.sold, now.stock, now.orders, now.left(), now.waiting,
                    now.dead));
  return exit_ok;
}

int close(const Globals& globals, const SaleArgs& args) {
  const auto store = open_store_of_sale(globals);
  AnySale any = load_whole(*store, args.definition.name);
  std::visit(
      [&](auto& sale) {
        if (args.also_orders.empty()) return sale.close().get();
        need_database(*store, args.definition.name, args.also_orders, true);
        sale.close(*open_order_store(args.also_orders));
      },
      any);
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

int give_back(const Globals& globals, const SaleArgs& args, Store& store, Sale& sale) {
  const auto orders = open_orders(args, store);
  std::optional<EndedOrder> ended;
  if (is_letter_id(args.give_back)) ended = sale.give_back(*orders, args.give_back, args.reason);
  Json json = Json::object({{"ok", ended.has_value()}});
  std::string text = "there is no such dead letter";
  if (ended) text = "the letter is removed; nobody was admitted for it, so nothing was given back";
  if (ended && ended->order) {
    const auto& order = *ended->order;
    json.add("given_back", ended->now);
    json.add("number", order.number);
    json.add("units", order.units);
    json.add("reason", ended->reason);
    text = fmt::format("order {} {} {}, and its {} unit(s) are given back; the letter is removed",
                       order.number, ended->now ? "is" : "was before", to_string(order.state),
                       order.units);
  }
  print(globals.json, json, text);
  return ended ? exit_ok : exit_refused;
}

int dead_letters(const Globals& globals, const SaleArgs& args) {
  const auto store = open_store_of_sale(globals);
  Sale sale = load_sale(*store, args.definition.name);
  if (!args.revive.empty() && !args.give_back.empty())
    throw Error{Errc::bad_argument, "give --revive or --give-back, not both"};
  if (!args.give_back.empty()) return give_back(globals, args, *store, sale);
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

Json differences_of(const SaleAudit& found) {
  Json all = Json::array();
  for (const auto& one : found.differences)
    all.add(Json::object({{"check", one.check},
                          {"where", one.where},
                          {"what", one.what},
                          {"in_store", one.in_store},
                          {"elsewhere", one.elsewhere}}));
  return all;
}

int audit_sale(const Globals& globals, const SaleArgs& args) {
  const auto store = open_store_of_sale(globals);
  const AnySale any = load_any(*store, args.definition.name);
  const auto orders = open_orders(args, *store, true);
  const SaleAudit found = std::visit(
      [&](const auto& sale) { return audit(*store, sale, *orders, {.named = args.named}); }, any);
  if (!globals.json) {
    print_checks(found.checks);
    for (const auto& one : found.differences) put("  differs {}\n", to_string(one));
    for (const auto& what : found.unknown) put("  unknown {}\n", what);
  }
  Json unknown = Json::array();
  for (const auto& what : found.unknown) unknown.add(what);
  print(globals.json,
        Json::object({{"ok", found.ok()},
                      {"checks", json_of(found.checks)},
                      {"differences", differences_of(found)},
                      {"unknown", unknown},
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
  const auto store = open_store_of_sale(globals);
  const AnySale any = load_any(*store, args.definition.name);
  const auto work_until = [&](auto& worker) {
    if (args.until_empty)
      worker.drain(stop.token());
    else
      worker.run(stop.token());
    return worker.progress();
  };
  const OrderWorkerOptions options{.recovers = args.recovers};
  WorkerProgress done;
  if (const auto* const sale = std::get_if<Sale>(&any)) {
    const auto orders = open_orders(args, *store);
    OrderWorker worker{*store, *sale, *orders, options};
    done = work_until(worker);
  } else {
    BucketedWorker worker{*store, std::get<BucketedSale>(any),
                          [&] { return open_orders(args, *store); }, options};
    done = work_until(worker);
  }
  print(globals.json,
        Json::object({{"ok", done.dead == 0},
                      {"inserted", done.inserted},
                      {"repeated", done.repeated},
                      {"dead", done.dead}}),
        fmt::format("{} orders written, {} were there already, {} dead letters", done.inserted,
                    done.repeated, done.dead));
  return done.dead == 0 ? exit_ok : exit_check_failed;
}

int recover_sale(const Globals& globals, const SaleArgs& args) {
  const auto store = args.new_store ? open_store(globals) : open_store_of_sale(globals);
  const auto orders =
      args.new_database ? open_order_store(url_of_orders(args)) : open_orders(args, *store);
  const auto& name = args.definition.name;
  const RecoveryOptions options{.new_database = args.new_database, .new_store = args.new_store};
  const bool has_buckets =
      BucketedSale::load(*store, name).get() || !orders->definition(name + ":0").empty();
  const SaleRecovery done = has_buckets ? recover_buckets(*store, name, *orders, options)
                                        : recover(*store, name, *orders, options);
  print(
      globals.json,
      Json::object({{"ok", true},
                    {"made_again", done.made_again},
                    {"in_database", done.in_database},
                    {"restored", done.restored},
                    {"given_back", done.given_back},
                    {"on_the_way", done.on_the_way},
                    {"sent_again", done.sent_again},
                    {"ended_again", done.ended_again},
                    {"gaps", done.gaps},
                    {"removed", done.removed}}),
      fmt::format("sale '{}' {}: {} of {} orders restored, {} on their way, {} sent again; {} "
                  "entries removed",
                  args.definition.name, done.made_again ? "made again" : "recovered", done.restored,
                  done.in_database, done.on_the_way, done.sent_again, done.removed));
  return exit_ok;
}

std::vector<Option> definition_options(SaleArgs& args) {
  auto& definition = args.definition;
  constexpr std::int64_t most = 1'000'000'000'000;
  return {
      {"--stock", "N", "Units to sell; needed without --file", into(args.stock, 0, most)},
      {"--type", "TEXT",
       "What order numbers begin with; no other sale of the store has it; needed without "
       "--file",
       into(definition.number_type)},
      {"--opens", "INSTANT", "From when the store's clock lets buyers in",
       into_instant(definition.opens_at)},
      {"--closes", "INSTANT", "Until when", into_instant(definition.closes_at)},
      {"--buckets", "N",
       "In so many parts, which servers share; numbers are counted in each: see buckets.md",
       into(args.buckets, 1, most_buckets)},
      {"--limit", "N", "Orders a buyer may have; 0: no limit", into(definition.limit, 0, most)},
      {"--unit-limit", "N", "Units a buyer may have in all; 0: no limit",
       into(definition.unit_limit, 0, most)},
      {"--largest-order", "N", "Units an order may have; 0: no bound",
       into(definition.largest_order, 0, most)},
      {"--zone", "ZONE", "IANA zone of the order numbers' days", into(definition.zone)},
      {"--digits", "N", "Width of an order number's counter", into(definition.digits, 1, 12)},
      {"--price", "N", "Of a unit, in the smallest unit of the currency; then orders are paid for",
       into(args.payment.price, 0, most)},
      {"--currency", "CODE", "As ISO 4217 has it: CNY", into(args.payment.currency)},
      {"--pay-within", "TIME", "How long a buyer has to pay", into(args.pay_within)},
      {"--grace", "TIME", "So much later an order that is not paid ends", into(args.grace)},
      {"--file", "FILE",
       "Instead: a JSON array of sales, with members named as these options and \"name\"; all "
       "are checked before any is created",
       into_word(args.file)},
      {"--orders", "URL",
       "The database of the orders; a sale that it knows and the store has lost is not sold "
       "twice",
       into_word(args.also_orders)}};
}

std::vector<Option> dead_options(SaleArgs& args, const Option& orders) {
  return {{"--revive", "ID", "Send the dead letter with this id to the workers again",
           into_word(args.revive)},
          {"--give-back", "ID",
           "Cancel the order of this dead letter, give its units back, and remove the letter",
           into_word(args.give_back)},
          {"--reason", "TEXT", "Kept with the order", into(args.reason)},
          orders};
}

std::vector<Option> archive_options(SaleArgs& args, const Option& orders) {
  return {orders,
          {"--file", "FILE", "Write all orders into this file, too, as CSV", into_word(args.file)},
          {"--step", "N", "How many orders are deleted at once", into(args.step, 1, 10'000)}};
}

std::vector<Option> close_options(SaleArgs& args) {
  return {{"--orders", "URL", "The database of the orders; no recovery opens the sale again then",
           into_word(args.also_orders)}};
}

std::vector<Option> recover_options(SaleArgs& args, const Option& orders) {
  return {
      orders,
      {"--new-database", "",
       "The database that the orders went into is lost; they go into this one now",
       into(args.new_database)},
      {"--new-store", "",
       "The store that the sale was sold in is lost, or came back empty; it is sold in this one "
       "now, and the other one is fenced",
       into(args.new_store)}};
}

std::vector<Option> work_options(SaleArgs& args, const Option& orders) {
  return {orders,
          {"--until-empty", "", "End when no order is left in the stream", into(args.until_empty)},
          {"--recover", "", "Recover the sale, too, when its store has lost something",
           into(args.recovers)}};
}

std::vector<Option> audit_options(SaleArgs& args, const Option& orders) {
  return {orders,
          {"--named", "N", "How many differences are named; all are counted",
           into(args.named, 0, 1'000'000)}};
}

std::vector<Option> buy_options(SaleArgs& args) {
  return {
      {"--buyer", "NAME", "Who buys", into_word(args.buyer), true},
      {"--request", "ID", "The same again gets the same order; without it each call is a new wish",
       into_word(args.request)},
      {"--units", "N", "How many, all or none", into(args.units, 1, 1'000'000'000'000)}};
}

Option orders_option(SaleArgs& args) {
  return {"--orders", "URL",
          "The database of the orders: sqlite:PATH, or postgresql:// or "
          "mariadb://USER@HOST/DATABASE; without it $SLUICE_ORDERS, else sqlite:orders.db",
          into(args.orders)};
}

}  // namespace

Command sale_command(const Globals& globals) {
  const auto args = std::make_shared<SaleArgs>();
  const auto command = [&](std::string name, std::string summary, std::vector<Argument> arguments,
                           std::vector<Option> options,
                           int (*run)(const Globals&, const SaleArgs&)) {
    return Command{.name = std::move(name),
                   .summary = std::move(summary),
                   .arguments = std::move(arguments),
                   .options = std::move(options),
                   .action = [&globals, args, run] { return run(globals, *args); }};
  };
  const auto sale_name = [&](bool required) {
    return Argument{"NAME", "Name of the sale", into(args->definition.name), required};
  };
  const auto verb = [&](std::string name, std::string summary, std::vector<Option> options,
                        int (*run)(const Globals&, const SaleArgs&)) {
    return command(std::move(name), std::move(summary), {sale_name(true)}, std::move(options), run);
  };
  const auto orders = orders_option(*args);
  return {
      .name = "sale",
      .summary = "Define, hold and audit flash sales",
      .commands = {
          command("create", "Define a sale, or all sales of a file", {sale_name(false)},
                  definition_options(*args), create),
          command("list", "All sales of the store, and how they stand", {}, {}, list),
          verb("buy", "Buy for one buyer", buy_options(*args), buy),
          verb("cancel", "Cancel an order before it is paid, and give its units back",
               cancel_options(*args, orders), cancel_order),
          verb("refund",
               "Take units of an order back, also of a paid one, and give their price back",
               refund_options(*args, orders), refund_order),
          verb("replay",
               "Send messages again that were given up, and go on where a receiver wanted no more",
               replay_options(*args, orders), replay_messages),
          command("payments",
                  "Payments in a state, of the sale, or of all, also of such that nobody knows",
                  {sale_name(false)}, payments_options(*args, orders), list_payments),
          command("settle", "Settle a payment that paid no order, or give its money back", {},
                  settle_options(*args, orders), settle_payment),
          verb("stock", "Change how many units the sale sells in all",
               {{"--to", "N", "So many; not fewer than are sold",
                 into(args->stock, 0, 1'000'000'000'000), true},
                orders},
               change_stock),
          verb("status", "Stock, orders, and what is on its way", {}, status),
          verb("close", "Admit nobody any more", close_options(*args), close),
          verb("archive",
               "Close a sale, bring its last orders in, audit it, and delete them from the store",
               archive_options(*args, orders), archive),
          verb("dead", "Orders that the database refused", dead_options(*args, orders),
               dead_letters),
          verb("work", "Move orders into the database until a signal comes",
               work_options(*args, orders), work),
          verb("audit", "Compare store and database, order by order", audit_options(*args, orders),
               audit_sale),
          verb("recover", "Give a store that lost orders what the database has, and let buyers in",
               recover_options(*args, orders), recover_sale)}};
}

}  // namespace sluice::cli
