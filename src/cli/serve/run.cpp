#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <mutex>
#include <set>

#include "base/integer.hpp"
#include "base/json.hpp"
#include "base/secret_file.hpp"
#include "base/thread.hpp"
#include "cli/command_line/exit_code.hpp"
#include "cli/command_line/signals.hpp"
#include "cli/command_line/streams.hpp"
#include "cli/missing_places.hpp"
#include "cli/sales_file.hpp"
#include "cli/serve/commands.hpp"
#include "net/file_watch.hpp"
#include "server/service.hpp"
#include "sluice/bucketed_sale.hpp"
#include "sluice/log.hpp"
#include "sluice/open.hpp"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

struct Places {
  std::string store;
  std::string orders;
  bool are_given = false;  ///< one of them
  bool in_data = false;    ///< one of them lies in the folder of --data
};

Places places_of(const ServeArgs& args) {
  const auto given = [](const std::string& option, const char* variable) {
    const char* const set = std::getenv(variable);
    return option.empty() && set ? std::string{set} : option;
  };
  Places places{.store = given(args.store, "SLUICE_STORE"),
                .orders = given(args.orders, "SLUICE_ORDERS")};
  places.are_given = !places.store.empty() || !places.orders.empty();
  places.in_data = places.store.empty() || places.orders.empty();
  if (places.store.empty())
    places.store = "embedded:" + fs::absolute(args.data / fs::path{"store"}).string();
  if (places.orders.empty())
    places.orders = "sqlite:" + fs::absolute(args.data / fs::path{"orders.db"}).string();
  return places;
}

/// "maotai=100", "maotai=100000/8": a sale of so many units, in so many buckets, whose numbers
/// begin with its name in capitals.
PlannedSale sale_of(const std::string& word) {
  const auto equals = word.rfind('=');
  const auto figures = equals == word.npos ? std::string{} : word.substr(equals + 1);
  const auto slash = figures.find('/');
  const auto stock = parse_integer<std::int64_t>(figures.substr(0, slash));
  const auto buckets = slash == figures.npos
                           ? std::optional<std::int64_t>{1}
                           : parse_integer<std::int64_t>(figures.substr(slash + 1));
  if (!stock || !buckets || equals == 0)
    throw Error{Errc::bad_argument,
                fmt::format("--sale '{}': write NAME=UNITS, like maotai=100, or "
                            "NAME=UNITS/BUCKETS, like maotai=100000/8; --sales FILE says more",
                            word)};
  if (*buckets < 1 || *buckets > most_buckets)
    throw Error{Errc::bad_argument, fmt::format("--sale '{}': {} buckets, it must be 1 to {}", word,
                                                *buckets, most_buckets)};
  SaleDefinition sale{.name = word.substr(0, equals), .stock = *stock};
  for (const char c : sale.name)
    if (sale.number_type.size() < 16 && std::isalnum(static_cast<unsigned char>(c)))
      sale.number_type += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  while (sale.digits < 12 && sale.stock >= std::int64_t(std::pow(10, sale.digits))) ++sale.digits;
  return {.definition = std::move(sale), .buckets = *buckets};
}

using Names = std::set<std::string, std::less<>>;

/// Sales that the caller has named.
struct Named {
  std::vector<PlannedSale> sales;  ///< made, or joined
  Names there;                     ///< these have to be there
  bool all = false;

  bool is_empty() const { return sales.empty() && there.empty() && !all; }
  Names names() const {
    auto names = there;
    for (const auto& sale : sales) names.insert(sale.definition.name);
    return names;
  }
};

Named named_by(const ServeArgs& args) {
  Named named{
      .sales = args.sales_file.empty() ? std::vector<PlannedSale>{} : read_sales(args.sales_file),
      .there = {},
      .all = args.all};
  for (const auto& word : args.sales)
    if (word.find('=') == word.npos)
      named.there.insert(word);
    else
      named.sales.push_back(sale_of(word));
  return named;
}

