#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "base/random.hpp"
#include "sale/differences.hpp"
#include "sale/on_the_way.hpp"
#include "sale/order_queue.hpp"
#include "sale/orders.lua.hpp"
#include "sale/records.hpp"
#include "sale/recovery.lua.hpp"
#include "sale/settlement.hpp"
#include "sale/streams.hpp"
#include "sluice/sale_recovery.hpp"

namespace sluice::sale {
namespace {

constexpr std::size_t page_size = 1000;
constexpr std::size_t most_put = 256;

class Recovery {
 public:
  Recovery(Store& store, const SaleDefinition& sale, OrderStore& orders)
      : store_(store),
        sale_(sale),
        keys_(sale_.name),
        orders_(orders),
        records_(store, sale_),
        on_the_way_(sale_) {}

  SaleRecovery run(OrderStore::Fields kept);

 private:
  void close_gate(const OrderStore::Fields& kept);
  void restore_stock();
  void restore_orders();
  void restore_returns();
  void reconcile_streams();
  void remove_entries(const std::vector<StreamOrder>& entries);
  void send_again();
  void count_gaps();
  void open_gate();

  std::int64_t put(std::span<const SaleOrder> orders);
  std::unordered_set<std::int64_t> in_database(const std::vector<std::int64_t>& ids) const;

  Store& store_;
  const SaleDefinition sale_;
  const SaleKeys keys_;
  OrderStore& orders_;
  Records records_;
  OnTheWay on_the_way_;
  std::vector<SaleOrder> sent_;
  SaleRecovery done_;

