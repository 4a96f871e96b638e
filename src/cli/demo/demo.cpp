/// `sluice demo`: a hundred bottles, ten thousand buyers who all click at once, and the proof that
/// all went well.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <thread>

#include "cli/command.hpp"
#include "cli/command_line/exit_code.hpp"
#include "cli/command_line/signals.hpp"
#include "cli/command_line/streams.hpp"
#include "cli/demo/crowd.hpp"
#include "cli/output.hpp"
#include "cli/programs.hpp"
#include "sluice/clock.hpp"
#include "sluice/open.hpp"
#include "sluice/order_worker.hpp"
#include "sluice/sale_audit.hpp"

namespace sluice::cli {
namespace {

struct DemoArgs {
  std::uint64_t buyers = 10'000;
  std::int64_t stock = 100;
  int instances = 1;
  std::string orders;
  bool keep = false;
  bool http = false;
};

/// A fresh folder for what the demo leaves on disk; gone at the end unless it is to be kept.
class Folder {
 public:
  explicit Folder(bool keep) : keep_(keep) {
    std::string pattern = (std::filesystem::temp_directory_path() / "sluice-demo-XXXXXX").string();
    if (!::mkdtemp(pattern.data()))
      throw std::system_error{errno, std::generic_category(), "cannot make " + pattern};
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;  // nothing to be done about a folder that will not go
    if (!keep_) std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  void keep() noexcept { keep_ = true; }
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  bool keep_;
  std::filesystem::path path_;
};

/// Removes the keys of the demo's sale from a server that others use, however the demo ends.
class Tidy {
 public:
  /// Null: nothing is to be done.
  Tidy(Store* store, std::string name, std::string type)
      : store_(store), name_(std::move(name)), type_(std::move(type)) {}
  ~Tidy() {
    if (!store_) return;
    try {
      std::vector<std::string> keys;
      for (const char* const suffix : {"sale", "buyers", "requests", "returned", "orders", "dead"})
        keys.push_back(fmt::format("{{{}}}:{}", name_, suffix));
      std::vector<std::string_view> words{"DEL"};
      words.insert(words.end(), keys.begin(), keys.end());
      store_->run(Words{words}).get();
      store_->run({"ZREM", "sluice:sales:names", name_}).get();
      store_->run({"HDEL", "sluice:sales:types", type_}).get();
    } catch (const std::exception& failure) {
      complain("the keys of sale '{}' stay: {}", name_, failure.what());
    }
  }
  Tidy(const Tidy&) = delete;
  Tidy& operator=(const Tidy&) = delete;

 private:
  Store* const store_;
  const std::string name_;
  const std::string type_;  // of this sale alone
};

struct Figure {
  std::string name;   ///< in JSON
  std::string label;  ///< in the table
  double value;
  int decimals = 0;
};

double seconds(SteadyTime::duration span) {
  return std::max(std::chrono::duration<double>(span).count(), 1e-6);
}

class Demo {
 public:
  /// REQUIRES: `stop` lives longer.
  Demo(const Globals& globals, const DemoArgs& args, const StopOnSignal& stop)
      : globals_(globals),
        args_(args),
        stop_(stop),
        folder_(args.keep),
        url_(store_of(globals)),
        progress_(globals.json) {
    if (args_.instances > 1 && is_embedded())
      throw Error{
          Errc::bad_argument,
          "several instances need a server: demo --store redis://127.0.0.1:6379 --instances 4"};
    if (!args_.orders.empty() && !args_.orders.starts_with("sqlite:"))
      throw Error{
          Errc::bad_argument,
          "--orders: the demo keeps its orders in SQLite alone, sqlite:/path; 'sluice serve "
          "--orders URL' and 'sluice sale work --orders URL' write into PostgreSQL and "
          "MariaDB"};
    if (args_.orders.empty()) args_.orders = "sqlite:" + (folder_.path() / "orders.db").string();
  }

  /// Told to end, it has verified nothing, and leaves nothing behind.
  int run() {
    try {
      const int code = args_.http ? run_over_http() : run_here();
      if (stop_.signal() == 0) return code;
    } catch (const std::exception&) {
      if (stop_.signal() == 0) throw;
    }
    return 128 + stop_.signal();
  }

 private:
  int run_here() {
    const auto store = open(url_);
    const auto orders = open_order_store(args_.orders);
    const SaleDefinition planned = definition();
    const Tidy tidy{is_embedded() ? nullptr : store.get(), planned.name, planned.number_type};
    Sale sale = Sale::create(*store, planned).get();
    if (!globals_.json)
      put("{} bottles of {}, {} buyers, store {}, orders {}\n", args_.stock, sale.definition().name,
          args_.buyers, store->describe(), orders->describe());
    hold(*store, sale, *orders);
    if (is_stopped()) return exit_ok;
    verify(*store, sale, *orders);
    measure(sale.status().get());
    return report();
  }

