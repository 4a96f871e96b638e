#include "sale/settlement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/integer.hpp"
#include "sale/buckets/bucket_name.hpp"
#include "sale/differences.hpp"
#include "sale/ledger.hpp"
#include "sale/records.lua.hpp"
#include "sale/recovery.lua.hpp"
#include "sale/sale.lua.hpp"
#include "sale/store_of_sale.hpp"
#include "sale/streams.hpp"
#include "sale/sums.hpp"
#include "sluice/log.hpp"

namespace sluice::sale {

std::string database_word(OrderStore& orders) {
  return fmt::format("{} {}", orders.identity(), orders.describe());
}

bool is_same_database(std::string_view word, std::string_view other) {
  return word.substr(0, word.find(' ')) == other.substr(0, other.find(' '));
}

namespace {

/// What the sale's hash says of both, after it has heard what the database says.
struct Attached {
  std::string database;  ///< that the sale goes into; empty: it is not known
  bool is_shut;
  bool is_archived = false;
  StoreOfSale here;  ///< without an id: the sale is not there
  std::string mark;
};

Attached attach_hash(Store& store, const SaleKeys& keys, Words args, const std::string& id) {
  std::vector<std::string_view> all{args.begin(), args.end()};
  all.push_back(id);
  const std::vector<std::string_view> names{keys.sale, keys.orders, keys.dead};
  const auto reply = store.run(scripts::sale_attach, Words{names}, Words{all}, repeatable).get();
  if (reply.is_null()) return {.database = {}, .is_shut = false, .here = {}, .mark = {}};
  const auto& items = reply.as_items();
  if (items.at(2).as_text().empty())  // of an older version
    return attach_hash(store, keys, args, id_of_store(store).get());
  return {.database = items.at(0).as_text(),
          .is_shut = items.at(1).as_integer() == 1,
          .is_archived = items.at(4).as_integer() == 1,
          .here = {.id = items.at(2).as_text(), .place = store.describe()},
          .mark = items.at(3).as_text()};
}

[[noreturn]] void refuse_database(const SaleDefinition& sale, const std::string& goes_into,
                                  Store& store, OrderStore& orders) {
  constexpr std::size_t shown_size = 8;
  const auto space = goes_into.find(' ');
  const auto there = space == std::string::npos
                         ? std::string{"a database that knows it"}
                         : fmt::format("database {} ({})", goes_into.substr(0, shown_size),
                                       goes_into.substr(space + 1));
  throw Error{Errc::config_mismatch,
              fmt::format("the orders of sale '{0}' in {1} go into {2}, and {3} is database {4}: "
                          "use that one (--orders); where it is lost, 'sluice sale recover {0} "
                          "--new-database' brings into {3} what the store has",
                          sale.name, store.describe(), there, orders.describe(),
                          orders.identity().substr(0, shown_size))};
}

}  // namespace

bool shut_gate(Store& store, const SaleKeys& keys, std::string_view reason,
               const std::string& born) {
  return store.run(scripts::sale_shut, {keys.sale}, {reason, born}, repeatable)
             .get()
             .as_integer() == 1;
}

bool attach(Store& store, const SaleDefinition& sale, OrderStore& orders, bool may_be_new) {
  renew_id(store, sale.name, orders);
  const SaleKeys keys{sale.name};
  const auto word = database_word(orders);
  const auto there = orders.store_of(sale.name);
  const auto mark = orders.mark(sale.name);
  const auto store_there = there ? there->id : std::string{};
  const std::vector<std::string_view> args{word, may_be_new || there ? "1" : "0", store_there,
                                           mark};
  const auto known = attach_hash(store, keys, Words{args}, {});
  const bool is_there = !known.here.id.empty();
  if (is_there && !store_there.empty() && store_there != known.here.id &&
      (known.database.empty() || is_same_database(known.database, word)))
    throw another_store(sale.name, orders.describe(), *there, known.here);
  if (is_there && !is_same_database(known.database, word))
    refuse_database(sale, known.database, store, orders);
  orders.add_sale(sale.name, sale.stock);
  const bool is_named = is_there && store_there == known.here.id;
  if (!is_there || (!is_named && !is_sold_here(store, sale.name, orders, known.here)))
    return known.is_shut;
  if (orders.sell_in(sale.name, known.here, known.mark)) return known.is_shut;
  if (known.is_archived) {
    store.run({"HSET", keys.sale, rolled_back_field, "1"}).get();
  } else {
    refuse_copy(store, sale.name, orders);
    const auto born = store.run({"HGET", keys.sale, "born"}).get();
    shut_gate(store, keys, shut_as_rolled_back, born.as_text());
  }
  if (!known.is_shut) log(LogLevel::error, rolled_back(sale.name, orders.describe()));
  return true;
}

namespace {

constexpr std::int64_t no_epoch = -1;  // of no database

/// Empty: it is none that a sale writes.
std::optional<std::int64_t> figure_of(const Value& text) {
  const auto figure = parse_integer<std::int64_t>(text.as_text());
  return figure && *figure >= 0 && *figure <= most_units ? figure : std::nullopt;
}

/// The store's, raised to the database's while the gate is open.
std::int64_t epoch_of_both(Store& store, const SaleKeys& keys, OrderStore& orders,
                           const std::string& sale, std::int64_t epoch) {
  const auto known = orders.epoch(sale);
  if (known <= epoch) return epoch;
  const auto raised = store
                          .run(scripts::sale_raise_epoch, {keys.sale},
                               {fmt::to_string(known), orders.epoch_token(sale)}, repeatable)
                          .get()
                          .as_integer();
  if (raised < 0)
    throw another_store(sale, orders.describe(), orders.store_of(sale).value_or(StoreOfSale{}),
                        store_of_sale(store, sale));
  return raised == 1 ? known : epoch;
}

/// Orders of a bucket may need units that stand in the rows of its siblings.
void enter_siblings(const SaleDefinition& bucket, OrderStore& orders) {
  const auto whole = whole_definition(bucket);
  for (std::int64_t i = 0; i < bucket.bucket->count; ++i) {
    const auto sibling = bucket_definition(whole, i, bucket.bucket->count);
    if (!orders.stock(sibling.name)) orders.add_sale(sibling.name, sibling.stock);
  }
}

}  // namespace

/// The database is asked first: a store that has lost nothing is never behind it.
void stop_giving_twice(Store& store, const SaleDefinition& sale, OrderStore& orders) {
  const auto newest = orders.newest(sale.name, {}, 1);
  if (newest.empty()) return;
  const SaleKeys keys{sale.name};
  const auto last = line_of(newest.front(), sale);
  const auto day = fmt::to_string(last.day);
  const auto sequence = fmt::to_string(last.sequence);
  const auto shut =
      store.run(scripts::sale_shut_behind, {keys.sale}, {day, sequence, shut_as_lost}, repeatable)
          .get();
  if (shut.as_integer() == 1)
    log(LogLevel::error,
        fmt::format("sale '{0}': {1} is behind {2}, as a store that was brought back to an earlier "
                    "state, and would give numbers twice; buyers wait until 'sluice sale recover "
                    "{0}' has brought back what came after that",
                    sale.name, store.describe(), orders.describe()));
}

Entered enter(Store& store, const SaleDefinition& sale, OrderStore& orders) {
  attach(store, sale, orders, true);
  if (sale.bucket) enter_siblings(sale, orders);
  const SaleKeys keys{sale.name};
  const auto reply =
      store.run({"HMGET", keys.sale, "format", "lane", "born", "epoch", "database", "closed"})
          .get();
  const auto& there = reply.as_items();
  if (there.at(0).is_null()) return {};
  auto fields = fields_of(sale);
  fields.emplace_back("format", there.at(0).as_text());
  fields.emplace_back("lane", there.at(1).as_text());
  fields.emplace_back("born", there.at(2).as_text());
  fields.emplace_back("database", there.at(4).as_text());
  if (!there.at(5).is_null()) fields.emplace_back("closed", there.at(5).as_text());
  orders.keep_definition(sale.name, fields);
  bool is_lost = false;
  for (const auto& [field, value] : orders.definition(sale.name)) {
    if (field == "closed") store.run(scripts::sale_close, {keys.sale}, {}, repeatable).get();
    if (field != "born" || value == there.at(2).as_text()) continue;
    // The database knows the sale from before this one was created: the store has lost it.
    is_lost = true;
    if (shut_gate(store, keys, shut_as_lost, there.at(2).as_text()))
      log(LogLevel::error,
          fmt::format("sale '{}' was lost in {} and created again; buyers wait until "
                      "'sluice sale recover {}' has brought back its orders from {}",
                      sale.name, store.describe(), sale.name, orders.describe()));
  }
  if (!is_lost) stop_giving_twice(store, sale, orders);
  const auto epoch = there.at(3).is_null() ? 0 : figure_of(there.at(3)).value_or(no_epoch);
  return {.is_there = true,
          .is_lost = is_lost,
          .epoch = epoch == no_epoch ? epoch : epoch_of_both(store, keys, orders, sale.name, epoch),
          .born = there.at(2).as_text()};
}

Settlement::Settlement(Store& store, const SaleDefinition& sale, OrderStore& orders)
    : store_(store),
      sale_(sale),
      keys_(sale.name),
      orders_(orders),
      records_(store, sale),
      is_shut_(attach(store, sale, orders)),
      epoch_(store.run({"HGET", keys_.sale, "epoch"}).get()) {
  // Prices and deadlines are the database's to know, also before a worker has run.
  if (sale.payment && orders.definition(sale.name).empty()) enter(store, sale, orders);
}

void Settlement::check_gate() const {
  if (is_shut_)
    throw Error{Errc::server,
                fmt::format("sale '{}' cannot be changed before it is recovered: {} lost data, or "
                            "was started again; see 'sluice sale recover'",
                            sale_.name, store_.describe())};
}

/// Of the sale's hash; 0: it is not there.
std::int64_t Settlement::figure(std::string_view field) const {
  return figure(field, store_.run({"HGET", keys_.sale, field}).get());
}

std::int64_t Settlement::figure(std::string_view field, const Value& value) const {
  if (value.is_null()) return 0;
  if (const auto found = figure_of(value)) return *found;
  throw Error{Errc::corrupt,
              fmt::format("sale '{0}': its {1} is '{2}' in {3}, which no sale writes; 'sluice sale "
                          "recover {0}' mends it from the database",
                          sale_.name, field, shown(value.as_text()), store_.describe())};
}

InsertResult Settlement::insert_ended(const SaleOrder& order, OrderState state,
                                      const std::string& reason) {
  const auto result =
      orders_.insert_ended(sale_.name, order, state, reason, figure("epoch", epoch_));
  if (result.stale)
    throw Error{Errc::server, fmt::format("sale '{}' is being recovered: cancel order {} when that "
                                          "has ended",
                                          sale_.name, order.number)};
  return result;
}

/// An order that is not in the database must be in a stream, unless it has got there meanwhile.
void Settlement::check_on_its_way(const SaleOrder& order) {
  const auto is_recorded = [&] {
    return !orders_.find(sale_.name, std::span{&order.id, 1}).empty();
  };
  if (is_where_it_was_put(store_, keys_, order) || is_recorded()) return;
  bool found = false;
  read_streams(store_, keys_, [&](const std::vector<StreamOrder>& page) {
    found |= std::ranges::any_of(
        page, [&](const StreamOrder& entry) { return entry.order.id == order.id; });
  });
  if (found || is_recorded()) return;
  throw Error{Errc::database,
              fmt::format("sale '{0}': order {1} was brought into the database, and {2} does not "
                          "have it: it lost data, see 'sluice sale recover {0}'",
                          sale_.name, order.number, orders_.describe())};
}

EndedOrder Settlement::end(const SaleOrder& order, OrderState state, const std::string& reason) {
  check_gate();
  auto ended = orders_.end_order(sale_.name, order.id, state, reason);
  if (!ended.order) {  // on its way, or a dead letter: a worker will find it there
    check_on_its_way(order);
    const auto result = insert_ended(order, state, reason);
    if (!result.rejected.empty())
      throw Error{Errc::database,
                  fmt::format("sale '{}': order {} cannot end, {} refuses it: {}", sale_.name,
                              order.number, orders_.describe(), result.rejected.front().reason)};
    ended = orders_.end_order(sale_.name, order.id, state, reason);
    ended.now |= result.inserted == 1;
  }
  after_commit([&] { settle(order.id); });
  return ended;
}

/// What the database has of one order and the store has not.
void Settlement::settle(std::int64_t id) {
  for (const auto& back : orders_.returns(sale_.name, id - 1, 1, true))
    if (back.order.id == id) settle(back);
}

EndedOrder Settlement::end_letter(const SaleOrder& order, const std::string& reason) {
  if (!orders_.are_taken(sale_.name, std::span{&order, 1}).front())
    return end(order, OrderState::cancelled, reason);
  check_gate();
  EndedOrder ended{.now = records_.take_out(order).get(), .order = order, .reason = reason};
  ended.order->state = OrderState::cancelled;
  return ended;
}

void Settlement::settle(const OrderReturn& what) {
  if (what.units < 0) return retake(what);
  give_back(what);
  orders_.return_done(sale_.name, what.order.id, what.seq);
}

void Settlement::give_back(const OrderReturn& what) {
  const auto returned = records_.give_back(what).get();
  if (returned == Records::Returned::shut)
    throw Error{Errc::server,
                fmt::format("sale '{}': order {} ended in {}; {} gets its units back when the sale "
                            "is recovered, see 'sluice sale recover'",
                            sale_.name, what.order.number, orders_.describe(), store_.describe()),
                Effect::unknown};
  if (returned == Records::Returned::unknown)
    throw Error{Errc::server,
                fmt::format("sale '{}': {} has no order {}, which ended in {}: it lost data, see "
                            "'sluice sale recover'",
                            sale_.name, store_.describe(), what.order.number, orders_.describe()),
                Effect::unknown};
}

/// The store says who gets units, also when they are paid for late.
void Settlement::retake(const OrderReturn& what) {
  const auto retaken = records_.take_again(what).get();
  if (retaken == Records::Retaken::shut || retaken == Records::Retaken::unknown)
    throw Error{
        Errc::server,
        fmt::format(
            "sale '{}': order {} was paid late, and {} {}; see 'sluice sale recover'", sale_.name,
            what.order.number, store_.describe(),
            retaken == Records::Retaken::shut ? "has to be recovered first" : "does not know it"),
        Effect::unknown};
  orders_.payments().end_retake(sale_.name, what.order.id, what.seq,
                                retaken == Records::Retaken::taken);
}

PaymentResult Settlement::pay(const Payment& payment) {
  // An archived sale has no gate, and is shut by this alone. recover() applies what was kept.
  if (is_shut_ && store_.run({"HEXISTS", keys_.sale, rolled_back_field}).get().as_integer() == 1)
    return {};
  auto result = orders_.payments().apply(payment);
  if (result.state != PaymentState::asking || !result.order) return result;
  const bool now = result.now;
  after_commit([&] {
    settle(result.order->order.id);
    result = orders_.payments().apply(payment);
  });
  result.now = now;
  return result;
}

std::size_t Settlement::expire(std::size_t most) {
  const auto due = orders_.payments().due(sale_.name, most);
  const auto expired = orders_.payments().expire_all(sale_.name, due);
  for (const auto id : due) settle(id);
  return expired;
}

UnitsResult Settlement::cancel_units(const SaleOrder& order, std::int64_t units,
                                     const std::string& key, const std::string& reason) {
  check_gate();
  auto result = orders_.payments().cancel_units(sale_.name, order.id, units, key, reason);
  if (result.outcome == UnitsResult::Outcome::unknown) check_on_its_way(order);
  after_commit([&] { settle(order.id); });
  return result;
}

/// False: the store refused it.
bool Settlement::settle(const StockChange& change) {
  const auto seq = fmt::to_string(change.seq);
  const auto delta = fmt::to_string(change.delta);
  const auto answer =
      store_.run(scripts::sale_change_stock, {keys_.sale}, {seq, delta}, repeatable).get();
  if (answer.is_null())
    throw Error{Errc::server,
                fmt::format("sale '{}' is not in {} any more", sale_.name, store_.describe())};
  if (answer.as_integer() == -3)
    throw Error{Errc::server,
                fmt::format("sale '{}': change {} of the stock waits until {} is recovered, see "
                            "'sluice sale recover'",
                            sale_.name, change.seq, store_.describe()),
                Effect::unknown};
  if (answer.as_integer() < 0) {
    const bool is_behind = answer.as_integer() == -1;
    // Another process has settled this change meanwhile, and begun the next one.
    if (!is_behind && orders_.last_stock_change(sale_.name) > change.seq) return true;
    throw Error{Errc::server,
                fmt::format("sale '{}': {} does not know of the change of the stock {} number {}: "
                            "it lost data, see 'sluice sale recover'",
                            sale_.name, is_behind ? store_.describe() : orders_.describe(),
                            is_behind ? "before" : "after", change.seq),
                Effect::unknown};
  }
  orders_.end_stock_change(sale_.name, change.seq, answer.as_integer() == 1);
  return answer.as_integer() == 1;
}

/// As it was defined and changed: the share of a bucket also changes otherwise.
std::int64_t Settlement::stock_there() {
  if (!sale_.bucket) return figure("capacity");
  const auto added = store_.run({"HGET", keys_.sale, "added"}).get();
  return sale_.stock +
         (added.is_null() ? 0 : parse_integer<std::int64_t>(added.as_text()).value_or(0));
}

bool Settlement::change_stock(std::int64_t stock) {
  check_gate();
  bool has_begun = false;
  return after_commit([&] { return change_stock(stock, has_begun); }, has_begun);
}

bool Settlement::change_stock(std::int64_t stock, bool& has_begun) {
  const auto behind = [&](const std::string& what) {
    return Error{Errc::server,
                 fmt::format("sale '{}': {}; one of them lost data, see 'sluice sale recover'",
                             sale_.name, what)};
  };
  int differ = 0;
  for (;;) {
    const auto known = figure("changes");  // first: the database is never behind
    const auto last = orders_.last_stock_change(sale_.name);
    if (known > last)
      throw behind(fmt::format("{} knows {} changes of the stock, and {} {}", store_.describe(),
                               known, orders_.describe(), last));
    const auto change = orders_.begin_stock_change(sale_.name, stock);
    if (change) {
      has_begun = true;
      if (!settle(*change) && change->now) return false;
      continue;
    }
    const auto there = stock_there();
    if (there == stock) return true;
    constexpr int looks = 3;  // another process may change it meanwhile
    if (++differ == looks)
      throw behind(fmt::format("the stock is {} in {}, and {} in {}", there, store_.describe(),
                               stock, orders_.describe()));
  }
}

void Settlement::settle() {
  constexpr std::size_t most = 500;
  std::exception_ptr lost;
  std::optional<std::int64_t> after = -1;
  while (after) {
    const auto some = settle_some(*after, most);
    if (!lost) lost = some.lost;
    after = some.next;
  }
  if (lost) std::rethrow_exception(lost);
}

/// What the store lost holds up nothing else.
Settlement::Some Settlement::settle_some(std::int64_t after, std::size_t most) {
  Some some;
  const auto try_to = [&](auto&& settle_it) {
    try {
      settle_it();
    } catch (const Error& error) {
      if (error.errc() != Errc::server) throw;
      if (!some.lost) some.lost = std::current_exception();
    }
  };
  if (const auto change = orders_.pending_stock_change(sale_.name))
    try_to([&] { settle(*change); });
  const auto page = orders_.returns(sale_.name, after, most, true);
  std::vector<OrderReturn> back;  // noted together: each would wait for the row of the sale
  const auto note = [&] { orders_.returns_done(sale_.name, std::exchange(back, {})); };
  for (const auto& what : page) {
    if (what.units < 0) note();  // a retake may be of one of these
    try_to([&] {
      if (what.units < 0) return retake(what);
      give_back(what);
      back.push_back(what);
    });
  }
  note();
  if (page.size() >= most) some.next = page.back().order.id;
  return some;
}

}  // namespace sluice::sale
