#include "server/simulated_provider.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/integer.hpp"
#include "base/json_value.hpp"
#include "base/random.hpp"
#include "base/thread.hpp"
#include "http/text.hpp"
#include "server/problems.hpp"
#include "sluice/log.hpp"

namespace sluice::server {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view ways[ways_of_paying] = {"pay",   "late",  "again",
                                                   "twice", "wrong", "never"};

std::optional<Paying> way_named(std::string_view name) {
  const auto* const found = std::ranges::find(ways, name);
  if (found == std::end(ways)) return std::nullopt;
  return static_cast<Paying>(found - std::begin(ways));
}

std::string text_in(const JsonValue& object, std::string_view name) {
  const auto* const value = object.find(name);
  return value && value->as_text() ? *value->as_text() : std::string{};
}

std::int64_t integer_in(const JsonValue& object, std::string_view name) {
  const auto* const value = object.find(name);
  return value && value->as_integer() ? *value->as_integer() : 0;
}

/// What is wrong with a wish to pay; empty: nothing. What no service takes would be told for ever.
std::string wrong_with(Payment payment, const HmacPayments& provider) {
  constexpr std::int64_t highest = 1'000'000'000'000;  // so that sums stay integers
  if (payment.amount > highest) return fmt::format("'amount' is {} at most", highest);
  payment.event = "evt";
  const auto now = system_clock().wall();
  const auto body = HmacPayments::body_of(payment);
  return provider.read(provider.sign(body, payment.event, now), body, now).why;
}

/// A page of the internet, in a browser on this machine, that pays what it likes.
bool is_of_a_page_elsewhere(const http::Request& request) {
  const auto origin = request.field("Origin");
  return origin && !is_private_by_its_text(std::string{*origin});
}

HttpFields signed_fields(const WebhookHead& head) {
  return {{"Content-Type", "application/json"},
          {"webhook-id", head.id},
          {"webhook-timestamp", head.timestamp},
          {"webhook-signature", head.signature}};
}

std::string single_field(const http::Request& request, std::string_view name) {
  return request.count(name) == 1 ? std::string{*request.field(name)} : std::string{};
}

http::Route route_of(std::string method, std::string path, std::string operation,
                     std::string summary, http::Handler handler) {
  return {.method = std::move(method),
          .path = std::move(path),
          .operation = std::move(operation),
          .summary = std::move(summary),
          .parameters = {},
          .request = {},
          .answers = {{200, "Done", R"({"type":"object"})"}},
          .problems = {},
          .credentials = {},
          .handler = std::move(handler)};
}

}  // namespace

std::string_view to_string(Paying way) noexcept { return ways[static_cast<std::size_t>(way)]; }

PayingHabits PayingHabits::of(std::string_view words) {
  const auto refuse = [&] {
    throw Error{Errc::bad_argument,
                fmt::format("'{}' is no way to pay: write one of {}, or parts as in "
                            "pay=90,late=5,never=5",
                            words.substr(0, 80), fmt::join(ways, ", "))};
  };
  PayingHabits habits{.parts = {}};
  http::for_each_item(words, [&](std::string_view word) {
    const auto equals = word.find('=');
    const auto way = way_named(word.substr(0, equals));
    const auto parts = equals == word.npos ? std::optional<std::uint32_t>{1}
                                           : parse_integer<std::uint32_t>(word.substr(equals + 1));
    if (!way || !parts || *parts > 1'000'000) refuse();
    habits.parts[static_cast<std::size_t>(*way)] = *parts;
    return true;
  });
  if (std::ranges::all_of(habits.parts, [](auto part) { return part == 0; })) refuse();
  return habits;
}

Paying PayingHabits::choose() const {
  auto at = random_below(std::accumulate(parts.begin(), parts.end(), std::uint64_t{0}));
  std::size_t way = 0;
  while (at >= parts[way]) at -= parts[way++];
  return static_cast<Paying>(way);
}

SimulatedProvider::SimulatedProvider(SimulatedProviderOptions options)
    : options_(std::move(options)) {
  server_ = std::make_unique<http::Server>(
      system_clock(), routes(), http::ServerOptions{.listen = options_.listen, .loops = 1});
  teller_ = start_stoppable_thread([this](const std::stop_token& stop) { tell_all(stop); });
  if (options_.shop)
    payer_ = start_stoppable_thread([this](const std::stop_token& stop) { pay_all(stop); });
}

SimulatedProvider::~SimulatedProvider() = default;

http::Routes SimulatedProvider::routes() {
  const auto answered_by = [this](http::Response (SimulatedProvider::*take)(const http::Request&)) {
    return [this, take](http::Request&& request, http::Responder&& respond) {
      respond.send((this->*take)(request));
    };
  };
  http::Routes routes;
  routes.add(
      route_of("POST", "/pay", "pay", "Pay an order", answered_by(&SimulatedProvider::take_wish)));
  routes.add(route_of("POST", "/refund", "refund", "Give money back",
                      answered_by(&SimulatedProvider::take_refund)));
  routes.add(route_of("GET", "/state", "state", "What was done so far",
                      [this](http::Request&&, http::Responder&& respond) {
                        respond.send(http::json(200, state()));
                      }));
  return routes;
}

