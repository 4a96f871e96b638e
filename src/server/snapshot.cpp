#include "server/snapshot.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/process.hpp"
#include "base/thread.hpp"
#include "server/bearer.hpp"
#include "server/problems.hpp"
#include "sluice/log.hpp"
#include "sluice/when_all.hpp"

namespace sluice::server {
namespace {

using namespace std::chrono_literals;

/// A first question waits so long for what the database says.
constexpr auto waits_for_database = 2s;
/// Between snapshots that are further apart there is no rate.
constexpr auto longest_gap = 10s;

SteadyTime now() { return system_clock().steady(); }

http::Response too_many_pages() {
  auto response = http::problem(problems::busy, "as many pages look as may");
  http::add_retry_after(response, 5s);
  return response;
}

/// One sale that cannot be asked does not hide the others.
Task<WatchedSale> look_at(std::shared_ptr<Offer> offer, std::shared_ptr<WaitingRoom> room) {
  WatchedSale view{.offer = std::move(offer)};
  view.trouble = view.offer->trouble();
  try {
    auto status = view.offer->sale().status_of_buckets();
    BucketedStatus stands = co_await status;
    view.status = stands.whole;
    view.under_way = stands.under_way;
    view.buckets = std::move(stands.buckets);
    auto flow = view.offer->sale().flow(16);
    view.flow = co_await flow;
    if (room) {
      auto asked = room->status();
      view.room = co_await asked;
    }
    view.is_known = true;
  } catch (const std::exception& failure) {
    view.trouble = failure.what();
  }
  co_return view;
}

void add(OrderFigures& sum, const OrderFigures& more) {
  sum.orders.insert(sum.orders.end(), more.orders.begin(), more.orders.end());
  if (!sum.next_due || (more.next_due && *more.next_due < *sum.next_due))
    sum.next_due = more.next_due;
  sum.due_soon += more.due_soon;
  sum.payments_waiting += more.payments_waiting;
  sum.payments_asking += more.payments_asking;
  sum.payments_flagged += more.payments_flagged;
  sum.refunds += more.refunds;
  sum.refunds_failing += more.refunds_failing;
  sum.messages += more.messages;
  sum.messages_dead += more.messages_dead;
  sum.messages_failing += more.messages_failing;
  sum.messages_stopped += more.messages_stopped;
  if (!sum.stopped_since) sum.stopped_since = more.stopped_since;
  if (sum.last_failure.empty()) sum.last_failure = more.last_failure;
  if (!more.failing_since || (sum.failing_since && *sum.failing_since <= *more.failing_since))
    return;
  sum.failing_since = more.failing_since;
  sum.last_failure = more.last_failure;
}

}  // namespace

std::vector<std::string> rows_of(const std::vector<std::shared_ptr<Offer>>& offers) {
  std::vector<std::string> names;
  for (const auto& offer : offers)
    for (const auto* const part : offer->sale().parts()) names.push_back(part->definition().name);
  return names;
}

std::optional<OrderFigures> figures_of(OfferedSale& sale, const DatabaseFigures::Known& known) {
  OrderFigures sum;
  for (const auto* const part : sale.parts()) {
    const auto found = known.sales.find(part->definition().name);
    if (found == known.sales.end()) return std::nullopt;
    add(sum, found->second);
  }
  return sum;
}

namespace {

double per_second(std::int64_t more, std::chrono::nanoseconds time) {
  return more <= 0 ? 0 : static_cast<double>(more) / std::chrono::duration<double>{time}.count();
}

}  // namespace

Snapshots::Snapshots(Shop& shop, const QueueApi& queue, EndedLogins& ended, AskLoad load,
                     SnapshotLimits limits)
    : shop_(shop),
      queue_(queue),
      ended_(ended),
      load_(std::move(load)),
      limits_(limits),
      name_(fmt::format("{}:{}", host_name(), ::getpid())),
      began_(now()),
      database_(shop.options().orders, limits.database_every),
      thread_(start_stoppable_thread([this](const std::stop_token& stop) { work(stop); })) {}

Snapshots::~Snapshots() { stop(); }

void Snapshots::stop() {
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
  }
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
  database_.stop();
  const std::lock_guard lock{mutex_};
  pages_.clear();
  waiting_.clear();
}

