#include "server/service.hpp"

#include <fmt/format.h>

#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/random.hpp"
#include "base/thread.hpp"
#include "server/console.hpp"
#include "server/operate_calls.hpp"
#include "server/this_machine.hpp"
#include "sluice/error.hpp"
#include "sluice/metrics.hpp"
#include "sluice/store.hpp"

namespace sluice::server {
namespace {

constexpr std::string_view prometheus_media = "text/plain; version=0.0.4; charset=utf-8";

/// Whoever builds a client from /openapi.json learns there how a buyer proves who he is.
http::ApiDocument api_of(const Buyers& buyers) {
  const char* const scheme = buyers.has_keys()
                                 ? R"({"type":"http","scheme":"bearer"})"
                                 : R"({"type":"apiKey","in":"header","name":"Sluice-Buyer"})";
  return {.title = "Sluice: sales",
          .credentials = {
              {std::string{Buyers::credentials}, scheme},
              {std::string{ShopKeys::credentials}, R"({"type":"http","scheme":"bearer"})"}}};
}

TokenKeys keys_of_this_process() {
  return TokenKeys{{{.id = "process", .secret = random_hex_128() + random_hex_128()}}};
}

/// An operator without a key is never where others come.
const ServiceOptions& checked(const ServiceOptions& options) {
  const bool is_closed = options.keys || !options.shop_keys.is_empty() ||
                         options.http.listen.is_unix() || !serves_this_machine_alone(options.http);
  if (options.has_local_operator && is_closed)
    throw Error{
        Errc::bad_argument,
        "--local-operator is for a loopback address, without --keys, --shop-keys, --trusted "
        "and --proxy-protocol: give operators keys, `sluice serve key --id NAME --scopes "
        "operate`"};
  return options;
}

}  // namespace

Service::Service(Store& store, ServiceOptions options, std::span<const SaleDefinition> sales)
    : shop_(store, checked(options).shop, sales),
      limits_(system_clock(), options.rates, http::Networks{options.http.trusted}),
      buyers_(options.keys, &limits_),
      shop_keys_(std::move(options.shop_keys)),
      threads_(options.shop.orders, options.blocking),
      signing_(options.keys ? std::move(*options.keys) : keys_of_this_process()),
      queue_(store, shop_, buyers_, signing_, std::move(options.rooms)),
      sales_(shop_, buyers_, limits_, shop_keys_, threads_, queue_),
      orders_(shop_, shop_keys_, threads_),
      payments_(shop_, threads_, std::move(options.providers)),
      messenger_(shop_, std::move(options.messenger)),
      tools_(store, shop_keys_, options.has_local_operator),
      pages_(shop_, buyers_, threads_, queue_, signing_, std::move(options.pages)),
      feed_(shop_, limits_, options.feed),
      ended_logins_(store),
      operators_(shop_keys_, signing_, ended_logins_, system_clock(),
                 {.has_local = options.has_local_operator}),
      proxies_(std::move(options.proxies)),
      snapshots_(
          shop_, queue_, ended_logins_, [this] { return load(); }, options.snapshots),
      operate_(store, shop_, operators_, ended_logins_, snapshots_,
               operate_calls(store, queue_, proxies_)) {
  options.http.api = api_of(buyers_);
  options.http.vary = "Accept, Accept-Language, Authorization, Cookie, Sluice-Buyer, Sluice-Ticket";
  auto health = http::ServerOptions{.listen = options.health, .loops = 1};
  health.not_ready_because = [this] { return troubles_that(&TroubleRow::is_ready, false); };
  health.trouble = [this] { return troubles_that(&TroubleRow::is_alert, true); };
  // To a balancer at the buyers' address the same, without the names of servers.
  options.http.not_ready_because = [this] {
    return troubles_that(&TroubleRow::is_ready, false).empty() ? "" : "it cannot serve buyers now";
  };
  health_ = std::make_unique<http::Server>(system_clock(), health_routes(), std::move(health));
  http_ = std::make_unique<http::Server>(system_clock(), public_routes(), std::move(options.http));
  serving_.store(http_.get(), std::memory_order_release);
  looker_ = start_stoppable_thread(
      [this, every = options.look_every](const std::stop_token& stop) { look_again(stop, every); });
}

/// Snapshots tell of the servers, which end before them; and workers end all at once.
Service::~Service() {
  snapshots_.stop();
  shop_.stop();
}

std::uint16_t Service::port() const noexcept { return http_->port(); }
std::uint16_t Service::health_port() const noexcept { return health_->port(); }

http::Routes Service::public_routes() {
  http::Routes routes;
  sales_.add_routes(routes);
  orders_.add_routes(routes);
  queue_.add_routes(routes);
  payments_.add_routes(routes);
  tools_.add_routes(routes);
  pages_.add_routes(routes);
  feed_.add_routes(routes);
  operate_.add_routes(routes);
  add_console(routes);
  return routes;
}

http::Routes Service::health_routes() {
  http::Routes routes;
  routes.add({.method = "GET",
              .path = "/metrics",
              .operation = "metrics",
              .summary = "Figures for Prometheus",
              .answers = {{200, "The figures", {}, std::string{prometheus_media}}},
              .handler = [this](http::Request&&, http::Responder&& respond) {
                respond.send({.status = 200,
                              .media = prometheus_media,
                              .body = prometheus_text() + http_->metrics() + limits_.metrics() +
                                      feed_.metrics() + answers_text() + troubles_text() +
                                      needs_text()});
              }});
  return routes;
}

/// What the last look at store and database has found: a balancer's question waits for neither.
/// Empty: nothing is wrong.
std::string Service::said_of(Trouble trouble) const {
  const auto* const http = serving_.load(std::memory_order_acquire);
  switch (trouble) {
    case Trouble::starts: return http ? "" : "it has only begun";
    case Trouble::stops: return !http || http->is_ready() ? "" : "it is being stopped";
    case Trouble::store: return shop_.trouble(Needed::store);
    case Trouble::database: return shop_.trouble(Needed::database);
    case Trouble::worker:
      for (const auto& offer : shop_.all())
        if (const auto why = offer->trouble(); !why.empty())
          return fmt::format("sale '{}': {}", offer->name(), why);
      return {};
    case Trouble::sale:
      for (const auto& [sale, why] : shop_.troubles())
        return fmt::format("sale '{}': {}", sale, why);
      return {};
  }
  return {};
}

/// The first of them.
std::string Service::troubles_that(bool TroubleRow::*is, bool value) const {
  for (const auto& row : trouble_rows)
    if (row.*is == value)
      if (auto why = said_of(row.trouble); !why.empty()) return why;
  return {};
}

std::string Service::troubles_text() const {
  std::string text =
      "# HELP sluice_service_trouble What is wrong with this process; 0: it is not\n"
      "# TYPE sluice_service_trouble gauge\n";
  for (const auto& row : trouble_rows)
    if (row.is_alert)
      text += fmt::format("sluice_service_trouble{{trouble=\"{}\"}} {}\n", row.name,
                          said_of(row.trouble).empty() ? 0 : 1);
  return text;
}

Snapshots::Load Service::load() {
  const auto* const http = serving_.load(std::memory_order_acquire);
  const auto load = http ? http->load() : http::Server::Load{};
  auto trouble = troubles_that(&TroubleRow::is_ready, false);
  if (trouble.empty()) trouble = troubles_that(&TroubleRow::is_alert, true);
  return {std::move(trouble), load.connections, load.requests};
}

/// For Prometheus: what buyers of each sale were answered.
std::string Service::answers_text() {
  std::string text =
      "# HELP sluice_service_answers_total Answers to buyers\n"
      "# TYPE sluice_service_answers_total counter\n";
  for (const auto& offer : shop_.all())
    for (std::size_t i = 0; i < outcome_names.size(); ++i)
      if (const auto count = offer->answers().of(i))
        text += fmt::format("sluice_service_answers_total{{{}}} {}\n",
                            labels_text({{"sale", offer->name()}, {"outcome", outcome_names[i]}}),
                            count);
  return text;
}

/// For Prometheus: what waits for a person, as the database has said after the question before.
std::string Service::needs_text() {
  struct Need {
    const char* what;
    std::int64_t OrderFigures::*count;
  };
  constexpr Need needs[] = {{"payments_flagged", &OrderFigures::payments_flagged},
                            {"payments_waiting", &OrderFigures::payments_waiting},
                            {"refunds", &OrderFigures::refunds},
                            {"refunds_failing", &OrderFigures::refunds_failing},
                            {"messages_failing", &OrderFigures::messages_failing},
                            {"messages_stopped", &OrderFigures::messages_stopped},
                            {"messages_dead", &OrderFigures::messages_dead}};
  std::string text =
      "# HELP sluice_service_needs What a person may have to look at, of each sale\n"
      "# TYPE sluice_service_needs gauge\n";
  const auto offers = shop_.all();
  snapshots_.database().want(rows_of(offers));
  const auto known = snapshots_.database().latest();
  const auto add = [&](std::string_view sale, std::string_view what, std::int64_t count) {
    text += fmt::format("sluice_service_needs{{{}}} {}\n",
                        labels_text({{"sale", sale}, {"what", what}}), count);
  };
  for (const auto& offer : offers)
    if (const auto figures = figures_of(offer->sale(), *known);
        figures && offer->sale().definition().payment)
      for (const auto& need : needs) add(offer->name(), need.what, (*figures).*need.count);
  if (known->strays) add("", "payments_of_no_sale", *known->strays);
  return text;
}

void Service::look_again(const std::stop_token& stop, std::chrono::milliseconds every) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock{mutex};
  for (;;) {
    stopped.wait_for(lock, stop, every, [] { return false; });
    if (stop.stop_requested()) return;
    shop_.look();
    queue_.look();
  }
}

void Service::stop(std::chrono::nanoseconds within, std::chrono::nanoseconds notice) {
  http_->stop(within, notice);
  looker_.request_stop();
  threads_.stop();
  messenger_.stop();
  operate_.stop();
  snapshots_.stop();
  shop_.stop();
}

}  // namespace sluice::server