http::Response SimulatedProvider::take_wish(const http::Request& request) {
  if (is_of_a_page_elsewhere(request)) return http::problem(problems::not_same_origin);
  const auto body = JsonValue::parse(request.body(), {.bytes = 16 << 10, .depth = 4});
  if (!body) return http::problem(problems::bad_body, body.error());
  Payment payment{.provider = options_.provider->name(),
                  .event = {},
                  .sale = text_in(*body, "sale"),
                  .order = text_in(*body, "order"),
                  .amount = integer_in(*body, "amount"),
                  .currency = text_in(*body, "currency")};
  if (const auto wrong = wrong_with(payment, *options_.provider); !wrong.empty())
    return http::problem(problems::bad_body, wrong);
  auto way = options_.habits.choose();
  if (body->find("as")) {
    const auto named = way_named(text_in(*body, "as"));
    if (!named)
      return http::problem(problems::bad_body,
                           fmt::format("'as' is one of {}", fmt::join(ways, ", ")));
    way = *named;
  }
  if (!pay(std::move(payment), way)) return http::problem(problems::busy);
  return http::json(202, Json::object({{"as", to_string(way)}}));
}

/// False: too many wait to be told.
bool SimulatedProvider::pay(Payment payment, Paying way) {
  using enum Paying;
  const std::lock_guard lock{mutex_};
  if (waiting_.size() >= most_waiting) return false;
  ++counts_.ways[static_cast<std::size_t>(way)];
  if (way == never) return true;
  if (way == wrong) ++payment.amount;
  plan(payment, way == late ? options_.late : options_.delay, way == again ? 5 : 1);
  if (way == twice) plan(payment, options_.delay);
  return true;
}

/// REQUIRES: mutex_ is held.
void SimulatedProvider::plan(Payment payment, std::chrono::milliseconds in, int times) {
  payment.event = "evt_" + random_hex_128();
  paid_.emplace(payment.event, payment.amount);
  money_[payment.currency].paid += payment.amount;
  waiting_.emplace(system_clock().steady() + in,
                   Telling{std::move(payment), times, options_.first_pause});
  planned_.notify_all();
}