void Snapshots::answer(http::Responder respond, Operator who) {
  {
    const std::lock_guard lock{mutex_};
    if (has_room_for(who) && !stopping_) {
      waiting_.push_back({std::move(respond), std::move(who), now()});
      somebody_there_.notify_one();
      return;
    }
  }
  respond.send(too_many_pages());
}

void Snapshots::stream(http::Responder respond, Operator who) {
  {
    const std::lock_guard lock{mutex_};
    std::erase_if(pages_, [](const Page& page) { return !page.stream.is_open(); });
    if (has_room_for(who) && !stopping_) {
      pages_.push_back({respond.stream(), std::move(who)});
      somebody_there_.notify_one();
      return;
    }
  }
  respond.send(too_many_pages());
}

std::size_t Snapshots::pages() const {
  const std::lock_guard lock{mutex_};
  return pages_.size();
}

/// Where everybody is the operator "local" there is nobody to keep room for.
bool Snapshots::has_room_for(const Operator& who) const {
  if (pages_.size() + waiting_.size() >= limits_.pages) return false;
  const auto is_his = [&](const auto& one) { return one.who.id == who.id; };
  const auto his = std::ranges::count_if(pages_, is_his) + std::ranges::count_if(waiting_, is_his);
  return who.is_anybody || std::cmp_less(his, limits_.pages_of_one);
}

/// Another process may have ended the login of one who looks here.
void Snapshots::ask_for_logouts() {
  std::map<std::string, WallTime> logins;
  {
    const std::lock_guard lock{mutex_};
    const auto note = [&](const auto& one) {
      if (!one.who.login.empty()) logins.emplace(one.who.login, *one.who.until);
    };
    std::ranges::for_each(pages_, note);
    std::ranges::for_each(waiting_, note);
  }
  for (const auto& [login, until] : logins)
    if (!ended_.look_for(login, until)) return;  // the store is away: it would take as long again
}

bool Snapshots::has_ended(const Operator& who) const {
  return (who.until && system_clock().wall() >= *who.until) ||
         (!who.login.empty() && ended_.has(who.login));
}

bool Snapshots::somebody_is_new() const {
  return !waiting_.empty() || std::ranges::any_of(pages_, &Page::is_new);
}

/// A page that is new is told at once, but for a tenth of the pace: many that come together are
/// told together. False: it is over.
bool Snapshots::wait(const std::stop_token& stop) {
  std::unique_lock lock{mutex_};
  somebody_there_.wait(lock, stop, [this] { return somebody_looks(); });
  if (!stop.stop_requested())
    somebody_there_.wait_for(lock, stop, limits_.every / 10, [] { return false; });
  if (!stop.stop_requested())
    somebody_there_.wait_for(lock, stop, next_tick_ - now(), [this] { return somebody_is_new(); });
  return !stop.stop_requested();
}

void Snapshots::work(const std::stop_token& stop) {
  while (wait(stop)) {
    const bool is_tick = now() >= next_tick_;
    if (is_tick) next_tick_ = now() + limits_.every;
    try {
      if (!looked_ || now() - *looked_ >= limits_.every * 9 / 10) look();
      ask_for_logouts();
      tell(make(), is_tick);
    } catch (const std::exception& failure) {  // of memory: the next one may succeed
      log(LogLevel::error, fmt::format("console: no snapshot: {}", failure.what()));
    }
  }
}

void Snapshots::end_streams() {
  const std::lock_guard lock{mutex_};
  pages_.clear();
}

