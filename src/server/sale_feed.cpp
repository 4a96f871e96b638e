#include "server/sale_feed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/callback.hpp"
#include "base/instant.hpp"
#include "base/random.hpp"
#include "base/thread.hpp"
#include "server/problems.hpp"
#include "sluice/log.hpp"
#include "sluice/when_all.hpp"

namespace sluice::server {
namespace {

using namespace std::chrono_literals;

const std::string event_schema =
    R"({"type":"string",
"description":"Events state, sold-out, reopened, closed; data: sale, state, left, opens_at"})";

std::string feed_data(const SaleDefinition& sale, const SaleStatus& status) {
  auto json = Json::object(
      {{"sale", sale.name}, {"state", to_string(status.state)}, {"left", status.left()}});
  if (sale.opens_at) json.add("opens_at", to_text(*sale.opens_at));
  return json.text();
}

bool is_over(SaleState state) noexcept {
  return state == SaleState::closed || state == SaleState::archived;
}

/// Between the bounds, so that those who were sent away do not come back together.
std::chrono::milliseconds some_time(std::chrono::milliseconds least,
                                    std::chrono::milliseconds most) {
  return least + std::chrono::milliseconds{
                     random_below(static_cast<std::uint64_t>((most - least).count()) + 1)};
}

http::Response come_back(const http::ProblemType& type, std::string_view detail) {
  auto response = http::problem(type, detail);
  http::add_retry_after(response, some_time(5s, 15s));
  return response;
}

struct Looked {
  std::optional<SaleStatus> status;
  std::string trouble;  // why there is none
};

/// One sale that cannot be asked holds up no other.
Task<Looked> look_at(std::shared_ptr<Offer> offer) {
  Looked looked;
  try {
    looked.status = co_await offer->sale().status();
  } catch (const Error& failure) {
    looked.trouble = failure.what();
  }
  co_return looked;
}

}  // namespace

SaleFeed::SaleFeed(Shop& shop, RateLimits& limits, FeedOptions options)
    : shop_(shop),
      limits_(limits),
      options_(options),
      process_(random_hex_128().substr(0, 16)),
      thread_(start_stoppable_thread([this](const std::stop_token& stop) { run(stop); })) {}

SaleFeed::~SaleFeed() = default;

void SaleFeed::run(const std::stop_token& stop) {
  std::unique_lock lock{mutex_};
  while (!stop.stop_requested()) {
    if (!somebody_.wait(lock, stop, [&] { return streams_ > 0; })) return;
    lock.unlock();
    call_user("the events of sales", [this] { look(); });
    lock.lock();
    somebody_.wait_for(lock, stop, options_.every, [] { return false; });
  }
}

void SaleFeed::look() {
  const auto offers = listened_to();
  if (offers.empty()) return;
  std::vector<Task<Looked>> questions;
  for (const auto& offer : offers) questions.push_back(look_at(offer));
  const auto looked = when_all(std::move(questions)).get();
  const std::lock_guard lock{mutex_};
  ++looks_;
  for (std::size_t i = 0; i < offers.size(); ++i) {
    if (looked[i].status)
      tell(offers[i]->sale().definition(), *looked[i].status);
    else if (failures_.is_due(system_clock().steady()))
      log(LogLevel::warning, "the events of a sale: " + looked[i].trouble);
  }
}

std::vector<std::shared_ptr<Offer>> SaleFeed::listened_to() {
  std::vector<std::string> names;
  {
    const std::lock_guard lock{mutex_};
    forget_those_gone();
    for (const auto& [name, subject] : subjects_)
      if (!subject.listeners.empty()) names.push_back(name);
  }
  std::vector<std::shared_ptr<Offer>> offers;
  for (const auto& name : names)
    if (auto offer = shop_.find(name)) offers.push_back(std::move(offer));
  return offers;
}

void SaleFeed::tell(const SaleDefinition& sale, const SaleStatus& status) {
  auto& subject = subjects_.find(sale.name)->second;
  const auto before = std::exchange(subject.told, status);
  auto data = feed_data(sale, status);
  const bool is_news = before && data != subject.now;
  subject.now = std::move(data);
  std::vector<http::StreamEvent> events;
  const auto add = [&](std::string_view type) {
    events.push_back(subject.ring.add(type, subject.now));
  };
  if (is_news) {
    add("state");
    if (status.state == SaleState::sold_out && before->state != SaleState::sold_out)
      add("sold-out");
    if (status.state == SaleState::open && before->state == SaleState::sold_out) add("reopened");
    if (is_over(status.state) && !is_over(before->state)) add("closed");
  }
  subject.is_fresh = true;
  for (auto& listener : subject.listeners) {
    if (!std::exchange(listener.is_greeted, true)) {
      listener.stream.send(snapshot(subject));
      continue;
    }
    for (const auto& event : events) listener.stream.send(event);
  }
}

