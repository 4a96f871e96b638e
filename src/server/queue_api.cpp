#include "server/queue_api.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/instant.hpp"
#include "server/problems.hpp"
#include "sluice/log.hpp"

namespace sluice::server {
namespace {

const std::string place_schema =
    R"({"type":"object","required":["state"],"properties":{
"state":{"type":"string","enum":["enrolled","waiting","inside","left"]},
"was":{"type":"string","description":"the state before the place was given up"},
"ticket":{"type":"string"},"number":{"type":"integer","description":"of the arrival"},
"position":{"type":"integer","description":"since the opening; 0: not drawn yet"},
"before":{"type":"integer","description":"places before this one"},
"eta_s":{"type":"integer"},
"poll_after_ms":{"type":"integer","description":"ask again then, not before"},
"inside_until":{"type":"string","format":"date-time",
"description":"left then, unless heard of before"},
"stay_until":{"type":"string","format":"date-time",
"description":"left then, though heard of: the queue gives another place"},
"units_left":{"type":"integer"},
"paused":{"type":"boolean"},"closed":{"type":"boolean"}}})";

const std::string draw_schema =
    R"({"type":"object","properties":{"commitment":{"type":"string",
"description":"SHA-256 of the seed"},"seed":{"type":"string"},"places":{"type":"integer"}}})";

/// What the members of a place are, in an answer or in a refusal.
std::vector<Json::Member> members_of(const RoomPlace& place) {
  std::vector<Json::Member> members{{"state", to_string(place.state)},
                                    {"number", place.number},
                                    {"position", place.position},
                                    {"before", place.before},
                                    {"poll_after_ms", place.poll_after.count()},
                                    {"paused", place.paused},
                                    {"closed", place.closed}};
  if (place.eta)
    members.emplace_back("eta_s", std::chrono::ceil<std::chrono::seconds>(*place.eta).count());
  if (place.inside_until) members.emplace_back("inside_until", to_text(*place.inside_until));
  if (place.stay_until) members.emplace_back("stay_until", to_text(*place.stay_until));
  if (place.units_left) members.emplace_back("units_left", *place.units_left);
  return members;
}

http::Response answer_of(const RoomPlace& place, std::string_view ticket = {}) {
  auto json = Json::object();
  if (!ticket.empty()) json.add("ticket", ticket);
  for (const auto& [name, value] : members_of(place)) json.add(name, value);
  auto response = http::json(200, json);
  if (place.state != PlaceState::left) http::add_retry_after(response, place.poll_after);
  return response;
}

http::Response not_let_in(std::string_view detail) {
  return http::problem(problems::not_inside, detail);
}

std::string_view sentence_of(TokenRefusal refusal) {
  switch (refusal) {
    case TokenRefusal::expired: return "the ticket has expired: POST to the queue finds the place";
    case TokenRefusal::other_subject: return "the ticket is another buyer's";
    case TokenRefusal::other_audience: return "the ticket is for something else";
    default: return "the ticket is none of this room";
  }
}

}  // namespace

QueueApi::QueueApi(Store& store, Shop& shop, const Buyers& buyers, TokenKeys keys,
                   std::vector<WaitingRoomDefinition> rooms)
    : store_(store),
      shop_(shop),
      buyers_(buyers),
      keys_(std::move(keys)),
      definitions_(std::move(rooms)) {
  for (const auto& definition : definitions_) {
    if (!shop_.find(definition.name))
      throw Error{Errc::bad_argument,
                  fmt::format("there is no sale '{}' for a waiting room", definition.name)};
    rooms_.emplace(definition.name, std::make_shared<Room>(make(definition)));
  }
  look();
}

/// The opening of a sale is its room's, unless that was given one. A room that is there has the
/// opening that it was made with: older versions made it without.
WaitingRoom QueueApi::make(WaitingRoomDefinition definition) const {
  if (definition.opens_at) return WaitingRoom::create(store_, keys_, std::move(definition)).get();
  const auto opens_at = shop_.find(definition.name)->sale().definition().opens_at;
  if (auto there = WaitingRoom::load(store_, keys_, definition.name).get()) {
    definition.opens_at = there->status().get().opens_at;
    if (definition.opens_at != opens_at)
      log(LogLevel::warning,
          fmt::format(
              "the waiting room of sale '{0}' was made with another opening than the sale's "
              "and keeps it: 'sluice room remove {0}' lets it be made anew",
              definition.name));
  } else {
    definition.opens_at = opens_at;
  }
  return WaitingRoom::create(store_, keys_, std::move(definition)).get();
}