/// A store that is not there yet is not the one of a sale that the database has.
void refuse_new_store(const Places& places, const Named& named) {
  const auto orders = open_order_store(places.orders);
  for (const auto& name : orders->sales()) {
    const auto whole = name.substr(0, name.rfind(':'));
    const auto names = named.names();
    if (named.is_empty() || named.all || names.contains(name) || names.contains(whole))
      server::Shop::need_store(*orders, name, places.store);
  }
}

/// Nobody named a sale: where nothing was ever sold somebody tries it, and should see something.
void name_example(const ServeArgs& args, const Places& places, Store* store, Named& named) {
  if (args.no_sales) return;
  auto there = store ? Sale::names(*store).get() : std::vector<std::string>{};
  if (!is_missing(places.orders))
    std::ranges::move(open_order_store(places.orders)->sales(), std::back_inserter(there));
  std::ranges::sort(there);
  there.erase(std::ranges::unique(there).begin(), there.end());
  std::erase(there, "example");
  if (there.empty() && !places.are_given && args.rooms.empty())
    return named.sales.push_back(sale_of("example=100"));
  throw Error{Errc::bad_argument,
              fmt::format("say what to serve: --sale NAME=UNITS makes a sale, --sale NAME serves "
                          "one that is there, --sales FILE those of a file, --all every sale, "
                          "--no-sales the tools alone{}",
                          there.empty() ? "" : fmt::format("; there: {}", fmt::join(there, ", ")))};
}

/// "maotai=50/200/15m": 50 a second are let in, 200 are inside at a time, each for 15 minutes at
/// most.
WaitingRoomDefinition room_of(const std::string& word) {
  const auto equals = word.rfind('=');
  const auto figures = equals == word.npos ? std::string{} : word.substr(equals + 1);
  const auto slash = std::min(figures.find('/'), figures.size());
  const auto second = std::min(figures.find('/', slash + 1), figures.size());
  const auto rate = parse_integer<std::int64_t>(figures.substr(0, slash));
  const auto inside =
      slash == figures.size()
          ? std::optional{WaitingRoomDefinition{}.inside}
          : parse_integer<std::int64_t>(figures.substr(slash + 1, second - slash - 1));
  if (!rate || !inside || equals == 0)
    throw Error{Errc::bad_argument,
                fmt::format("--room '{}': write SALE=RATE, SALE=RATE/INSIDE or "
                            "SALE=RATE/INSIDE/STAY, like maotai=50/200/15m for 50 a second, 200 "
                            "at a time and 15 minutes for each",
                            word)};
  WaitingRoomDefinition room{.name = word.substr(0, equals), .rate = *rate, .inside = *inside};
  if (second < figures.size()) into(room.stay).set(figures.substr(second + 1));
  return room;
}

/// Throws Error{bad_argument}, also for a key that is not private.
net::TlsContext certificate_of(const ServeArgs& args) {
  need_private_file("the key of the certificate", args.tls.key);
  return net::TlsContext::for_server(args.tls);
}

/// Throws Error{bad_argument}.
server::ShopKeys shop_keys_of(const ServeArgs& args) {
  return args.shop_keys_file.empty() ? server::ShopKeys{}
                                     : server::ShopKeys::load(args.shop_keys_file);
}

/// Files that come into use without a restart when they change. REQUIRES: one thread.
struct WatchedFiles {
  std::string_view what;
  net::FileWatch watch;
  std::function<void(server::Service&)> use;  ///< Throws Error{bad_argument}.

  /// A certificate and its key are seldom replaced in the same instant: what does not fit together
  /// stays out of use, and is looked at again when it has changed once more.
  void look(server::Service& service) {
    if (!watch.have_changed()) return;
    try {
      use(service);
      log(LogLevel::info, fmt::format("{} changed: what is there now is in use", what));
    } catch (const Error& wrong) {
      log(LogLevel::error,
          fmt::format("{} changed, and cannot be used; what was there before stays in use: {}",
                      what, wrong.message()));
    }
  }
};