  /// The processes that serve have the store and the database meanwhile; what the demo verifies it
  /// reads when they have gone.
  int run_over_http() {
    const SaleDefinition planned = definition();
    const auto others = is_embedded() ? nullptr : open(url_);
    const Tidy tidy{others.get(), planned.name, planned.number_type};
    Sale::create(*open(url_), planned).get();
    if (!globals_.json)
      put("{} bottles of {}, {} buyers, {} process{} of 'sluice serve', orders {}\n", args_.stock,
          planned.name, args_.buyers, args_.instances, args_.instances == 1 ? "" : "es",
          open_order_store(args_.orders)->describe());
    const auto sold =
        hold_sale_over_http({.store = url_,
                             .orders = args_.orders,
                             .sale = planned.name,
                             .buyers = args_.buyers,
                             .instances = args_.instances},
                            stop_.token(), [&](const std::string& line) { progress_.show(line); });
    tally_ = sold.tally;
    clicking_ = sold.clicking;
    const auto store = open(url_);
    const auto orders = open_order_store(args_.orders);
    auto sale = Sale::load(*store, planned.name).get().value();
    OrderWorker{*store, sale, *orders, {.claim_after = std::chrono::milliseconds{1}}}.drain();
    progress_.finish(
        fmt::format("{} clicks answered over HTTP in {:.2f} s", tally_.clicks, seconds(clicking_)));
    verify(*store, sale, *orders);
    measure(sale.status().get());
    return report();
  }

  std::string store_of(const Globals& globals) const {
    if (globals.store.empty() && !std::getenv("SLUICE_STORE"))
      return "embedded:" + (folder_.path() / "store").string();
    return store_url(globals);
  }
  bool is_stopped() const { return stop_.signal() != 0; }
  bool is_embedded() const { return url_.starts_with("embedded:"); }

  SaleDefinition definition() const {
    SaleDefinition definition{.name = "maotai20210321001",
                              .stock = args_.stock,
                              .number_type = "MT",
                              .zone = "Asia/Shanghai"};
    if (!is_embedded()) {  // on a server that others use, a sale and numbers of its own
      const auto now = system_clock().wall().time_since_epoch().count();
      definition.name += fmt::format("-demo-{}", now);
      definition.number_type += fmt::format("{:014}", now % 100'000'000'000'000);
    }
    while (std::pow(10, definition.digits) - 1 < static_cast<double>(args_.stock))
      ++definition.digits;
    return definition;
  }

  /// The sale itself, with a worker beside it, until the last order is in the database.
  void hold(Store& store, Sale& sale, OrderStore& orders) {
    OrderWorker worker{store, sale, orders};
    const auto start = store.clock().steady();
    {
      const std::jthread working{[&](std::stop_token stop) { worker.run(stop); }};
      tally_ = args_.instances > 1 ? crowd_in_processes(sale) : crowd_here(store, sale);
      clicking_ = store.clock().steady() - start;
    }
    if (is_stopped()) return;
    worker.drain();
    working_ = store.clock().steady() - start;
    persisted_ = worker.progress().inserted;
    progress_.finish(
        fmt::format("{} clicks answered in {:.2f} s, {} orders in the database after {:.2f} s",
                    tally_.clicks, seconds(clicking_), persisted_, seconds(working_)));
  }

  Tally crowd_here(Store& store, Sale& sale) {
    std::atomic<std::uint64_t> answered{0};
    const std::jthread drawing{[&](const std::stop_token& stop) {
      while (sleep_for(std::chrono::milliseconds{50}, stop))
        progress_.show(fmt::format("{} clicks answered", answered.load(std::memory_order_relaxed)));
    }};
    return hold_sale(sale, store.clock(), {.first = 0, .last = args_.buyers, .stop = stop_.token()},
                     answered);
  }

  Tally crowd_in_processes(Sale& sale) {
    progress_.show(fmt::format("{} instances are clicking", args_.instances));
    return hold_sale_in_processes({.store = url_,
                                   .sale = sale.definition().name,
                                   .buyers = args_.buyers,
                                   .instances = args_.instances,
                                   .stop = stop_.token()});
  }

