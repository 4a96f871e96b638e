/// Every route that a service has, asked at the same moment: what each is answered, and when.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "server/browser.hpp"
#include "server/curl.hpp"
#include "sluice/payment_provider.hpp"
#include "sluice/webhook.hpp"

namespace sluice::test {

struct RouteAnswer {
  std::string operation;
  int status = 0;  ///< 0: none within half a minute
  std::string problem;
  std::chrono::milliseconds took{};
  bool says_when = false;  ///< by Retry-After
};

/// The sales `tea`, `cocoa` with a waiting room, and `mate`, which is closed and changed; the
/// provider `acme`. The service believes buyers. Of one operator four calls may wait, so each call
/// has an operator of its own.
class AllRoutes {
 public:
  using Keys = std::vector<std::string>;
  AllRoutes(std::uint16_t port, std::string secret, Keys keys)
      : port_(port), secret_(std::move(secret)), keys_(std::move(keys)) {
    const auto bought = order("ann", "first");
    order_ = bought.text("id");
    number_ = bought.text("number");
    Browser browser{port_};
    auto page = browser.get("/sales/tea");
    page = browser.submit(page, "/orders", "units=1");
    page_order_ = browser.path();
    held_ = ask(port_, "POST", "/v1/locks/frozen",
                {{"Idempotency-Key", "k"}, {"Authorization", key_of("show_lock")}})
                .text("owner");
    for (const auto* const place : {"/sales/tea", "/sales/cocoa"})
      forms_.emplace_back(place, browser.get(place));
    forms_.emplace_back(page_order_, page);
    cookies_ = fmt::format("Cookie: {}\r\n", browser.cookies_for("/sales/tea"));
    const auto document =
        JsonValue::parse(ask(port_, "GET", "/openapi.json").body, {.bytes = 4 << 20, .depth = 64})
            .value();
    for (const auto& [path, methods] : *document.find("paths")->as_object())
      for (const auto& [method, about] : *methods.as_object())
        routes_.push_back({upper(method), path, *about.find("operationId")->as_text()});
  }

  std::size_t size() const { return routes_.size(); }

  Answer order(std::string_view buyer, std::string_view key) const {
    return ask(port_, "POST", "/v1/sales/tea/orders",
               {{"Sluice-Buyer", buyer}, {"Idempotency-Key", key}});
  }

  /// All at once.
  std::vector<RouteAnswer> ask_all() {
    ++round_;
    std::vector<RouteAnswer> answers(routes_.size());
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < routes_.size(); ++i)
      threads.emplace_back([this, i, &answers] { answers[i] = ask_one(routes_[i]); });
    threads.clear();
    return answers;
  }

 private:
  struct Route {
    std::string method;
    std::string path;
    std::string operation;
  };

  static std::string upper(std::string text) {
    std::ranges::transform(text, text.begin(), [](char c) { return std::toupper(c); });
    return text;
  }

  /// A number of this round.
  std::string fresh(std::string_view word) const { return fmt::format("{}{}", word, round_); }

  std::string sale_of(const Route& route) const {
    const auto& name = route.operation;
    const auto is = [&](std::string_view part) { return name.find(part) != name.npos; };
    if (name == "close_sale" || name == "change_stock") return "mate";
    return is("queue") || is("place") || is("draw") || is("room") || is("join") || is("leave")
               ? "cocoa"
               : "tea";
  }

  std::string path_of(const Route& route) const {
    auto path = route.path;
    const std::pair<std::string_view, std::string> places[] = {
        {"{sale}", sale_of(route)},
        {"{order}", order_},
        {"{provider}", "acme"},
        {"{name}", route.operation == "acquire_lock" ? fresh("lock") : "frozen"},
        {"{owner}", held_},
        {"{id}", "1-1"},
        {"{event}", "none"},
        {"{asset}", "console.css"},
        {"{folder}", "js"}};
    if (route.operation == "page_order") return page_order_;
    if (route.operation == "page_cancel") return page_order_ + "/cancel";
    for (const auto& [from, to] : places)
      if (const auto at = path.find(from); at != path.npos) path.replace(at, from.size(), to);
    return path;
  }