std::shared_ptr<QueueApi::Room> QueueApi::find(std::string_view sale) const {
  const std::shared_lock lock{mutex_};
  const auto found = rooms_.find(sale);
  return found == rooms_.end() ? nullptr : found->second;
}

void QueueApi::look() {
  for (const auto& offer : shop_.all()) {
    std::string trouble;
    try {
      look_at(offer->name());
    } catch (const std::exception& failure) {
      trouble = failure.what();
    }
    auto& before = troubles_[offer->name()];
    if (!trouble.empty() && trouble != before)
      log(LogLevel::error,
          fmt::format("the waiting room of sale '{}': {}", offer->name(), trouble));
    before = std::move(trouble);
  }
}

/// A room that is gone lets everybody in: somebody removed it. One of the command line is made
/// again: the store has lost it.
void QueueApi::look_at(const std::string& sale) {
  auto room = find(sale);
  auto loaded = WaitingRoom::load(store_, keys_, sale).get();
  if (!loaded) {
    const auto definition = std::ranges::find(definitions_, sale, &WaitingRoomDefinition::name);
    if (definition != definitions_.end()) loaded = make(*definition);
  }
  if (!loaded) {
    if (!room) return;
    log(LogLevel::warning, fmt::format("the waiting room of sale '{}' is gone", sale));
    const std::lock_guard lock{mutex_};
    rooms_.erase(sale);
    return;
  }
  if (!room) {
    room = std::make_shared<Room>(std::move(*loaded));
    const std::lock_guard lock{mutex_};
    rooms_.emplace(sale, room);
  }
  const auto offer = shop_.find(sale);
  const auto status = offer->sale().status().get();
  if (status.state == SaleState::archived) {
    if (!std::exchange(room->is_over, true)) room->room.close().get();
    return;
  }
  const auto left = status.left();
  if (room->told == left) return;
  room->room.set_units_left(left).get();
  room->told = left;
}

std::shared_ptr<WaitingRoom> QueueApi::room_of(std::string_view sale) const {
  const auto room = find(sale);
  return room ? std::shared_ptr<WaitingRoom>{room, &room->room} : nullptr;
}

Task<std::optional<http::Response>> QueueApi::stop(const std::string& ticket,
                                                   const std::string& sale, const BuyerId& buyer) {
  const auto room = find(sale);
  if (!room) co_return std::nullopt;
  if (ticket.empty())
    co_return not_let_in(
        "this sale has a waiting room: POST to its queue gives a ticket, which "
        "goes into one field Sluice-Ticket");
  auto asked = room->room.state(ticket, buyer.value);
  const auto place = co_await asked;
  if (!place) co_return not_let_in(sentence_of(place.error()));
  if (place->state == PlaceState::inside) co_return std::nullopt;
  if (place->state == PlaceState::left)
    co_return not_let_in("your place is over: POST to the queue gives another");
  auto response = not_let_in("it is not your turn yet");
  http::add_retry_after(response, place->poll_after);
  co_return response;
}

/// A buyer who can buy no more makes room for the next one.
Task<void> QueueApi::served(const std::string& ticket, const std::string& sale,
                            const BuyerId& buyer) {
  const auto room = find(sale);
  const auto offer = shop_.find(sale);
  if (!room || !offer || ticket.empty() || offer->sale().definition().limit != 1) co_return;
  try {
    auto left = room->room.leave(ticket, buyer.value);
    co_await left;
  } catch (const Error& failure) {  // his order stands; his place runs out by itself
    log(LogLevel::warning, failure.what());
  }
}

Expected<QueueApi::Asked, http::Response> QueueApi::asked_of(const http::Request& request) const {
  const auto& sale = request.parameter("sale");
  auto buyer = buyers_.who_asks(request, sale);
  if (!buyer) return Unexpected{std::move(buyer.error())};
  auto room = find(sale);
  if (!room) return Unexpected{http::problem(problems::no_queue)};
  if (request.count("Sluice-Ticket") > 1)
    return Unexpected{not_let_in("the field Sluice-Ticket stands there more than once")};
  return Asked{std::move(room), std::move(buyer->value),
               std::string{request.field("Sluice-Ticket").value_or("")}};
}

void QueueApi::enter(http::Request&& request, http::Responder&& respond) {
  auto asked = asked_of(request);
  if (!asked) return respond.send(std::move(asked.error()));
  spawn(answer_entry(std::move(*asked), std::move(respond)));
}