  const std::string token_ = random_hex_128();
  std::string this_store_;
  std::int64_t epoch_ = 0;
};

/// The lane and the birth of the sale are those of the database: of a sale that was lost and made
/// again, too.
void Recovery::close_gate(const OrderStore::Fields& kept) {
  std::vector<std::pair<std::string, std::string>> fields;
  const auto is_always = [](const auto& field) {
    return field.first == "lane" || field.first == "born";
  };
  std::ranges::copy_if(kept, std::back_inserter(fields), is_always);
  const auto always = fmt::to_string(fields.size());
  std::ranges::remove_copy_if(kept, std::back_inserter(fields), is_always);
  const auto stock = fmt::to_string(sale_.stock);
  fields.emplace_back("capacity", stock);
  std::vector<std::string_view> args{group, token_, always};
  for (const auto& [field, value] : fields) args.insert(args.end(), {field, value});
  const std::vector<std::string_view> names{keys_.sale, keys_.orders};
  const auto reply =
      store_.run(scripts::sale_begin_recovery, Words{names}, Words{args}, repeatable).get();
  this_store_ = reply.as_items().at(0).as_text();
  done_.made_again = reply.as_items().at(1).as_integer() == 1;
  for (const auto& [field, value] : kept) {
    if (field != "lane") continue;
    store_.run(scripts::sale_raise_lanes, {lanes_key}, {value}, repeatable).get();
    store_.run({"ZADD", names_key, "NX", value, sale_.name}, repeatable).get();
  }
}

void Recovery::restore_stock() {
  const auto totals = orders_.totals(sale_.name);
  done_.in_database = totals.orders;
  store_
      .run(scripts::sale_restock, {keys_.sale},
           {fmt::to_string(totals.last_change),
            fmt::to_string(totals.stock.initial + totals.applied)},
           repeatable)
      .get();
}

std::int64_t Recovery::put(std::span<const SaleOrder> orders) {
  std::int64_t written = 0;
  for (; !orders.empty(); orders = orders.subspan(std::min(most_put, orders.size())))
    written += records_.put(orders.first(std::min(most_put, orders.size()))).get();
  return written;
}

void Recovery::restore_orders() {
  std::int64_t after = std::numeric_limits<std::int64_t>::min();
  for (;;) {
    const auto rows = orders_.page(sale_.name, after, page_size);
    done_.restored += put(rows);
    if (rows.size() < page_size) return;
    after = rows.back().id;
  }
}

void Recovery::restore_returns() {
  std::int64_t after = std::numeric_limits<std::int64_t>::min();
  for (;;) {
    const auto page = orders_.returns(sale_.name, after, page_size, false);
    if (page.empty()) break;
    std::vector<std::string> names;
    for (const auto& what : page) names.push_back(fmt::format("{}:{}", what.order.id, what.seq));
    std::vector<std::string_view> words{"HMGET", keys_.returned};
    words.insert(words.end(), names.begin(), names.end());
    const auto there = store_.run(Words{words}).get();
    for (std::size_t i = 0; i < page.size(); ++i)
      if (there.as_items().at(i).is_null() && page[i].done)
        done_.given_back += records_.give_back(page[i]).get() == Records::Returned::now;
    if (page.size() < page_size) break;
    after = page.back().order.id;
  }
  Settlement{store_, sale_, orders_}.settle();  // and those that the store had not been told of
}

std::unordered_set<std::int64_t> Recovery::in_database(const std::vector<std::int64_t>& ids) const {
  std::unordered_set<std::int64_t> found;
  for (const auto& row : orders_.find(sale_.name, ids)) found.insert(row.id);
  return found;
}

/// Orders of the streams that the records have lost are entered there; entries of orders in whose
/// place the database has another are removed.
void Recovery::reconcile_streams() {
  read_streams(store_, keys_, page_size, [&](const std::vector<StreamOrder>& entries) {
    std::vector<Wish> wishes;
    std::vector<std::int64_t> ids;
    for (const auto& entry : entries) wishes.push_back({entry.order.buyer, entry.order.request});
    const auto records = records_.find(std::span<const Wish>{wishes}).get();
    for (const auto& record : records) ids.push_back(record ? record->id : -1);
    const auto safe = in_database(ids);
    std::vector<SaleOrder> lost;
    std::vector<StreamOrder> void_entries;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const auto& order = entries[i].order;
      if (!records[i]) lost.push_back(order);
      const bool is_other = records[i] && fingerprint_of(*records[i]) != fingerprint_of(order);
      if (is_other && safe.contains(records[i]->id)) {
        void_entries.push_back(entries[i]);
      } else {
        on_the_way_.add(order);
        done_.on_the_way += !safe.contains(order.id);
      }
    }
    put(lost);
    remove_entries(void_entries);
  });
  on_the_way_.sort();
}

void Recovery::remove_entries(const std::vector<StreamOrder>& entries) {
  for (const auto& entry : entries) {
    if (entry.is_dead)
      store_.run({"XDEL", keys_.dead, entry.entry}, repeatable).get();
    else
      store_.run(scripts::sale_acknowledge, {keys_.orders}, {group, entry.entry}, repeatable).get();
    ++done_.removed;
  }
}

/// Orders that the store admitted, and that are neither in the database nor on their way there.
void Recovery::send_again() {
  std::string from;
  do {
    auto page = records_.scan(from, page_size).get();
    std::vector<SaleOrder> orders = std::move(page.earlier);
    for (auto& buyer : page.buyers) orders.push_back(std::move(buyer.latest));
    if (done_.made_again) put(orders);  // only raises the counters of the new hash to them
    std::erase_if(orders, [&](const SaleOrder& order) {
      return order.state != OrderState::awaiting || on_the_way_.find(order.id);
    });
    std::vector<std::int64_t> ids;
    for (const auto& order : orders) ids.push_back(order.id);
    const auto safe = in_database(ids);
    std::erase_if(orders, [&](const SaleOrder& order) { return safe.contains(order.id); });
    for (std::size_t at = 0; at < orders.size(); at += most_put) {
      const auto end = std::min(at + most_put, orders.size());
      std::vector<std::string> texts;
      for (auto i = at; i < end; ++i) texts.push_back(text_of(orders[i]));
      std::vector<std::string_view> args;
      for (auto i = at; i < end; ++i)
        args.insert(args.end(), {texts[i - at], orders[i].buyer.value});
      const std::vector<std::string_view> names{keys_.orders};
      store_.run(scripts::sale_send_again, Words{names}, Words{args}).get();
      for (auto i = at; i < end; ++i) sent_.push_back(orders[i]);
    }
    from = std::move(page.next);
  } while (!from.empty());
  done_.sent_again = static_cast<std::int64_t>(sent_.size());
  for (const auto& order : sent_) on_the_way_.add(order);
}

/// Where orders are lost that stood between others: an earlier batch may get lost with a server
/// while a later one has reached the database.
void Recovery::count_gaps() {
  on_the_way_.sort();
  Ledger ledger;
  OrdersById all{ledger, on_the_way_, std::numeric_limits<std::int64_t>::max()};
  std::int64_t after = std::numeric_limits<std::int64_t>::min();
  for (;;) {
    const auto rows = orders_.page(sale_.name, after, page_size);
    for (const auto& row : rows) all.add(line_of(row, sale_));
    if (rows.size() < page_size) break;
    after = rows.back().id;
  }
  all.finish();
  done_.gaps = ledger.orders() - ledger.in_place();
}

/// Counts what stands in the records now that nobody is admitted, and lets buyers in.
void Recovery::open_gate() {
  constexpr int counts = 5;
  for (int count = 0; count < counts; ++count) {
    const auto before = store_.run({"HGET", keys_.sale, "given_back"}).get();
    std::int64_t units = 0;
    std::size_t orders = 0;
    std::string from;
    do {
      auto page = records_.scan(from, page_size).get();
      if (!page.damaged.empty())
        throw Error{Errc::corrupt,
                    fmt::format("sale '{}': {} has a record that makes no order and that {} knows "
                                "nothing of: {}; look at it, HDEL it, and recover once more",
                                sale_.name, store_.describe(), orders_.describe(),
                                shown(page.damaged.front()))};
      for (const auto& buyer : page.buyers) units += buyer.units;
      orders += page.buyers.size() + page.earlier.size();
      from = std::move(page.next);
    } while (!from.empty());
    const auto there = store_.run({"HLEN", keys_.buyers}).get().as_integer() +
                       store_.run({"HLEN", keys_.requests}).get().as_integer();
    if (static_cast<std::int64_t>(orders) != there) continue;  // HSCAN gave some of them twice
    const auto answer = store_
                            .run(scripts::sale_end_recovery, {keys_.sale},
                                 {token_, this_store_, fmt::to_string(epoch_),
                                  before.is_null() ? "0" : before.as_text(), fmt::to_string(units),
                                  fmt::to_string(orders), fmt::to_string(done_.gaps)},
                                 {})
                            .get()
                            .as_integer();
    if (answer == 1) return;
    if (answer == 0)
      throw Error{Errc::server,
                  fmt::format("sale '{}': another recovery of it has begun; it opens the gate",
                              sale_.name)};
    if (answer == -1)
      throw Error{
          Errc::server,
          fmt::format("sale '{}': {} changed again while the sale was recovered; recover it "
                      "once more",
                      sale_.name, store_.describe())};
  }
  throw Error{Errc::server, fmt::format("sale '{}': orders come and go while they are counted; "
                                        "recover it once more",
                                        sale_.name)};
}

SaleRecovery Recovery::run(OrderStore::Fields kept) {
  orders_.add_sale(sale_.name, sale_.stock);
  close_gate(kept);
  epoch_ = orders_.begin_epoch(sale_.name);
  restore_stock();
  restore_orders();
  restore_returns();
  reconcile_streams();
  send_again();
  count_gaps();
  open_gate();
  return done_;
}

}  // namespace
}  // namespace sluice::sale

sluice::SaleRecovery sluice::recover(Store& store, const std::string& name, OrderStore& orders) {
  sale::check_name(name);
  auto kept = orders.definition(name);
  auto definition = sale::read_definition(store, name).get();
  const sale::SaleKeys keys{name};
  if (store.run({"HEXISTS", keys.sale, "archived"}).get().as_integer() == 1)
    throw Error{Errc::bad_argument,
                fmt::format("sale '{}' is archived: there is nothing to recover", name)};
  if (!definition && kept.empty())
    throw Error{
        Errc::bad_argument,
        fmt::format("neither {} nor {} knows how sale '{}' is defined: create it again as it "
                    "was, and recover it then",
                    store.describe(), orders.describe(), name)};
  if (!definition) definition = sale::definition_of(name, kept);
  return sale::Recovery{store, *definition, orders}.run(std::move(kept));
}