/// Make it before the files are read, so that no change is missed.
std::array<WatchedFiles, 2> watched_files(const ServeArgs& args) {
  return {{{"the certificate", net::FileWatch{{args.tls.certificate, args.tls.key}},
            [&args](auto& service) { service.replace_tls(certificate_of(args)); }},
           {"the file of the shop's keys", net::FileWatch{{args.shop_keys_file}},
            [&args](auto& service) { service.replace_shop_keys(shop_keys_of(args)); }}}};
}

server::ServiceOptions options_of(const ServeArgs& args, const Places& places) {
  server::ServiceOptions options;
  options.shop.orders = places.orders;
  if (places.store.starts_with("embedded:"))  // no other process has what a dead one took
    options.shop.worker.claim_after = 3s;
  if (args.claim_after > 0ms) options.shop.worker.claim_after = args.claim_after;
  if (!args.keys_file.empty()) options.keys = TokenKeys::load(args.keys_file);
  options.shop_keys = shop_keys_of(args);
  options.http.listen = net::read_endpoint(args.listen);
  if (!options.keys && !args.believes_buyers && !net::is_of_this_machine(options.http.listen))
    throw Error{
        Errc::bad_argument,
        fmt::format("--listen {}: whoever reaches it could buy in anybody's name; give --keys, "
                    "or --believe-buyers where your shop alone can reach it",
                    args.listen)};
  options.has_local_operator = args.has_local_operator;
  if (!args.stripe.empty()) options.http.limits.body = std::size_t{64} << 10;  // of its events
  options.http.loops = args.loops;
  options.http.trusted = args.trusted;
  options.http.proxy_protocol = args.proxy_protocol;
  options.rates = rates_of(args);
  if (args.tls.certificate.empty() != args.tls.key.empty())
    throw Error{Errc::bad_argument, "--certificate and --key go together: give both, or neither"};
  if (!args.tls.certificate.empty()) options.http.tls = certificate_of(args);
  for (const auto& word : args.rooms) options.rooms.push_back(room_of(word));
  auto targets = targets_of(args);
  options.providers = std::move(targets.providers);
  options.messenger = std::move(targets.messenger);
  if (!args.checkout.empty()) server::check_http_url(args.checkout);
  options.pages.checkout = args.checkout;
  if (!args.shop_file.empty()) options.pages.front = server::Storefront::load(args.shop_file);
  options.pages.languages = server::Languages{args.texts_folder};
  options.proxies = args.proxies;
  options.health = net::read_endpoint(args.health);
  return options;
}

std::string url_of(const net::Endpoint& endpoint, std::uint16_t port, bool is_tls) {
  if (endpoint.is_unix()) return fmt::format("unix socket {}", endpoint.unix_path);
  auto shown = endpoint;
  shown.port = port;
  return fmt::format("{}://{}", is_tls ? "https" : "http", net::to_string(shown));
}

/// A first request that can be pasted, where one can be made without a token.
std::string try_line(const server::Service& service, const server::ServiceOptions& options,
                     const std::string& sale) {
  const auto& listen = options.http.listen;
  const bool plain = sale.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789-_.") == sale.npos;
  if (options.keys || options.http.tls || listen.is_unix() || sale.empty() || !plain) return {};
  const auto url = url_of(listen, service.port(), false);
  if (std::ranges::count(options.rooms, sale, &WaitingRoomDefinition::name) >
      0)  // a ticket is needed
    return fmt::format("Try, in a browser, {}/sales/{}\n", url, sale);
  return fmt::format(
      "Try:\n  curl -si -X POST {0}/v1/sales/{1}/orders -H 'Sluice-Buyer: ann' -H "
      "'Idempotency-Key: 1'\n  or, in a browser, {0}/sales/{1}\n",
      url, sale);
}

/// For people: where it is, or what opens it.
std::string console_text(const server::ServiceOptions& options, const std::string& url) {
  if (options.shop_keys.is_empty() && !options.has_local_operator)
    return "closed; --shop-keys FILE opens it, or on a machine of your own --local-operator";
  return url.empty() ? "/console at that socket" : url;
}

