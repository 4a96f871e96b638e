#include "server/operate_text.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/instant.hpp"
#include "server/sales_text.hpp"

namespace sluice::server {
namespace {

constexpr std::size_t most_workers = 16;

/// One digit behind the point is enough for people.
double rounded(double rate) { return std::round(rate * 10) / 10; }

Json answers_json(const AnswerCounts& answers) {
  auto json = Json::object();
  for (std::size_t i = 0; i < outcome_names.size(); ++i)
    if (const auto count = answers.of(i)) json.add(outcome_names[i], count);
  return json;
}

Json states_json(const OrderFigures& figures) {
  auto json = Json::object();
  for (const auto state : {OrderState::awaiting, OrderState::paid, OrderState::cancelled,
                           OrderState::expired, OrderState::refunding, OrderState::refunded}) {
    std::int64_t orders = 0;
    for (const auto& count : figures.orders)
      if (count.state == state) orders += count.orders;
    json.add(to_string(state), orders);
  }
  return json;
}

Json worker_json(const WorkerProgress& progress) {
  return Json::object({{"inserted", progress.inserted},
                       {"repeated", progress.repeated},
                       {"claimed", progress.claimed},
                       {"dead", progress.dead},
                       {"recoveries", progress.recoveries},
                       {"failures", progress.failures},
                       {"last_failure", cut(progress.last_failure)}});
}

Json workers_json(const OrderFlow& flow) {
  auto all = Json::array();
  for (std::size_t i = 0; i < flow.workers.size() && i < most_workers; ++i)
    all.add(Json::object({{"name", cut(flow.workers[i].name)},
                          {"pending", flow.workers[i].pending},
                          {"idle_ms", flow.workers[i].idle.count()}}));
  return all;
}

std::string_view state_of(const WaitingRoomStatus& room) {
  if (room.closed) return "closed";
  if (!room.open) return "enrolling";
  if (room.units_left == 0) return "sold_out";
  return "open";
}

/// When who comes now has his turn: by how fast the room goes, or may go where nobody came lately.
Json eta_of(const WaitingRoomStatus& room, double let_in_per_s) {
  if (room.closed || room.paused || !room.open || room.units_left == 0) return {};
  const auto limit =
      static_cast<double>(room.rate) / std::chrono::duration<double>{room.interval}.count();
  const auto rate = let_in_per_s > 0 ? let_in_per_s : limit;
  return static_cast<std::int64_t>(std::ceil(static_cast<double>(room.waiting) / rate));
}

Json room_json(const WaitingRoomStatus& room, double let_in_per_s) {
  return Json::object({{"state", state_of(room)},
                       {"rate", room.rate},
                       {"interval_ms", room.interval.count()},
                       {"inside", room.inside_limit},
                       {"inside_now", room.inside},
                       {"called", room.called},
                       {"enrolled", room.enrolled},
                       {"waiting", room.waiting},
                       {"in_per_s", rounded(let_in_per_s)},
                       {"units_left", room.units_left ? Json{*room.units_left} : Json{}},
                       {"paused", room.paused},
                       {"eta_s", eta_of(room, let_in_per_s)}});
}

Json buckets_json(const std::vector<SaleStatus>& buckets) {
  if (buckets.empty()) return {};
  auto all = Json::array();
  for (std::size_t i = 0; i < buckets.size(); ++i)
    all.add(Json::object({{"bucket", i},
                          {"stock", buckets[i].stock},
                          {"sold", buckets[i].sold},
                          {"left", buckets[i].left()}}));
  return all;
}

void add_money(Json& json, const WatchedSale& view) {
  const auto& terms = view.offer->sale().definition().payment;
  json.add("price", terms ? Json{terms->price} : Json{});
  json.add("currency", terms ? Json{terms->currency} : Json{});
  const auto* const money = view.money ? &*view.money : nullptr;
  json.add("by_state", money ? states_json(*money) : Json{});
  const bool is_paid_for = money && terms;
  json.add("due", is_paid_for ? Json::object({{"next", json_of(money->next_due)},
                                              {"within_minute", money->due_soon}})
                              : Json{});
  json.add("payments", is_paid_for ? Json::object({{"waiting", money->payments_waiting},
                                                   {"asking", money->payments_asking},
                                                   {"flagged", money->payments_flagged}})
                                   : Json{});
  json.add("refunds", money ? Json{money->refunds} : Json{});
  json.add("refunds_failing", money ? Json{money->refunds_failing} : Json{});
  json.add("messages", money ? Json::object({{"due", money->messages},
                                             {"dead", money->messages_dead},
                                             {"failing", money->messages_failing},
                                             {"failing_since", json_of(money->failing_since)},
                                             {"stopped", money->messages_stopped},
                                             {"stopped_since", json_of(money->stopped_since)},
                                             {"last_failure", cut(money->last_failure)}})
                             : Json{});
}

}  // namespace

std::string millisecond_text(WallTime time) {
  using namespace std::chrono;
  const auto second = floor<seconds>(time);
  auto text = to_text(WallTime{second});
  text.pop_back();  // the Z
  return text + fmt::format(".{:03}Z", floor<milliseconds>(time - second).count());
}

Json json_of(const std::optional<WallTime>& time) {
  return time ? Json{millisecond_text(*time)} : Json{};
}

std::string_view cut(std::string_view text) {
  constexpr std::size_t longest = 300;
  return text.substr(0, longest);
}

Json json_of(const std::map<std::string, std::string, std::less<>>& not_served) {
  constexpr std::size_t most = 20;
  auto all = Json::array();
  for (std::size_t shown = 0; const auto& [name, why] : not_served)
    if (++shown <= most) all.add(Json::object({{"sale", cut(name)}, {"why", cut(why)}}));
  return all;
}

Json json_of(const KeptPayment& kept) {
  auto json = Json::object({{"provider", kept.payment.provider},
                            {"event", kept.payment.event},
                            {"sale", kept.payment.sale},
                            {"order", kept.payment.order},
                            {"amount", kept.payment.amount},
                            {"currency", kept.payment.currency},
                            {"state", to_string(kept.state)},
                            {"note", cut(kept.note)},
                            {"at", millisecond_text(kept.received_at)}});
  if (kept.state == PaymentState::refunding) json.add("next_at", millisecond_text(kept.due));
  if (kept.attempts > 0) json.add("failed", kept.attempts);
  if (!kept.failure.empty()) json.add("failure", cut(kept.failure));
  return json;
}

Json json_of(const OrderMessage& message) {
  std::string note{cut(message.note)};
  if (message.state == "stopped")
    note += fmt::format("{}its receiver wants no more: when it does, send it again, or all",
                        note.empty() ? "" : "; ");
  return Json::object(
      {{"order", fmt::to_string(message.order_id)},
       {"seq", message.seq},
       {"type", message.type},
       {"at", millisecond_text(message.at)},
       {"attempts", message.attempts},
       {"state", message.state},
       {"next_at", message.state == "due" ? Json{millisecond_text(message.due)} : Json{}},
       {"note", note},
       {"data", Json::raw(message.data)}});
}

http::Response for_operators(http::Response answer) {
  answer.add("X-Content-Type-Options", "nosniff");
  return answer;
}

Json json_of(const WatchedSale& view) {
  const auto& definition = view.offer->sale().definition();
  const auto known = [&](Json figure) { return view.is_known ? std::move(figure) : Json{}; };
  const std::string_view state = view.is_known ? to_string(view.status.state) : "unknown";
  auto json = Json::object({{"name", definition.name},
                            {"state", state},
                            {"stock", known(view.status.stock)},
                            {"sold", known(view.status.sold)},
                            {"left", known(view.status.left())},
                            {"orders", known(view.status.orders)},
                            {"waiting", known(view.status.waiting)},
                            {"dead", known(view.status.dead)},
                            {"opens_at", json_of(definition.opens_at)},
                            {"closes_at", json_of(definition.closes_at)},
                            {"trouble", cut(view.trouble)},
                            {"admitted_per_s", known(rounded(view.admitted_per_s))},
                            {"answers", answers_json(view.offer->answers())}});
  add_money(json, view);
  json.add("worker", worker_json(view.offer->progress()));
  json.add("workers", workers_json(view.flow));
  const auto oldest = view.flow.oldest ? view.flow.oldest->count() : 0;
  json.add("lag", known(Json::object({{"entries", view.flow.entries}, {"oldest_ms", oldest}})));
  json.add("room", view.room ? room_json(*view.room, view.let_in_per_s) : Json{});
  json.add("buckets", buckets_json(view.buckets));
  json.add("in_transfer", known(view.under_way));
  return json;
}

Json json_of(const WatchedProcess& view) {
  return Json::object({{"name", view.name},
                       {"uptime_s", view.uptime.count()},
                       {"trouble", cut(view.trouble)},
                       {"connections", view.connections},
                       {"requests_per_s", rounded(view.requests_per_s)}});
}

}  // namespace sluice::server
