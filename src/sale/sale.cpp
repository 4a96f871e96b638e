#include "sluice/sale.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/instant.hpp"
#include "base/integer.hpp"
#include "number/period.hpp"
#include "sale/admission.hpp"
#include "sale/archive.hpp"
#include "sale/buckets/any_bucket.hpp"
#include "sale/buckets/bucket_name.hpp"
#include "sale/definition.hpp"
#include "sale/differences.hpp"
#include "sale/on_the_way.hpp"
#include "sale/order_queue.hpp"
#include "sale/orders.lua.hpp"
#include "sale/sale.lua.hpp"
#include "sale/settlement.hpp"
#include "sale/store_of_sale.hpp"
#include "sale/sums.hpp"
#include "store/info.hpp"

namespace sluice {
namespace {

constexpr std::size_t longest_id = 128;

void check_id(std::string_view what, const std::string& id, const std::string& sale) {
  if (id.empty() || id.size() > longest_id)
    throw Error{Errc::bad_argument,
                fmt::format("sale '{}': the {} has {} bytes, it must have 1 to {}", sale, what,
                            id.size(), longest_id)};
}

void check_reason(const std::string& reason, const std::string& sale) {
  constexpr std::size_t longest_reason = 1000;
  if (reason.size() > longest_reason)
    throw Error{Errc::bad_argument,
                fmt::format("sale '{}': the reason has {} bytes, it may have {}", sale,
                            reason.size(), longest_reason)};
}

}  // namespace

class Sale::Impl {
 public:
  Impl(Store& store, SaleDefinition definition)
      : store_(store),
        definition_(std::move(definition)),
        keys_(definition_.name),
        admissions_(store, definition_) {}

  const SaleDefinition& definition() const noexcept { return definition_; }

  Task<Admission> buy(BuyerId buyer, RequestId request, std::int64_t units) {
    check_id("buyer", buyer.value, definition_.name);
    check_id("request id", request.value, definition_.name);
    const auto most =
        definition_.largest_order > 0 ? definition_.largest_order : sale::numbers_of(definition_);
    check_bucket(buyer);
    if (units < 1 || units > most)
      throw Error{Errc::bad_argument,
                  fmt::format("sale '{}': an order of {} units, it must have 1 to {}",
                              definition_.name, units, most)};
    return admissions_.decide(std::move(buyer), std::move(request), units);
  }
  std::shared_ptr<void> gather() { return admissions_.gather(); }

  Task<SaleStatus> status();
  Task<std::int64_t> recorded_up_to();
  Task<OrderFlow> flow(std::size_t most);

  Task<std::optional<SaleOrder>> find(BuyerId buyer, RequestId request) {
    const sale::Wish wish{std::move(buyer), std::move(request)};
    sale::Records records{store_, definition_};
    auto asked = records.find({&wish, 1});
    auto found = co_await asked;
    co_return std::move(found.front());
  }

  Task<std::optional<SaleOrder>> latest(BuyerId buyer) {
    sale::Records records{store_, definition_};
    auto asked = records.find({&buyer, 1});
    auto found = co_await asked;
    if (!found.front()) co_return std::nullopt;
    co_return std::move(found.front()->latest);
  }

  Task<void> close() {
    auto asked = store_.run(scripts::sale_close, {keys_.sale}, {}, sale::repeatable);
    if (const Value closed = co_await asked; closed.as_integer() == 0)
      throw Error{Errc::server, fmt::format("sale '{}' is not in {} any more", definition_.name,
                                            store_.describe())};
  }

  void close(OrderStore& orders) {
    sale::attach(store_, definition_, orders);
    orders.keep_definition(definition_.name, {{"closed", "1"}});
    close().get();
  }

  EndedOrder cancel(OrderStore& orders, BuyerId buyer, RequestId request,
                    const std::string& reason) {
    check_reason(reason, definition_.name);
    const sale::Wish wish{std::move(buyer), std::move(request)};
    sale::Settlement settlement{store_, definition_, orders};
    const auto found = find(wish, orders);
    if (!found) return {};
    return settlement.end(*found, OrderState::cancelled, reason);
  }