void greet(const ServeArgs& args, const Places& places, const server::ServiceOptions& options,
           server::Service& service, const Store& store) {
  const auto url = url_of(options.http.listen, service.port(), options.http.tls.has_value());
  const auto health = url_of(options.health, service.health_port(), false);
  const auto console = options.http.listen.is_unix() ? std::string{} : url + "/console";
  const auto offers = service.shop().all();
  if (args.json) {
    put("{}\n", Json::object({{"ok", true},
                              {"url", url},
                              {"port", service.port()},
                              {"console", console},
                              {"health", health},
                              {"health_port", service.health_port()},
                              {"sales", offers.size()}})
                    .text());
  } else {
    put("Sluice serves {} sale{} on {}\n  console             {}\n  health and metrics  {}\n"
        "  store   {}\n  orders  {}\n{}",
        offers.size(), offers.size() == 1 ? "" : "s", url, console_text(options, console), health,
        store.describe(), open_order_store(places.orders)->describe(),
        try_line(service, options, offers.empty() ? std::string{} : offers.front()->name()));
  }
  flush_output();
}

/// Ends the process where a database keeps what waits for it: a supervisor would kill it anyhow.
class LastResort {
 public:
  explicit LastResort(std::chrono::nanoseconds after)
      : thread_([this, after](const std::stop_token& stop) {
          std::unique_lock lock{mutex_};
          ended_.wait_for(lock, stop, after, [] { return false; });
          if (stop.stop_requested()) return;
          complain("the database does not answer; orders that it has not got wait in the store");
          std::_Exit(exit_timeout);
        }) {}

 private:
  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::jthread thread_;
};

std::vector<Option> sale_options(ServeArgs& args) {
  return {
      {"--sale", "NAME[=UNITS[/BUCKETS]]",
       "Serve this sale, which is there; or define it, or join it, with its stock in so many "
       "buckets, each with numbers of its own: see buckets.md; may be repeated",
       into(args.sales)},
      {"--sales", "FILE", "The same of a JSON file, as 'sluice sale create --file' takes it",
       into(args.sales_file)},
      {"--all", "",
       "Serve every sale that store and database know, and those that other programs make",
       into(args.all)},
      {"--no-sales", "", "Serve no sale: locks, numbers and what else tools.md has",
       into(args.no_sales)},
      {"--room", "SALE=RATE[/INSIDE[/STAY]]",
       "A waiting room before this sale: so many are let in a second, are inside at a time (100), "
       "and each for so long at most (10m); may be repeated",
       into(args.rooms)}};
}

std::vector<Option> door_options(ServeArgs& args) {
  return {
      {"--listen", "ADDRESS", "HOST:PORT or the path of a unix socket", into(args.listen)},
      {"--health", "ADDRESS", "Where /livez, /readyz and /metrics are", into(args.health)},
      {"--keys", "FILE",
       "Keys of buyers' tokens, a line each: ID BASE64; without it the field Sluice-Buyer is "
       "believed",
       into(args.keys_file)},
      {"--shop-keys", "FILE",
       "Keys of your operators and programs, a line each, as 'sluice serve key' makes them",
       into(args.shop_keys_file)},
      {"--believe-buyers", "",
       "Believe that field on an address that others reach, too: it is your shop alone that does",
       into(args.believes_buyers)},
      {"--local-operator", "",
       "Programs and browsers of this machine are an operator without a key: for a machine of your "
       "own, on a loopback address and without any keys",
       into(args.has_local_operator)},
      {"--certificate", "FILE", "Serve TLS with this certificate (PEM)",
       into(args.tls.certificate)},
      {"--key", "FILE", "and its key", into(args.tls.key)},
      {"--proxy", "URL",
       "A sluice proxy whose ring operators see: where it has its metrics, like "
       "http://127.0.0.1:22223; may be repeated",
       into(args.proxies)},
      {"--loops", "N", "Threads that serve; 0: one a core", into(args.loops, 0, 256)},
      {"--notice", "TIME", "After a signal: serve on for so long while /readyz says 503",
       into(args.notice)},
      {"--stop-within", "TIME", "After a signal: answer what was asked, for so long at most",
       into(args.stop_within)},
      {"--claim-after", "TIME",
       "Orders that a dead process was bringing into the database are taken over after so long; "
       "more than a transaction may take; 0: 3 s in an embedded engine, else 30 s",
       into(args.claim_after)},
      {"--json", "", "The greeting as one JSON object, for programs", into(args.json)}};
}

}  // namespace