/// How the sale stands, as the last event of which the listener knows.
http::StreamEvent SaleFeed::snapshot(const Subject& subject) {
  return {.id = subject.ring.last_id(), .event = "state", .data = subject.now};
}

void SaleFeed::forget_those_gone() {
  for (auto& [name, subject] : subjects_) {
    std::erase_if(subject.listeners, [&](const Listener& listener) {
      if (listener.stream.is_open()) return false;
      --streams_;
      const auto of_client = of_clients_.find(listener.client);
      if (of_client != of_clients_.end() && --of_client->second == 0) of_clients_.erase(of_client);
      return true;
    });
    subject.is_fresh = subject.is_fresh && !subject.listeners.empty();
  }
}

std::optional<http::Response> SaleFeed::refusal(const std::string& client) {
  const auto are_too_many = [&] {
    const auto of_client = of_clients_.find(client);
    return of_client != of_clients_.end() && of_client->second >= options_.of_a_client;
  };
  const auto is_full = [&] { return streams_ >= options_.streams; };
  if (are_too_many() || is_full()) forget_those_gone();
  if (are_too_many())
    return come_back(problems::too_many_requests, "this address listens by too many streams");
  if (is_full()) return come_back(problems::busy, "too many listen");
  return std::nullopt;
}

void SaleFeed::listen(http::Request&& request, http::Responder&& respond) {
  if (auto refusal = limits_.stop(request)) return respond.send(std::move(*refusal));
  const auto& name = request.parameter("sale");
  if (!shop_.find(name)) return respond.send(http::problem(problems::no_sale));
  auto client = limits_.network_of(request);
  const std::lock_guard lock{mutex_};
  if (auto refused = refusal(client)) return respond.send(std::move(*refused));
  auto& subject = subjects_.try_emplace(name, EventRing{process_, options_.kept}).first->second;
  subject.listeners.push_back({.stream = respond.stream(), .client = client});
  ++streams_;
  if (!client.empty()) ++of_clients_[client];
  welcome(subject, subject.listeners.back(), request.field("Last-Event-ID").value_or(""));
  somebody_.notify_all();
}

/// What a listener missed; or how the sale stands, where that is known. Else the next look says it.
void SaleFeed::welcome(Subject& subject, Listener& listener, std::string_view last_id) {
  // Those whom a restart cuts off do not come back together.
  listener.stream.pause_before_return(some_time(1s, 5s));
  if (const auto missed = subject.ring.after(last_id)) {
    for (const auto& event : *missed) listener.stream.send(event);
    listener.is_greeted = true;
  } else if (subject.is_fresh) {
    listener.stream.send(snapshot(subject));
    listener.is_greeted = true;
  }
}

std::uint64_t SaleFeed::looks() const {
  const std::lock_guard lock{mutex_};
  return looks_;
}

std::size_t SaleFeed::streams() const {
  const std::lock_guard lock{mutex_};
  return streams_;
}

std::string SaleFeed::metrics() const {
  return fmt::format(
      "# HELP sluice_service_event_streams Clients that listen to how sales stand\n"
      "# TYPE sluice_service_event_streams gauge\nsluice_service_event_streams {}\n",
      streams());
}

void SaleFeed::add_routes(http::Routes& routes) {
  routes.add({.method = "GET",
              .path = "/v1/sales/{sale}/events",
              .operation = "watch_sale",
              .summary = "How a sale stands from now on, as Server-Sent Events",
              .parameters = {{"Last-Event-ID", "header",
                              "The id of the last event that came: what was missed comes first"}},
              .answers = {{200, "The events", event_schema, "text/event-stream"}},
              .problems = {&problems::no_sale, &problems::too_many_requests, &problems::busy},
              .handler = [this](http::Request&& request, http::Responder&& respond) {
                listen(std::move(request), std::move(respond));
              }});
}

}  // namespace sluice::server