  UnitsResult cancel_units(OrderStore& orders, BuyerId buyer, RequestId request, std::int64_t units,
                           const std::string& key, const std::string& reason) {
    check_reason(reason, definition_.name);
    check_id("key of a cancellation", key, definition_.name);
    if (units < 0 || units > sale::most_units)
      throw Error{Errc::bad_argument,
                  fmt::format("sale '{}': {} units to cancel, it must be 0 (all) or more",
                              definition_.name, units)};
    const sale::Wish wish{std::move(buyer), std::move(request)};
    sale::Settlement settlement{store_, definition_, orders};
    const auto found = find(wish, orders);
    if (!found) return {};
    return settlement.cancel_units(*found, units, key, reason);
  }

  PaymentResult pay(OrderStore& orders, const Payment& payment) {
    if (payment.sale != definition_.name)
      throw Error{Errc::bad_argument, fmt::format("sale '{}': the payment is of sale '{}'",
                                                  definition_.name, sale::shown(payment.sale))};
    orders.payments().keep(payment);
    return sale::after_commit([&] {
      return sale::Settlement{store_, definition_, orders}.pay(payment);
    });
  }

  std::size_t expire(OrderStore& orders, std::size_t most) {
    return sale::Settlement{store_, definition_, orders}.expire(most);
  }

  bool change_stock(OrderStore& orders, std::int64_t stock) {
    if (definition_.bucket)
      throw Error{Errc::bad_argument,
                  fmt::format("sale '{}' is a bucket: change the stock of the whole sale",
                              definition_.name)};
    auto changed = definition_;
    changed.stock = stock;
    sale::check(changed);
    if (store_.run({"HEXISTS", keys_.sale, "archived"}).get().as_integer() == 1)
      throw Error{
          Errc::bad_argument,
          fmt::format("sale '{}' is archived: its stock changes no more", definition_.name)};
    return sale::Settlement{store_, definition_, orders}.change_stock(stock);
  }

  void settle(OrderStore& orders) { sale::Settlement{store_, definition_, orders}.settle(); }

  Store& store() const noexcept { return store_; }

  Task<std::vector<DeadLetter>> dead_letters(std::string after, std::size_t most) {
    const auto from = after.empty() ? std::string{"-"} : "(" + after;
    const auto count = fmt::to_string(most);
    auto asked = store_.run({"XRANGE", keys_.dead, from, "+", "COUNT", count});
    const Value reply = co_await asked;
    std::vector<DeadLetter> letters;
    for (const auto& entry : reply.as_items()) letters.push_back(sale::dead_letter_of(entry));
    co_return letters;
  }

  Task<bool> revive(std::string id) {
    auto asked = store_.run(scripts::sale_revive, {keys_.orders, keys_.dead}, {id});
    const Value revived = co_await asked;
    co_return revived.as_integer() == 1;
  }

  std::optional<EndedOrder> give_back(OrderStore& orders, const std::string& id,
                                      const std::string& reason) {
    check_reason(reason, definition_.name);
    const auto found = store_.run({"XRANGE", keys_.dead, id, id}).get();
    if (found.as_items().empty()) return std::nullopt;
    const auto letter = sale::dead_letter_of(found.as_items().front());
    EndedOrder ended;
    sale::Settlement settlement{store_, definition_, orders};
    if (letter.order && is_known(*letter.order, orders))
      ended = settlement.end_letter(*letter.order, reason);
    store_.run({"XDEL", keys_.dead, letter.id}, sale::repeatable).get();
    return ended;
  }

 private:
  /// In another bucket he would have a second limit, and nobody would look for his orders there.
  void check_bucket(const BuyerId& buyer) const {
    const auto& place = definition_.bucket;
    if (!place || sale::bucket_of(buyer, place->count) == place->index) return;
    throw Error{Errc::bad_argument,
                fmt::format("sale '{}' is a bucket, and this buyer is in another one: buy at the "
                            "whole sale, '{}'",
                            definition_.name, sale::whole_name(definition_.name))};
  }
  std::optional<SaleOrder> find(const sale::Wish& wish, OrderStore& orders) {
    auto found = sale::Records{store_, definition_}.find({&wish, 1}).get().front();
    if (!found) found = orders.find_request(definition_.name, wish.buyer, wish.request);
    return found;
  }

  /// Somebody was admitted for exactly this order.
  bool is_known(const SaleOrder& order, OrderStore& orders) {
    const sale::Wish wish{order.buyer, order.request};
    const auto record = sale::Records{store_, definition_}.find({&wish, 1}).get().front();
    const auto rows = orders.find(definition_.name, std::span{&order.id, 1});
    const auto is_it = [print = sale::fingerprint_of(order)](const SaleOrder& other) {
      return sale::fingerprint_of(other) == print;
    };
    return (record && is_it(*record)) || std::ranges::any_of(rows, is_it);
  }