std::vector<Option> serve_options(ServeArgs& args) {
  std::vector<Option> options{
      {"--store", "URL",
       "As of 'sluice --store'; without it $SLUICE_STORE, else an embedded engine",
       into(args.store)},
      {"--orders", "URL",
       "sqlite:FILE, postgresql://..., mariadb://...; without it $SLUICE_ORDERS, else SQLite",
       into(args.orders)},
      {"--data", "FOLDER", "Where the embedded engine and SQLite lie", into(args.data)}};
  std::ranges::move(sale_options(args), std::back_inserter(options));
  std::ranges::move(door_options(args), std::back_inserter(options));
  std::ranges::move(target_options(args), std::back_inserter(options));
  std::ranges::move(client_options(args), std::back_inserter(options));
  return options;
}

namespace {

/// Throws Error{in_use} where another process listens already.
std::unique_ptr<server::Service> begin(Store& store, server::ServiceOptions options,
                                       const Named& named) {
  std::vector<SaleDefinition> definitions;
  if (!named.all) options.shop.named = named.there;
  for (const auto& sale : named.sales) {
    definitions.push_back(sale.definition);
    if (sale.buckets > 1) options.shop.buckets.emplace(sale.definition.name, sale.buckets);
  }
  try {
    return std::make_unique<server::Service>(store, std::move(options), definitions);
  } catch (const Error&) {
    throw;
  } catch (const std::system_error& failure) {
    if (failure.code() != std::errc::address_in_use) throw;
    throw Error{Errc::in_use, fmt::format("{}; give another --listen or --health", failure.what())};
  }
}

/// Makes neither folder nor file where a sale has what is missing elsewhere.
std::unique_ptr<Store> open_places(const ServeArgs& args, const Places& places, Named& named) {
  auto store = is_missing(places.store) ? nullptr : open(places.store);
  if (!store && !is_missing(places.orders)) refuse_new_store(places, named);
  if (named.is_empty()) name_example(args, places, store.get(), named);
  for (const auto& name : named.there)
    if (is_missing(places.orders) && !(store && Sale::load(*store, name).get()) &&
        !(store && BucketedSale::load(*store, name).get()))
      throw Error{Errc::bad_argument,
                  fmt::format("there is no sale '{0}': --sale {0}=UNITS makes one", name)};
  if (store)
    for (const auto& name : named.names()) need_database(*store, name, places.orders, true);
  if (places.in_data) {  // for its owner alone
    const auto before = ::umask(S_IRWXG | S_IRWXO);
    fs::create_directories(args.data);
    ::umask(before);
  }
  return store ? std::move(store) : open(places.store);
}

}  // namespace

int serve(const ServeArgs& args) {
  std::signal(SIGHUP, SIG_IGN);  // nothing to read again: what has changed is noticed without it
  const StopOnSignal stop;
  if (args.no_sales && (args.all || !args.sales.empty() || !args.sales_file.empty()))
    throw Error{Errc::bad_argument, "--no-sales serves none: leave out --sale, --sales and --all"};
  const auto places = places_of(args);
  auto watched = watched_files(args);
  auto options = options_of(args, places);
  auto named = named_by(args);
  const auto store = open_places(args, places, named);
  std::optional<LastResort> last_resort;
  auto service = begin(*store, options, named);
  greet(args, places, options, *service, *store);
  while (stop.sleep_for(1s))
    for (auto& files : watched) files.look(*service);
  last_resort.emplace(args.notice + args.stop_within + 3s);
  service->stop(args.stop_within, args.notice);
  service.reset();  // waits for the batches of its workers
  return exit_ok;
}

}  // namespace sluice::cli
