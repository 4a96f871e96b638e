#include "cli/load/crowd.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/url.hpp"
#include "cli/load/legible.hpp"

namespace sluice::load {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr std::string_view key_of_a_click = "click";
/// Where a 429 or 503 does not say when to come again.
constexpr auto usual_pause = 1s;
constexpr auto first_reconnect = 50ms;
constexpr auto longest_reconnect = 2s;
constexpr auto until_recorded = 200ms;
constexpr auto least_poll = 10ms;
constexpr auto longest_poll = 60s;

/// "sold-out" of "urn:sluice:problem:sold-out"; empty: the answer tells of none.
std::string problem_of(const JsonValue& body) {
  const auto* const type = body.find("type");
  if (!type || !type->as_text()) return {};
  return type->as_text()->substr(type->as_text()->rfind(':') + 1);
}

/// What is above 500 may come from a proxy whose server had done what it was asked: the same
/// question again says whether.
bool is_later(int status) noexcept { return status == 429 || status >= 500; }

/// Between a half and the whole of it, so that buyers do not come back in step.
nanoseconds jittered(nanoseconds pause, std::mt19937_64& random) {
  return pause -
         nanoseconds{std::uniform_int_distribution<std::int64_t>{0, pause.count() / 2}(random)};
}

nanoseconds poll_pause(const HttpAnswer& answer, const JsonValue& body) {
  const auto* const told = body.find("poll_after_ms");
  nanoseconds pause = answer.retry_after.value_or(1s);
  if (told && told->as_integer())
    pause = std::chrono::milliseconds{std::clamp<std::int64_t>(*told->as_integer(), 0, 3'600'000)};
  return std::clamp<nanoseconds>(pause, least_poll, longest_poll);
}

/// What goes into a field of the next request as it is.
bool is_ticket(std::string_view text) noexcept {
  constexpr std::size_t longest = 2000;
  return !text.empty() && text.size() <= longest &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

std::string text_in(const JsonValue& body, std::string_view name) {
  const auto* const value = body.find(name);
  return value && value->as_text() ? *value->as_text() : std::string{};
}

}  // namespace

std::string_view to_string(Step step) noexcept {
  constexpr std::string_view names[steps] = {"look",  "enter the queue", "ask the queue",
                                             "click", "click again",     "look at the order"};
  return names[static_cast<std::size_t>(step)];
}

std::uint64_t Tally::count_of(Step step, std::string_view outcome) const noexcept {
  const auto& counts = outcomes[static_cast<std::size_t>(step)];
  const auto found = counts.find(outcome);
  return found == counts.end() ? 0 : found->second;
}

Crowd::Crowd(CrowdPlan plan, Ledger& ledger, SteadyTime begins, WallTime wall)
    : plan_(std::move(plan)),
      begins_(begins),
      token_expires_(wall + 24h),
      sale_path_("/v1/sales/" + percent_encoded(plan_.sale)),
      random_(plan_.seed),
      ledger_(ledger) {}

/// The time of an arrival is settled before the first one: it does not depend on what the server
/// does.
SteadyTime Crowd::arrival(std::uint64_t index) const noexcept {
  if (plan_.rate <= 0) return begins_;
  return begins_ +
         nanoseconds{static_cast<std::int64_t>(static_cast<double>(index) * 1e9 / plan_.rate)};
}

bool Crowd::has_arrivals() const noexcept {
  if (closed_ || arrived_ >= plan_.buyers) return false;
  return plan_.rate <= 0 || arrival(arrived_) < begins_ + plan_.lasts;
}

SteadyTime Crowd::next_due() const {
  const auto due = due_.empty() ? SteadyTime::max() : due_.top().when;
  return has_arrivals() ? std::min(due, arrival(arrived_)) : due;
}

std::optional<Ask> Crowd::next(SteadyTime now) {
  if (plan_.rate < 0) {  // who comes meets a free connection: he means to ask now
    if (now >= begins_ + plan_.lasts) closed_ = true;
    if (has_arrivals() && (due_.empty() || due_.top().when > now)) arrive(now);
  } else {
    while (has_arrivals() && arrival(arrived_) <= now) arrive(arrival(arrived_));
  }
  if (due_.empty() || due_.top().when > now) return std::nullopt;
  const auto id = due_.top().buyer;
  due_.pop();
  auto& buyer = active_.at(id);
  ++buyer.tries;
  if (buyer.step == Step::click) buyer.may_have_bought = true;
  return Ask{.buyer = id, .bytes = request_of(buyer), .slowly = buyer.slow};
}

bool Crowd::chance(double share) {
  return share > 0 && std::uniform_real_distribution<>{0, 1}(random_) < share;
}

/// As people think: most shortly, some for long; five times the average at most.
nanoseconds Crowd::think() {
  if (plan_.think <= 0ns) return 0ns;
  const double part = std::min(std::exponential_distribution<>{1}(random_), 5.0);
  return nanoseconds{static_cast<std::int64_t>(static_cast<double>(plan_.think.count()) * part)};
}

Crowd::Buyer Crowd::make_buyer(std::uint64_t index) {
  Buyer buyer{.name = fmt::format("{}-{}", plan_.prefix, index)};
  if (plan_.keys)
    buyer.token = plan_.keys->sign(
        {.subject = buyer.name, .audience = "sale:" + plan_.sale, .expires = token_expires_});
  buyer.units = std::uniform_int_distribution<std::int64_t>{1, plan_.most_units}(random_);
  buyer.repeats = chance(plan_.repeats);
  buyer.slow = chance(plan_.slow);
  return buyer;
}

void Crowd::arrive(SteadyTime due) {
  const auto id = arrived_++;
  ++tally_.arrived;
  auto& buyer = active_.emplace(id, make_buyer(id)).first->second;
  if (plan_.looks) return ask_at(id, buyer, Step::look, due);
  begin_purchase(id, buyer, due);
}

void Crowd::ask_at(std::uint64_t id, Buyer& buyer, Step step, SteadyTime due) {
  if (step == Step::click) buyer.clicked = due;
  buyer.step = step;
  buyer.tries = 0;
  buyer.due = due;
  due_.push({due, ++dues_, id});
}

void Crowd::again(std::uint64_t id, Buyer& buyer, SteadyTime now, nanoseconds pause,
                  std::string_view why) {
  if (buyer.tries >= plan_.tries) {
    if (tally_.first_trouble.empty()) tally_.first_trouble = why;
    return give_up(id, now);
  }
  ++tally_.retries;
  buyer.due = now + pause;
  due_.push({buyer.due, ++dues_, id});
}

void Crowd::count(const Buyer& buyer, std::string_view outcome, SteadyTime now) {
  constexpr std::size_t most_kinds = 50;  // a server may think of a new one each time
  const auto step = static_cast<std::size_t>(buyer.step);
  auto& kinds = tally_.outcomes[step];
  const bool is_kept = kinds.size() < most_kinds || kinds.contains(outcome);
  ++kinds[is_kept ? std::string{outcome} : std::string{"something else"}];
  (buyer.slow ? tally_.slow : tally_.latencies[step]).observe(now - buyer.due);
}

void Crowd::answered(std::uint64_t id, const HttpAnswer& answer, SteadyTime now) {
  const auto found = active_.find(id);
  if (found == active_.end()) return;  // he has left
  auto& buyer = found->second;
  const auto body =
      JsonValue::parse(answer.body, {.bytes = ResponseReader::largest_body}).value_or(JsonValue{});
  constexpr std::size_t longest_problem = 60;
  const auto problem = legible(problem_of(body), longest_problem);
  ++tally_.answered;
  tally_.clicks_answered += buyer.step == Step::click;
  count(buyer,
        problem.empty() ? fmt::to_string(answer.status)
                        : fmt::format("{} {}", answer.status, problem),
        now);
  const bool is_not_begun = problem == "not-started" && answer.retry_after;
  if (is_later(answer.status) || is_not_begun)
    return again(id, buyer, now, jittered(answer.retry_after.value_or(usual_pause), random_),
                 fmt::format("{} {}", answer.status, problem));
  if (buyer.step == Step::click || buyer.step == Step::repeat)
    return after_click(id, buyer, answer, body, problem, now);
  go_on(id, buyer, answer, body, now);
}

void Crowd::go_on(std::uint64_t id, Buyer& buyer, const HttpAnswer& answer, const JsonValue& body,
                  SteadyTime now) {
  switch (buyer.step) {
    case Step::look:
      if (auto sale = ToldSale::of(body)) sale_ = sale;
      return answer.status == 200 && plan_.buys ? begin_purchase(id, buyer, now) : leave(id);
    case Step::enter:
    case Step::poll: return after_queue(id, buyer, answer, body, now);
    case Step::check: return after_check(id, buyer, answer, body, now);
    case Step::click:
    case Step::repeat: return;
  }
}

void Crowd::begin_purchase(std::uint64_t id, Buyer& buyer, SteadyTime now) {
  ask_at(id, buyer, plan_.queues ? Step::enter : Step::click, now + think());
}

void Crowd::after_queue(std::uint64_t id, Buyer& buyer, const HttpAnswer& answer,
                        const JsonValue& body, SteadyTime now) {
  if (answer.status == 404 && buyer.step == Step::enter)  // there is no waiting room
    return ask_at(id, buyer, Step::click, now);
  if (answer.status != 200) return leave(id);
  if (auto ticket = text_in(body, "ticket"); is_ticket(ticket)) buyer.ticket = std::move(ticket);
  const auto state = text_in(body, "state");
  if (state == "inside") return ask_at(id, buyer, Step::click, now + think());
  if (state != "waiting" && state != "enrolled") return leave(id);
  ask_at(id, buyer, Step::poll, now + poll_pause(answer, body));
}

void Crowd::after_click(std::uint64_t id, Buyer& buyer, const HttpAnswer& answer,
                        const JsonValue& body, const std::string& problem, SteadyTime now) {
  const std::string key{key_of_a_click};
  const bool is_bought = answer.status == 200 || answer.status == 201;
  if (buyer.step == Step::click) {
    tally_.decided += is_bought || answer.status == 409 || answer.status == 410;
    if (!buyer.slow) tally_.purchases.observe(now - buyer.clicked);
  }
  buyer.may_have_bought = false;
  if (!is_bought) {
    const bool has_ended = may_end_ && problem == "order-ended";
    if (!has_ended)
      ledger_.refused(buyer.name, key, problem.empty() ? fmt::to_string(answer.status) : problem);
    return leave(id);
  }
  const auto order = ToldOrder::of(body);
  if (!order) {
    ledger_.broken(
        "a purchase is answered by its order",
        fmt::format("buyer {}: {} {}", buyer.name, answer.status, answer.body.substr(0, 200)));
    return leave(id);
  }
  const bool is_first = !ledger_.find(buyer.name);
  const auto breaches = ledger_.breaches();
  ledger_.told(buyer.name, key, buyer.units, *order);
  tally_.admitted += is_first;
  if (buyer.step == Step::repeat) {
    tally_.repeats_same += ledger_.breaches() == breaches;
    return leave(id);
  }
  buyer.repeats ? ask_at(id, buyer, Step::repeat, now) : leave(id);
}

void Crowd::failed(std::uint64_t id, const std::string& why, SteadyTime now) {
  const auto found = active_.find(id);
  if (found == active_.end()) return;
  auto& buyer = found->second;
  count(buyer, why, now);
  ++tally_.broken;
  if (tally_.first_trouble.empty()) tally_.first_trouble = why;
  const auto doubled = first_reconnect * (1 << std::min(buyer.tries - 1, 10));
  again(id, buyer, now, jittered(std::min<nanoseconds>(doubled, longest_reconnect), random_), why);
}

void Crowd::leave(std::uint64_t id) { active_.erase(id); }

/// An order that could not be looked at accuses nobody: what was not seen is said beside.
void Crowd::give_up(std::uint64_t id, SteadyTime now) {
  ++tally_.given_up;
  const auto& buyer = active_.at(id);
  if (buyer.may_have_bought) ledger_.left_open(buyer.units);
  if (buyer.step == Step::click && !buyer.slow) tally_.purchases.observe(now - buyer.clicked);
  leave(id);
}

void Crowd::close() { closed_ = true; }

void Crowd::end(SteadyTime now) {
  closed_ = true;
  while (!active_.empty()) {
    const auto& [id, buyer] = *active_.begin();
    if (buyer.due <= now) count(buyer, "no answer until the end", now);
    give_up(id, now);
  }
  due_ = {};
}

void Crowd::check_orders(SteadyTime now, SteadyTime until) {
  check_until_ = until;
  for (const auto& [name, entry] : ledger_.orders()) {
    const auto id = arrived_++;
    Buyer buyer{.name = name};
    if (plan_.keys)
      buyer.token = plan_.keys->sign(
          {.subject = name, .audience = "sale:" + plan_.sale, .expires = token_expires_});
    buyer.units = entry.order.units;
    auto& placed = active_.emplace(id, std::move(buyer)).first->second;
    ask_at(id, placed, Step::check, now);
  }
  closed_ = true;
}

/// The order must be his, the same, and in the database before long.
void Crowd::after_check(std::uint64_t id, Buyer& buyer, const HttpAnswer& answer,
                        const JsonValue& body, SteadyTime now) {
  const auto* const recorded = body.find("recorded");
  const bool is_recorded = recorded && recorded->as_bool() && *recorded->as_bool();
  const auto order = answer.status == 200 ? ToldOrder::of(body) : std::nullopt;
  if (order && !is_recorded && now < check_until_)
    return ask_at(id, buyer, Step::check, now + until_recorded);
  if (order && !is_recorded)
    ledger_.broken("the database has the orders",
                   fmt::format("buyer {}: {} is not recorded", buyer.name, to_string(*order)));
  ledger_.shown(buyer.name, order, fmt::format("answered {} {}", answer.status, problem_of(body)));
  leave(id);
}

std::string Crowd::request_of(const Buyer& buyer) const {
  const auto who = buyer.token.empty() ? fmt::format("Sluice-Buyer: {}\r\n", buyer.name)
                                       : fmt::format("Authorization: Bearer {}\r\n", buyer.token);
  const auto ticket =
      buyer.ticket.empty() ? std::string{} : fmt::format("Sluice-Ticket: {}\r\n", buyer.ticket);
  const auto head = [&](std::string_view method, std::string_view rest) {
    return fmt::format("{} {}{} HTTP/1.1\r\nHost: {}\r\n", method, sale_path_, rest, plan_.host);
  };
  switch (buyer.step) {
    case Step::look: return head("GET", "") + "\r\n";
    case Step::enter: return head("POST", "/queue") + who + "Content-Length: 0\r\n\r\n";
    case Step::poll: return head("GET", "/queue") + who + ticket + "\r\n";
    case Step::check: {
      const auto* const entry = ledger_.find(buyer.name);
      return head("GET", "/orders/" + percent_encoded(entry->order.id)) + who + "\r\n";
    }
    case Step::click:
    case Step::repeat: break;
  }
  const auto body = fmt::format(R"({{"units":{}}})", buyer.units);
  return head("POST", "/orders") + who + ticket +
         fmt::format(
             "Idempotency-Key: {}\r\nContent-Type: application/json\r\nContent-Length: "
             "{}\r\n\r\n{}",
             key_of_a_click, body.size(), body);
}

}  // namespace sluice::load