void Snapshots::tell(const std::string& snapshot, bool is_tick) {
  std::vector<Waiting> answered;
  std::vector<Waiting> refused;
  {
    const std::lock_guard lock{mutex_};
    const auto out =
        std::ranges::partition(waiting_, [&](const Waiting& one) { return !has_ended(one.who); });
    refused.assign(std::make_move_iterator(out.begin()), std::make_move_iterator(out.end()));
    waiting_.erase(out.begin(), out.end());
    std::erase_if(pages_, [&](Page& page) {
      if (!std::exchange(page.is_new, false) && !is_tick) return false;
      if (has_ended(page.who)) return true;
      return !page.stream.send({.id = {}, .event = "state", .data = snapshot});
    });
    const auto is_due = [&](const Waiting& one) {
      return is_whole_ || now() - one.since >= waits_for_database;
    };
    const auto kept = std::ranges::partition(waiting_, std::not_fn(is_due));
    answered.assign(std::make_move_iterator(kept.begin()), std::make_move_iterator(kept.end()));
    waiting_.erase(kept.begin(), kept.end());
  }
  for (auto& one : refused)
    one.respond.send(refuse_credentials(problems::unknown_key, the_login_has_ended));
  for (auto& one : answered)
    one.respond.send(
        for_operators({.status = 200, .media = http::json_media, .body = snapshot, .fields = {}}));
}

/// Those that are not archived first. An archived one is asked once.
std::vector<WatchedSale> Snapshots::look_at_sales() {
  auto offers = shop_.all();
  std::ranges::stable_partition(
      offers, [this](const auto& offer) { return !archived_.contains(offer->name()); });
  if (offers.size() > limits_.sales) offers.resize(limits_.sales);
  std::vector<Task<WatchedSale>> looks;
  looks.reserve(offers.size());
  for (const auto& offer : offers) looks.push_back(look_at(offer, queue_.room_of(offer->name())));
  auto views = when_all(std::move(looks)).get();
  for (const auto& view : views)
    if (view.status.state == SaleState::archived) archived_.insert(view.offer->name());
  return views;
}

void Snapshots::look() {
  const auto began = now();
  const auto since = looked_ ? began - *looked_ : longest_gap;
  views_ = look_at_sales();
  sales_in_all_ = shop_.all().size();
  add_rates(since);
  const auto load = load_();
  const auto requests = static_cast<std::int64_t>(load.requests - requests_before_);
  requests_before_ = load.requests;
  process_ = {.name = name_,
              .uptime = std::chrono::floor<std::chrono::seconds>(began - began_),
              .trouble = load.trouble,
              .connections = load.connections,
              .requests_per_s = since < longest_gap ? per_second(requests, since) : 0};
  looked_ = began;
}

void Snapshots::add_rates(std::chrono::nanoseconds since) {
  std::map<std::string, Before, std::less<>> seen;
  for (auto& view : views_) {
    if (!view.is_known) continue;  // what it had before is too old when the store says it again
    const Before present{view.status.orders, view.room ? view.room->let_in : 0};
    const auto before = before_.find(view.offer->name());
    if (since < longest_gap && before != before_.end()) {
      view.admitted_per_s = per_second(present.orders - before->second.orders, since);
      view.let_in_per_s = per_second(present.let_in - before->second.let_in, since);
    }
    seen.emplace(view.offer->name(), present);
  }
  before_ = std::move(seen);
}

void Snapshots::add_figures(const DatabaseFigures::Known& known) {
  std::size_t told = 0;
  for (auto& view : views_) {
    view.money = figures_of(view.offer->sale(), known);
    told += view.money.has_value();
  }
  is_whole_ = told == views_.size() || !known.trouble.empty();
}

std::string Snapshots::make() {
  std::vector<std::shared_ptr<Offer>> offers;
  for (const auto& view : views_) offers.push_back(view.offer);
  database_.want(rows_of(offers));
  const auto known = database_.known();
  add_figures(*known);
  auto process = process_;
  if (process.trouble.empty()) process.trouble = known->trouble;
  auto json = Json::object(
      {{"now", millisecond_text(system_clock().wall())}, {"process", json_of(process)}});
  json.add("not_served", json_of(shop_.not_served()));
  json.add("payments_of_no_sale", known->strays ? Json{*known->strays} : Json{});
  auto sales = Json::array();
  std::size_t shown = 0;
  for (const auto& view : views_) {
    const auto sale = json_of(view);
    if (json.text().size() + sales.text().size() + sale.text().size() > limits_.size) break;
    sales.add(sale);
    ++shown;
  }
  json.add("sales", sales);
  json.add("sales_in_all", sales_in_all_);
  json.add("truncated", shown < sales_in_all_);
  return json.text();
}

}  // namespace sluice::server