void SimulatedProvider::tell_all(const std::stop_token& stop) {
  HttpClient client{{.allows_private = true}};
  const std::stop_callback cut{stop, [&client] { client.stop(); }};
  std::unique_lock lock{mutex_};
  while (!stop.stop_requested()) {
    const auto now = system_clock().steady();
    if (waiting_.empty() || waiting_.begin()->first > now) {
      const auto size = waiting_.size();
      const auto first = waiting_.empty() ? now + 1h : waiting_.begin()->first;
      planned_.wait_for(lock, stop, first - now, [&] { return waiting_.size() != size; });
      continue;
    }
    auto telling = std::move(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
    lock.unlock();
    const bool is_told = tell(client, telling.payment);
    lock.lock();
    ++(is_told ? counts_.told : counts_.telling_failed);
    if (is_told && --telling.left == 0) continue;
    const auto again = is_told ? 0ms : telling.pause;
    if (!is_told) telling.pause = std::min(telling.pause * 2, std::chrono::milliseconds{1min});
    waiting_.emplace(system_clock().steady() + again, std::move(telling));
  }
}

bool SimulatedProvider::tell(HttpClient& client, const Payment& payment) {
  std::string why;
  try {
    const auto body = HmacPayments::body_of(payment);
    const auto head = options_.provider->sign(body, payment.event, system_clock().wall());
    const auto answer = client.post(options_.payments, signed_fields(head), body);
    if (answer.status / 100 == 2) return true;
    why = fmt::format("{} answered {}", origin_of(options_.payments), answer.status);
  } catch (const Error& failure) {
    if (failure.errc() == Errc::closed) return false;
    why = failure.message();
  }
  log(LogLevel::warning,
      fmt::format("the payment of order {}: {}; it is told again", payment.order, why));
  return false;
}

http::Response SimulatedProvider::take_refund(const http::Request& request) {
  const WebhookHead head{.id = single_field(request, "webhook-id"),
                         .timestamp = single_field(request, "webhook-timestamp"),
                         .signature = single_field(request, "webhook-signature")};
  const auto trust = options_.provider->read(head, request.body(), system_clock().wall());
  const auto body = JsonValue::parse(request.body(), {.bytes = 16 << 10, .depth = 4});
  const auto key = single_field(request, "Idempotency-Key");
  {
    const std::lock_guard lock{mutex_};
    ++counts_.refunds_asked;
    const bool is_signed = trust.trust != PaymentNotice::Trust::not_signed;
    if (!is_signed || !body || key.empty() || text_in(*body, "id") != key) {
      ++counts_.refunds_refused;
      return http::problem(is_signed ? problems::bad_body : problems::not_signed, trust.why);
    }
  }
  const bool fails = random_below(100) < options_.refunds_fail;
  if (!fails || random_below(2) == 0) {
    auto answer = take_refund(
        key, {.payment = text_in(*body, "payment"), .amount = integer_in(*body, "amount")},
        text_in(*body, "currency"));
    if (!fails) return answer;
  }
  const std::lock_guard lock{mutex_};
  ++counts_.refunds_failed;
  return http::problem(problems::busy, "this refund fails on purpose");
}

http::Response SimulatedProvider::take_refund(const std::string& key, const TakenRefund& refund,
                                              const std::string& currency) {
  const std::lock_guard lock{mutex_};
  const auto refuse = [&](std::string_view why) {
    ++counts_.refunds_refused;
    return http::problem(problems::bad_body, why);
  };
  const auto done = http::json(200, Json::object({{"id", key}}));
  if (const auto known = refunds_.find(key); known != refunds_.end()) {
    const bool is_same =
        known->second.payment == refund.payment && known->second.amount == refund.amount;
    return is_same ? done : refuse("this key has given another amount back");
  }
  if (refund.amount < 1) return refuse("'amount' is a whole number above 0");
  std::int64_t given_back = 0;
  for (const auto& [other, taken] : refunds_)
    if (taken.payment == refund.payment) given_back += taken.amount;
  const auto paid = paid_.find(refund.payment);
  if (paid == paid_.end()) return refuse("there was no such payment, or it is forgotten");
  if (refund.amount > paid->second - given_back) return refuse("more would go back than was paid");
  refunds_.emplace(key, refund);
  money_[currency].given_back += refund.amount;
  return done;
}

Json SimulatedProvider::state() const {
  const std::lock_guard lock{mutex_};
  auto wishes = Json::object();
  for (std::size_t way = 0; way < ways_of_paying; ++way) wishes.add(ways[way], counts_.ways[way]);
  auto money = Json::object();
  for (const auto& [currency, sums] : money_)
    money.add(currency, Json::object({{"paid", sums.paid}, {"given_back", sums.given_back}}));
  return Json::object({{"ways", wishes},
                       {"told", counts_.told},
                       {"telling_failed", counts_.telling_failed},
                       {"waiting", waiting_.size()},
                       {"refunds", Json::object({{"asked", counts_.refunds_asked},
                                                 {"taken", refunds_.size()},
                                                 {"failed_on_purpose", counts_.refunds_failed},
                                                 {"refused", counts_.refunds_refused}})},
                       {"money", money}});
}

// --- orders that nobody has asked to pay ---

namespace {

JsonValue json_from(HttpClient& client, const std::string& url, const HttpFields& fields) {
  const auto answer = client.get(url, fields);
  auto body = JsonValue::parse(answer.body, {.bytes = 1 << 20});
  if (answer.status != 200 || !body)
    throw Error{Errc::server, fmt::format("{} answered {}", origin_of(url), answer.status)};
  return std::move(*body);
}

const JsonValue::Array& array_in(const JsonValue& object, std::string_view name) {
  static const JsonValue::Array none;
  const auto* const value = object.find(name);
  return value && value->as_array() ? *value->as_array() : none;
}

}  // namespace

void SimulatedProvider::pay_all(const std::stop_token& stop) {
  HttpClient client{{.body = 1 << 20, .allows_private = true}};
  const std::stop_callback cut{stop, [&client] { client.stop(); }};
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock{mutex};
  std::string told;
  while (!stop.stop_requested()) {
    try {
      const auto sales = json_from(client, options_.shop->url + "/v1/sales", {});
      for (const auto& sale : array_in(sales, "sales"))
        if (const auto currency = text_in(sale, "currency"); !currency.empty())
          pay_orders_of(client, text_in(sale, "name"), currency);
      told.clear();
    } catch (const Error& failure) {
      if (told != failure.message() && failure.errc() != Errc::closed)
        log(LogLevel::warning, "the shop's orders: " + failure.message());
      told = failure.message();
    }
    stopped.wait_for(lock, stop, options_.every, [] { return false; });
  }
}

void SimulatedProvider::pay_orders_of(HttpClient& client, const std::string& sale,
                                      const std::string& currency) {
  const HttpFields fields{{"Authorization", "Bearer " + options_.shop->key}};
  const auto of_sale = fmt::format("{}/v1/sales/{}", options_.shop->url, http::escape(sale));
  auto& after = looked_at_[sale];
  for (;;) {
    const auto page = json_from(client, of_sale + "/all-orders?after=" + after, fields);
    for (const auto& order : array_in(page, "orders")) {
      const auto id = text_in(order, "id");
      if (text_in(order, "state") == "awaiting") {
        const auto shown = json_from(client, fmt::format("{}/orders/{}", of_sale, id), fields);
        Payment payment{.provider = options_.provider->name(),
                        .event = {},
                        .sale = sale,
                        .order = text_in(order, "number"),
                        .amount = integer_in(shown, "due"),
                        .currency = currency};
        const bool is_due = payment.amount > 0;  // else it has ended meanwhile
        if (is_due && !pay(std::move(payment), options_.habits.choose())) return;  // later
      }
      after = id;
    }
    if (array_in(page, "orders").empty()) return;
  }
}

}  // namespace sluice::server