  std::string body_of(const Route& route) const {
    static const std::map<std::string, std::string, std::less<>> bodies{
        {"log_in", R"({"key":"sk.none.none"})"},
        {"create_bloom_filter", R"({"expected":1000})"},
        {"add_to_bloom_filter", R"({"keys":["a"]})"},
        {"ask_bloom_filter", R"({"keys":["a"]})"},
        {"set_room_rate", R"({"rate":100})"},
        {"set_room_units", R"({"units":100})"},
        {"close_room", R"({"confirm":"no"})"},
        {"settle_dead_letter", R"({"confirm":"tea"})"},
        {"settle_payment", R"({"confirm":"acme","reason":"a test"})"},
        {"settle_refund", R"({"confirm":"tea","reason":"a test"})"},
        {"refund_payment", R"({"confirm":"acme","reason":"a test"})"},
        {"take_back_units", R"({"confirm":"tea","units":1000,"reason":"a test"})"},
        {"close_sale", R"({"confirm":"mate"})"},
        {"change_stock", R"({"stock":500,"confirm":"mate"})"}};
    if (route.operation.starts_with("page_")) {
      for (const auto& [place, page] : forms_)
        if (const auto shown = Browser::form(page, path_of(route)); !shown.action.empty())
          return shown.body;
      return "buyer=eve";
    }
    if (route.operation == "take_payment")
      return HmacPayments::body_of({.provider = "acme",
                                    .event = fresh("event"),
                                    .sale = "tea",
                                    .order = number_,
                                    .amount = 500,
                                    .currency = "CNY"});
    const auto found = bodies.find(route.operation);
    return found == bodies.end() ? std::string{} : found->second;
  }

  std::string fields_of(const Route& route, const std::string& body) const {
    const bool is_page = route.operation.starts_with("page_");
    auto fields = fmt::format(
        "Sec-Fetch-Site: same-origin\r\nOrigin: http://127.0.0.1\r\nIdempotency-Key: {}\r\n",
        fresh("key"));
    if (route.path.starts_with("/v1/") && !route.path.starts_with("/v1/sales"))
      fields += fmt::format("Authorization: {}\r\n", key_of(route.operation));
    if (is_page)
      fields += cookies_ + "Content-Type: application/x-www-form-urlencoded\r\n";
    else
      fields += fmt::format("Sluice-Buyer: {}\r\n",
                            route.operation == "buy" ? fresh("buyer") : std::string{"ann"});
    if (route.operation == "take_payment") {
      const auto head = WebhookKeys{{secret_}}.sign(fresh("event"), system_clock().wall(), body);
      fields += fmt::format("webhook-id: {}\r\nwebhook-timestamp: {}\r\nwebhook-signature: {}\r\n",
                            head.id, head.timestamp, head.signature);
    }
    return fields;
  }

  std::string key_of(const std::string& operation) const {
    return "Bearer " + keys_[std::hash<std::string>{}(operation) % keys_.size()];
  }

  RouteAnswer ask_one(const Route& route) const {
    const auto body = route.method == "GET" ? std::string{} : body_of(route);
    const auto began = std::chrono::steady_clock::now();
    std::string whole;
    try {
      http::RawClient client{port_};
      client.send(fmt::format("{} {} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {}\r\n{}\r\n{}",
                              route.method, path_of(route), body.size(), fields_of(route, body),
                              body));
      const bool is_stream = route.operation == "console_events" || route.operation == "watch_sale";
      whole = is_stream ? client.until("\r\n\r\n") : client.answer();
    } catch (const std::exception&) {
    }
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - began);
    const auto end = whole.find("\r\n\r\n");
    if (end == whole.npos) return {route.operation, 0, "", took};
    const Answer answer{std::stoi(whole.substr(9, 3)), whole.substr(0, end), whole.substr(end + 4)};
    const bool is_problem = answer.head.find("problem+json") != std::string::npos;
    return {route.operation, answer.status, is_problem ? answer.problem() : "", took,
            answer.has("Retry-After: ")};
  }

  const std::uint16_t port_;
  const std::string secret_;
  const Keys keys_;
  int round_ = 0;
  std::string held_;  // the lock `frozen`
  std::string order_;
  std::string number_;
  std::string page_order_;
  std::string cookies_;
  std::vector<std::pair<std::string, Answer>> forms_;
  std::vector<Route> routes_;
};

}  // namespace sluice::test