void QueueApi::show(http::Request&& request, http::Responder&& respond) {
  auto asked = asked_of(request);
  if (!asked) return respond.send(std::move(asked.error()));
  spawn(answer_place(std::move(*asked), std::move(respond)));
}

void QueueApi::leave(http::Request&& request, http::Responder&& respond) {
  auto asked = asked_of(request);
  if (!asked) return respond.send(std::move(asked.error()));
  spawn(answer_leave(std::move(*asked), std::move(respond)));
}

void QueueApi::show_draw(http::Request&& request, http::Responder&& respond) {
  if (auto stopped = buyers_.stop(request, std::nullopt)) return respond.send(std::move(*stopped));
  auto room = find(request.parameter("sale"));
  if (!room) return respond.send(http::problem(problems::no_queue));
  spawn(answer_draw({std::move(room), {}, {}}, std::move(respond)));
}

Task<void> QueueApi::answer_entry(Asked asked, http::Responder respond) {
  http::Response response;
  try {
    auto entering = asked.room->room.enter(std::move(asked.buyer));
    const auto entry = co_await entering;
    response = entry.ticket.empty() ? http::problem(problems::queue_closed)
                                    : answer_of(entry.place, entry.ticket);
  } catch (const std::exception& failure) {
    response = problem_of(failure);
  }
  respond.send(std::move(response));
}

Task<void> QueueApi::answer_place(Asked asked, http::Responder respond) {
  http::Response response;
  try {
    auto looking = asked.room->room.state(std::move(asked.ticket), std::move(asked.buyer));
    const auto place = co_await looking;
    response = place ? answer_of(*place) : not_let_in(sentence_of(place.error()));
  } catch (const std::exception& failure) {
    response = problem_of(failure);
  }
  respond.send(std::move(response));
}

Task<void> QueueApi::answer_leave(Asked asked, http::Responder respond) {
  http::Response response;
  try {
    auto leaving = asked.room->room.leave(std::move(asked.ticket), std::move(asked.buyer));
    const auto before = co_await leaving;
    response = before
                   ? http::json(200, Json::object({{"state", "left"}, {"was", to_string(*before)}}))
                   : not_let_in(sentence_of(before.error()));
  } catch (const std::exception& failure) {
    response = problem_of(failure);
  }
  respond.send(std::move(response));
}

Task<void> QueueApi::answer_draw(Asked asked, http::Responder respond) {
  http::Response response;
  try {
    const auto draw = co_await asked.room->room.draw();
    auto json = Json::object({{"commitment", draw.commitment}, {"places", draw.places}});
    if (!draw.seed.empty()) json.add("seed", draw.seed);
    response = http::json(200, json);
  } catch (const std::exception& failure) {
    response = problem_of_read(failure);
  }
  respond.send(std::move(response));
}

void QueueApi::add_routes(http::Routes& routes) {
  struct Row {
    const char* method;
    const char* path;
    const char* operation;
    const char* summary;
    const std::string& schema;
    void (QueueApi::*serve)(http::Request&&, http::Responder&&);
    bool is_public = false;
  };
  const Row rows[] = {{"POST", "/v1/sales/{sale}/queue", "enter_queue",
                       "A place in the waiting room of a sale, the same for each repeat",
                       place_schema, &QueueApi::enter},
                      {"GET", "/v1/sales/{sale}/queue", "show_place",
                       "How the holder of a ticket stands", place_schema, &QueueApi::show},
                      {"DELETE", "/v1/sales/{sale}/queue", "leave_queue", "Give a place up",
                       place_schema, &QueueApi::leave},
                      {"GET", "/v1/sales/{sale}/queue/draw", "show_draw",
                       "What is published of the draw", draw_schema, &QueueApi::show_draw, true}};
  for (const auto& row : rows) {
    http::Route route{
        .method = row.method,
        .path = row.path,
        .operation = row.operation,
        .summary = row.summary,
        .answers = {{200, row.summary, row.schema}},
        .problems = {&problems::no_queue, &problems::too_many_requests, &problems::store_failed,
                     &problems::effect_unknown, &problems::busy},
        .handler = [this, serve = row.serve](http::Request&& request, http::Responder&& respond) {
          (this->*serve)(std::move(request), std::move(respond));
        }};
    if (!row.is_public) {
      route.credentials = Buyers::credentials;
      route.parameters = {{"Sluice-Ticket", "header", "The ticket"}};
      route.problems.insert(route.problems.end(), {&problems::unknown_buyer, &problems::not_yours,
                                                   &problems::not_inside, &problems::queue_closed});
    }
    routes.add(std::move(route));
  }
}

}  // namespace sluice::server