  /// From the database and the store, not from what this program has counted.
  void verify(Store& store, const Sale& sale, OrderStore& orders) {
    SaleAudit found = audit(store, sale, orders);
    checks_ = std::move(found.checks);
    std::set<std::string> numbers;
    std::int64_t last = 0;
    for (auto page = orders.page(sale.definition().name, 0, 10'000); !page.empty();
         page = orders.page(sale.definition().name, last, 10'000)) {
      for (const auto& order : page) numbers.insert(order.number);
      last = page.back().id;
    }
    const auto expected = static_cast<std::int64_t>(
        std::min<std::uint64_t>(args_.buyers, static_cast<std::uint64_t>(args_.stock)));
    const auto in_database = static_cast<std::int64_t>(numbers.size());
    checks_.push_back(
        {"every_bottle_found_a_buyer", in_database == expected, in_database, expected,
         numbers.empty() ? "" : fmt::format("{} to {}", *numbers.begin(), *numbers.rbegin())});
    const auto told = std::count_if(tally_.numbers.begin(), tally_.numbers.end(),
                                    [&](const auto& number) { return numbers.contains(number); });
    const auto all_told = static_cast<std::int64_t>(tally_.numbers.size());
    checks_.push_back({"orders_told_are_in_the_database", told == all_told, told, all_told, ""});
    const auto other = static_cast<std::int64_t>(tally_.repeats_other);
    checks_.push_back({"repeats_answered_otherwise", other == 0, other, 0, ""});
    const auto failed = static_cast<std::int64_t>(tally_.failed + tally_.others);
    checks_.push_back({"clicks_without_an_answer", failed == 0, failed, 0, tally_.first_failure});
  }

  void measure(const SaleStatus& status) {
    const auto ms = [](std::chrono::microseconds time) {
      return static_cast<double>(time.count()) / 1000;
    };
    figures_ = {
        {"stock", "stock", static_cast<double>(status.stock)},
        {"sold", "sold", static_cast<double>(status.sold)},
        {"left", "left", static_cast<double>(status.left())},
        {"clicks", "clicks", static_cast<double>(tally_.clicks)},
        {"sold_out", "refused as sold out", static_cast<double>(tally_.sold_out)},
        {"bought_already", "refused as bought already", static_cast<double>(tally_.bought_already)},
        {"repeats_same", "repeats answered with the same order",
         static_cast<double>(tally_.repeats_same)},
        {"admissions_per_second", "admissions decided a second",
         static_cast<double>(tally_.clicks) / seconds(clicking_)},
        {"orders_per_second", "orders a second into the database",
         static_cast<double>(persisted_) / seconds(working_)},
        {"click_p50_ms", "click, p50, ms", ms(tally_.latencies.quantile(0.5)), 2},
        {"click_p99_ms", "click, p99, ms", ms(tally_.latencies.quantile(0.99)), 2},
    };
  }

  int report() {
    if (args_.http)  // nobody clicks with a new key, and workers are other processes
      std::erase_if(figures_, [](const Figure& figure) {
        return figure.name == "bought_already" || figure.name == "orders_per_second";
      });
    const bool ok = all_ok(checks_);
    globals_.json ? print_json(ok) : print_text(ok);
    return ok ? exit_ok : exit_check_failed;
  }

  void print_json(bool ok) const {
    Json figures = Json::object();
    for (const auto& figure : figures_)
      figures.add(figure.name, figure.decimals == 0 ? Json{static_cast<std::int64_t>(figure.value)}
                                                    : Json{figure.value});
    print(Json::object({{"ok", ok}, {"figures", figures}, {"checks", json_of(checks_)}}));
  }

  void print_text(bool ok) {
    put("\n");
    for (const auto& figure : figures_)
      put("  {:<44} {:>12.{}f}\n", figure.label, figure.value, figure.decimals);
    put("\nverified from the database and the store:\n");
    print_checks(checks_);
    if (!ok) folder_.keep();
    put("\n{}\n",
        ok ? "every check passed"
           : fmt::format("A CHECK FAILED; what is on disk stays in {}", folder_.path().string()));
  }

  const Globals& globals_;
  DemoArgs args_;
  const StopOnSignal& stop_;
  Folder folder_;
  std::string url_;
  Progress progress_;
  Tally tally_;
  SteadyTime::duration clicking_{};
  SteadyTime::duration working_{};
  std::uint64_t persisted_ = 0;
  std::vector<AuditCheck> checks_;
  std::vector<Figure> figures_;
};

}  // namespace

Command demo_command(const Globals& globals) {
  const auto args = std::make_shared<DemoArgs>();
  return {.name = "demo",
          .summary = std::string{program_of("demo").summary},
          .options = {{"--buyers", "N", "How many click", into(args->buyers, 1, 10'000'000)},
                      {"--stock", "N", "Bottles", into(args->stock, 1, 100'000'000)},
                      {"--instances", "N", "Processes that sell, on a server",
                       into(args->instances, 1, 64)},
                      {"--orders", "URL", "The database, sqlite:/path; else in a fresh folder",
                       into(args->orders)},
                      {"--http", "",
                       "The instances are processes of 'sluice serve', and buyers click over HTTP",
                       into(args->http)},
                      {"--keep", "", "Leave the fresh folder where it is", into(args->keep)}},
          .action = [&globals, args] {
            const StopOnSignal stop;  // before there is a folder
            return Demo{globals, *args, stop}.run();
          }};
}

Command demo_instance_command(const Globals& globals) {
  struct Args {
    std::string sale;
    Crowd crowd;
  };
  constexpr std::int64_t most = 10'000'000;
  const auto args = std::make_shared<Args>();
  return {.name = "demo-instance",
          .summary = "One of the demo's processes",
          .arguments = {{"SALE", "Its name", into(args->sale)},
                        {"FIRST", "The first of its buyers", into(args->crowd.first, 0, most)},
                        {"LAST", "The one after its last", into(args->crowd.last, 0, most)}},
          .action = [&globals,
                     args] { return serve_instance(store_url(globals), args->sale, args->crowd); },
          .hidden = true};
}

}  // namespace sluice::cli