  Store& store_;
  const SaleDefinition definition_;
  const sale::SaleKeys keys_;
  sale::Admissions admissions_;
};

namespace {

/// What the hash of a sale says beside its figures.
struct Circumstances {
  bool closed = false;
  bool archived = false;
  bool recovering = false;
  WallTime now{};
  std::string day;         ///< of the last number
  std::int64_t taken = 0;  ///< numbers of that day
};

SaleState state_of(const SaleDefinition& sale, const SaleStatus& status, const Circumstances& at) {
  if (at.archived) return SaleState::archived;
  if (at.closed || (sale.closes_at && at.now >= *sale.closes_at)) return SaleState::closed;
  if (at.recovering) return SaleState::recovering;
  if (sale.opens_at && at.now < *sale.opens_at) return SaleState::not_started;
  if (status.left() <= 0) return SaleState::sold_out;
  if (at.taken < sale::numbers_of(sale)) return SaleState::open;
  const auto days = Calendar{sale.zone}.around(at.now).periods;
  const bool same_day = std::none_of(days.begin(), days.end(), [&](const auto& day) {
    return day.start <= at.now && day.label > at.day;
  });
  return same_day ? SaleState::full : SaleState::open;
}

/// The items of a batch that must all have succeeded.
const Value& checked(const Value& reply) {
  if (reply.is_error()) throw error_of_reply(reply.as_text());
  return reply;
}

}  // namespace

namespace {

/// `remembered`: which store a sale knows; `info`: what the server says of itself.
bool is_another_store(const Value& remembered, const Value& info) {
  return !remembered.is_null() && !info.is_error() && remembered.as_text() != sale::store_id(info);
}

}  // namespace

Task<SaleStatus> Sale::Impl::status() {
  Batch batch;
  batch.add({"TIME"}).add({"HMGET", keys_.sale, "capacity", "sold", "orders", "last", "closed",
                           "archived", "day", "taken", "recovering", "store"});
  batch.add({"XLEN", keys_.orders}).add({"XLEN", keys_.dead});
  add_info(batch, store_, keys_.sale, "replication");
  const std::vector<Value> replies = co_await store_.run(std::move(batch));

  SaleStatus status;
  status.waiting = checked(replies.at(2)).as_integer();
  status.dead = checked(replies.at(3)).as_integer();
  const auto& fields = checked(replies.at(1)).as_items();
  if (fields.at(0).is_null()) co_return status;
  const auto count = [&](std::size_t at, const char* name, std::int64_t most = sale::most_units) {
    const auto text = fields.at(at).is_null() ? std::string{} : fields[at].as_text();
    const auto number = parse_integer<std::int64_t>(text);
    if (number && *number >= 0 && *number <= most) return *number;
    throw Error{Errc::corrupt,
                fmt::format("sale '{}': its {} is '{}' in {}, which no sale writes; 'sluice sale "
                            "audit {}' names what is damaged",
                            definition_.name, name, sale::shown(text), store_.describe(),
                            definition_.name)};
  };
  status.stock = count(0, "capacity");
  status.sold = count(1, "sold");
  status.orders = count(2, "orders");
  const auto& time = checked(replies.at(0)).as_items();
  Circumstances at{
      .closed = !fields.at(4).is_null(),
      .archived = !fields.at(5).is_null(),
      .recovering = !fields.at(8).is_null() || is_another_store(fields.at(9), replies.at(4)),
      .now = WallTime{std::chrono::seconds{time.at(0).as_integer()} +
                      std::chrono::microseconds{time.at(1).as_integer()}}};
  if (!fields.at(3).is_null()) {
    at.now =
        std::max(at.now, WallTime{std::chrono::microseconds{count(3, "last", sale::end_of_time)}});
    at.day = fields.at(6).as_text();
    at.taken = count(7, "taken");
  }
  status.state = state_of(definition_, status, at);
  co_return status;
}

/// The last id is read before the stream: an order that comes in between is above it.
Task<std::int64_t> Sale::Impl::recorded_up_to() {
  constexpr std::string_view some = "100";  // an entry that makes no order is soon a dead letter
  Batch batch;
  batch.add({"HMGET", keys_.sale, "format", "second", "sequence"});
  batch.add({"XRANGE", keys_.orders, "-", "+", "COUNT", some});
  const std::vector<Value> replies = co_await store_.run(std::move(batch));
  const auto& fields = checked(replies.at(0)).as_items();
  if (fields.at(0).is_null()) co_return std::numeric_limits<std::int64_t>::max();
  for (const auto& entry : checked(replies.at(1)).as_items())
    if (const auto on_its_way = sale::entry_of(entry); on_its_way.order)
      co_return on_its_way.order->id - 1;
  if (fields.at(1).is_null() || fields.at(2).is_null()) co_return -1;
  const auto second = parse_integer<std::int64_t>(fields.at(1).as_text());
  const auto sequence = parse_integer<std::int64_t>(fields.at(2).as_text());
  co_return second&& sequence ? *second << 32 | *sequence : -1;
}

Task<OrderFlow> Sale::Impl::flow(std::size_t most) {
  const std::vector<std::string_view> keys{keys_.orders};
  const auto count = fmt::to_string(most);
  const std::vector<std::string_view> args{sale::group, count};
  auto asked = store_.run(scripts::sale_flow, Words{keys}, Words{args}, sale::repeatable);
  const Value reply = co_await asked;
  const auto& parts = reply.as_items();
  OrderFlow flow{.entries = parts.at(1).as_integer()};
  // The id of an entry begins with the store's time at which it was added.
  const auto& oldest = parts.at(2).as_text();
  if (const auto added = parse_integer<std::int64_t>(oldest.substr(0, oldest.find('-'))))
    flow.oldest =
        std::chrono::milliseconds{std::max<std::int64_t>(parts.at(0).as_integer() - *added, 0)};
  const auto& workers = parts.at(3).as_items();
  for (std::size_t at = 0; at + 2 < workers.size(); at += 3)
    flow.workers.push_back({.name = workers[at].as_text(),
                            .pending = workers[at + 1].as_integer(),
                            .idle = std::chrono::milliseconds{workers[at + 2].as_integer()}});
  co_return flow;
}

std::string_view to_string(SaleState state) noexcept {
  static constexpr std::string_view names[] = {
      "not loaded", "not started", "open", "sold out", "full", "closed", "recovering", "archived"};
  return names[static_cast<std::size_t>(state)];
}

namespace {

/// Unless another process has done it. With the gate shut where the store has lost the sale.
Task<void> define(Store& store, SaleDefinition definition, bool was_lost) {
  const sale::SaleKeys keys{definition.name};
  auto fields = sale::fields_of(definition);
  const auto lane = co_await sale::take_lane(store, definition.name);
  const auto stock = fmt::to_string(definition.stock);
  const auto home = co_await sale::id_of_store(store);
  std::vector<std::string_view> args{sale::group, "format", sale::format, "lane", lane,
                                     "capacity",  stock,    "home",       home};
  if (was_lost)
    args.insert(args.end(), {"recovering", sale::shut_as_lost});
  else if (definition.bucket)
    args.insert(args.end(), {"moves", sale::first_moves});
  for (const auto& [field, value] : fields) args.insert(args.end(), {field, value});
  const std::vector<std::string_view> names{keys.sale,   keys.orders,   keys.dead,
                                            keys.buyers, keys.requests, keys.returned};
  co_await store.run(scripts::sale_create, Words{names}, Words{args}, sale::repeatable);
}

}  // namespace

namespace {

/// Whether a sale has ended, and its last day, so that another may use its type of numbers from now
/// on: no two orders get the same.
Task<bool> is_type_free(Store& store, const SaleDefinition& definition, const std::string& owner) {
  const sale::SaleKeys keys{owner};
  auto asked = store.run({"HMGET", keys.sale, "type", "archived", "day"});
  const Value reply = co_await asked;
  const auto& fields = reply.as_items();
  if (fields.at(0).is_null() || fields[0].as_text() != definition.number_type) co_return true;
  if (fields.at(1).is_null()) co_return false;
  if (fields.at(2).is_null()) co_return true;
  auto time = store.time();
  const auto now = co_await time;
  std::string today;
  for (const auto& day : Calendar{definition.zone}.around(now).periods)
    if (day.start <= now) today = std::max(today, day.label);
  co_return fields.at(2).as_text() < today;
}

/// Enters the sale as the one that gives numbers of its type; `claims` is false: only looks whether
/// it could be.
Task<void> need_type(Store& store, const SaleDefinition& definition, bool claims) {
  const auto& type = definition.number_type;
  for (int attempt = 0; attempt < 3; ++attempt) {
    auto asked = store.run({"HGET", sale::types_key, type});
    const Value there = co_await asked;
    const auto owner = there.is_null() ? std::string{} : there.as_text();
    if (owner == definition.name) co_return;
    if (!owner.empty()) {
      auto looked = is_type_free(store, definition, owner);
      if (!co_await looked)
        throw Error{Errc::bad_argument,
                    fmt::format("sale '{}': number_type '{}' is that of sale '{}', and both would "
                                "give the same numbers; use another",
                                definition.name, type, sale::shown(owner))};
    }
    if (!claims) co_return;
    auto claimed = store.run(scripts::sale_claim_type, {sale::types_key},
                             {type, definition.name, owner}, sale::repeatable);
    const Value now = co_await claimed;
    if (now.as_integer() == 1) co_return;
  }
  throw Error{Errc::server, fmt::format("sale '{}': other sales claim number_type '{}' at the same "
                                        "moment; create it again",
                                        definition.name, type)};
}

/// Where a sale has buckets none of its name may sell beside them: the stock would be sold twice.
/// Who makes either looks before, so that nothing is made in vain, and after: of two who make one
/// each at the same moment at least one sees the other's then.
Task<void> need_no_buckets(Store& store, const SaleDefinition& definition) {
  if (definition.bucket) co_return;
  auto looked = sale::any_bucket(store, definition.name);
  const auto found = co_await looked;
  if (found) sale::refuse_beside(*found);
}

void need_no_buckets(OrderStore& orders, const SaleDefinition& definition) {
  if (definition.bucket) return;
  if (const auto found = sale::any_bucket(orders, definition.name)) sale::refuse_beside(*found);
}

}  // namespace

/// False: it is not there, and may be created.
Task<bool> Sale::is_there(Store& store, const SaleDefinition& definition) {
  sale::check(definition);
  const auto there = co_await sale::read_definition(store, definition.name);
  if (there && *there != definition)
    throw Error{
        Errc::config_mismatch,
        fmt::format(
            "sale '{}' is defined otherwise in {}: {}; use the same definition, or another name",
            definition.name, store.describe(), sale::difference(*there, definition))};
  if (there) co_return true;
  if (definition.closes_at) {
    auto asked = store.time();
    const auto now = co_await asked;
    if (now >= *definition.closes_at)
      throw Error{Errc::bad_argument,
                  fmt::format("sale '{}' closes at {}, and the clock of {} says {}: nobody could "
                              "buy",
                              definition.name, to_text(*definition.closes_at), store.describe(),
                              to_text(now))};
  }
  auto alone = need_no_buckets(store, definition);
  co_await alone;
  auto typed = need_type(store, definition, false);
  co_await typed;
  co_return false;
}

Task<void> Sale::check(Store& store, SaleDefinition definition) {
  const Calendar known_zone{definition.zone};
  auto looked = is_there(store, definition);
  co_await looked;
}

Task<Sale> Sale::create(Store& store, SaleDefinition definition) {
  return make(store, std::move(definition), false);
}

Sale Sale::create(Store& store, SaleDefinition definition, OrderStore& orders) {
  need_no_buckets(orders, definition);
  sale::need_sold_here(store, definition.name, orders);
  const bool was_lost = !orders.definition(definition.name).empty();
  auto sale = make(store, std::move(definition), was_lost).get();
  sale::enter(store, sale.definition(), orders);
  need_no_buckets(orders, sale.definition());
  return sale;
}

Task<Sale> Sale::make(Store& store, SaleDefinition definition, bool was_lost) {
  auto impl = std::make_unique<Impl>(
      store, definition);  // an unknown zone is told before anything is written
  auto looked = is_there(store, definition);
  if (co_await looked) {  // a stream that was lost alone gets its group back
    const sale::SaleKeys keys{definition.name};
    auto joined =
        store.run(scripts::sale_join, {keys.sale, keys.orders}, {sale::group}, sale::repeatable);
    co_await joined;
    auto listed = store.run({"HSETNX", sale::types_key, definition.number_type, definition.name},
                            sale::repeatable);
    co_await listed;
  } else {
    auto typed = need_type(store, definition, true);
    co_await typed;
    try {
      auto defined = define(store, definition, was_lost);
      co_await defined;
    } catch (const Error& failure) {
      // The sale has its type of numbers by now; the same call again is safe.
      if (failure.effect() != Effect::none) throw;
      throw Error{failure.errc(), failure.message(), Effect::unknown};
    }
    auto again = is_there(store, definition);  // another process may have been first
    co_await again;
  }
  auto alone = need_no_buckets(store, definition);
  co_await alone;
  co_return Sale{std::move(impl)};
}

Task<std::optional<Sale>> Sale::load(Store& store, std::string name) {
  sale::check_name(name);
  auto definition = co_await sale::read_definition(store, std::move(name));
  if (!definition) co_return std::nullopt;
  auto alone = need_no_buckets(store, *definition);
  co_await alone;
  co_return Sale{std::make_unique<Impl>(store, std::move(*definition))};
}

Task<std::vector<std::string>> Sale::names(Store& store) {
  constexpr std::int64_t page_size = 1000;
  std::vector<std::string> names;
  for (std::int64_t from = 0;; from += page_size) {
    const auto first = fmt::to_string(from);
    const auto last = fmt::to_string(from + page_size - 1);
    auto asked = store.run({"ZRANGE", sale::names_key, first, last});
    const Value page = co_await asked;
    for (const auto& name : page.as_items()) names.push_back(name.as_text());
    if (std::ssize(page.as_items()) < page_size) co_return names;
  }
}

Sale::Sale(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Sale::Sale(Store& store, SaleDefinition definition)
    : Sale{std::make_unique<Impl>(store, std::move(definition))} {}
Sale::~Sale() = default;
Sale::Sale(Sale&&) noexcept = default;
Sale& Sale::operator=(Sale&&) noexcept = default;

const SaleDefinition& Sale::definition() const noexcept { return impl_->definition(); }
Task<Admission> Sale::buy(BuyerId buyer, RequestId request, std::int64_t units) {
  return impl_->buy(std::move(buyer), std::move(request), units);
}
std::shared_ptr<void> Sale::gather() { return impl_->gather(); }
Task<std::optional<SaleOrder>> Sale::find(BuyerId buyer, RequestId request) {
  return impl_->find(std::move(buyer), std::move(request));
}
Task<std::optional<SaleOrder>> Sale::latest(BuyerId buyer) {
  return impl_->latest(std::move(buyer));
}
Task<SaleStatus> Sale::status() { return impl_->status(); }
Task<std::int64_t> Sale::recorded_up_to() { return impl_->recorded_up_to(); }
Task<OrderFlow> Sale::flow(std::size_t most) { return impl_->flow(most); }
Task<void> Sale::close() { return impl_->close(); }
void Sale::close(OrderStore& orders) { impl_->close(orders); }
EndedOrder Sale::cancel(OrderStore& orders, BuyerId buyer, RequestId request, std::string reason) {
  return impl_->cancel(orders, std::move(buyer), std::move(request), reason);
}
UnitsResult Sale::cancel_units(OrderStore& orders, BuyerId buyer, RequestId request,
                               std::int64_t units, std::string key, std::string reason) {
  return impl_->cancel_units(orders, std::move(buyer), std::move(request), units, key, reason);
}
PaymentResult Sale::pay(OrderStore& orders, const Payment& payment) {
  return impl_->pay(orders, payment);
}
std::size_t Sale::expire(OrderStore& orders, std::size_t most) {
  return impl_->expire(orders, most);
}
bool Sale::change_stock(OrderStore& orders, std::int64_t stock) {
  return impl_->change_stock(orders, stock);
}
void Sale::settle(OrderStore& orders) { impl_->settle(orders); }
bool Sale::archive(OrderStore& orders, ArchiveOptions options, std::stop_token stop) {
  return sale::archive(impl_->store(), *this, orders, options, stop);
}
Task<std::vector<DeadLetter>> Sale::dead_letters(std::string after, std::size_t most) {
  return impl_->dead_letters(std::move(after), most);
}
Task<bool> Sale::revive(std::string dead_letter_id) {
  return impl_->revive(std::move(dead_letter_id));
}
std::optional<EndedOrder> Sale::give_back(OrderStore& orders, std::string dead_letter_id,
                                          std::string reason) {
  return impl_->give_back(orders, dead_letter_id, reason);
}

}  // namespace sluice
