#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "base/integer.hpp"
#include "base/keyed_hash.hpp"
#include "base/random.hpp"
#include "sale/buckets/shares.hpp"
#include "sale/differences.hpp"
#include "sale/on_the_way.hpp"
#include "sale/order_queue.hpp"
#include "sale/orders.lua.hpp"
#include "sale/records.hpp"
#include "sale/recovery.lua.hpp"
#include "sale/sale.lua.hpp"
#include "sale/settlement.hpp"
#include "sale/streams.hpp"
#include "sale/sums.hpp"
#include "sluice/id.hpp"
#include "sluice/sale_recovery.hpp"

namespace sluice::sale {
namespace {

constexpr std::size_t most_written = 256;  // in one script
constexpr const char* told_by_store = "told by the store: the database had lost it";

/// What the hash of a sale counts, of all orders that the store knows.
struct Count {
  struct Buyer {
    std::int64_t live = 0;
    std::int64_t units = 0;
    std::int64_t orders = 0;
    std::int64_t n = 0;  // of the latest
    std::string written;
  };

  using Units = std::unordered_map<std::int64_t, std::int64_t>;  // of an order's id

  explicit Count(const Units& of_parts) : parts(of_parts) {}
  void add(const SaleOrder& order);
  void add(Buyer& buyer, const SaleOrder& order);
  std::int64_t units_of(const SaleOrder& order) const;

  const Units& parts;  // units that were cancelled while the others stand
  std::int64_t orders = 0;
  std::int64_t sold = 0;
  std::int64_t given_back = 0;
  std::int64_t buyer_gaps = 0;
  std::unordered_map<std::string, Buyer, KeyedHash> buyers;     // with several orders
  std::vector<std::pair<std::string, std::string>> miscounted;  // buyers, and "live units"
  Units ended;
};

/// Those that it still has.
std::int64_t Count::units_of(const SaleOrder& order) const {
  if (!stands(order.state)) return 0;
  const auto part = parts.find(order.id);
  return part == parts.end() ? order.units : difference(order.units, part->second);
}

void Count::add(const SaleOrder& order) {
  ++orders;
  const auto units = units_of(order);
  sold = sum(sold, units);
  given_back = sum(given_back, difference(order.units, units));
  if (!stands(order.state)) ended.emplace(order.id, order.units);
}

void Count::add(Buyer& buyer, const SaleOrder& order) {
  add(order);
  ++buyer.orders;
  if (!stands(order.state)) return;
  ++buyer.live;
  buyer.units = sum(buyer.units, units_of(order));
}

/// What the store counts; 0 where it cannot be that.
std::int64_t figure_or_zero(const Value& text) {
  const auto figure = parse_integer<std::int64_t>(text.as_text()).value_or(0);
  return figure > 0 && figure <= most_units ? figure : 0;
}

class Recovery {
 public:
  /// `mends_definition`: what stands in the store can not be read.
  Recovery(Store& store, const SaleDefinition& sale, OrderStore& orders, bool mends_definition)
      : store_(store),
        sale_(sale),
        keys_(sale_.name),
        orders_(orders),
        records_(store, sale_),
        on_the_way_(sale_),
        mends_definition_(mends_definition) {}

  /// Where it fails, the next one may begin at once.
  SaleRecovery run(const OrderStore::Fields& kept);

 private:
  using Pairs = std::vector<std::pair<std::string, std::string>>;

  SaleRecovery carry_out(OrderStore::Fields kept);
  void make_way() noexcept;
  void close_gate(const OrderStore::Fields& kept);
  void restore_orders();
  void reconcile_streams();
  void restore_earlier_orders();
  void bring_on_the_way();
  bool is_on_the_way(const SaleOrder& order) const;
  void end_again(const SaleOrder& order, const SaleOrder* row);
  void send_again(std::span<const SaleOrder> orders);
  void remove_entries(const std::vector<StreamOrder>& entries);
  Count count();
  bool count(Count& all);
  void count_twins(Count& all);
  void count_buyers(Count& all);
  void restore_returned(const Count& all);
  Pairs stock(const Count& all);
  std::int64_t stock_before();
  Pairs numbers();
  Pairs lane(const OrderStore::Fields& kept);
  void open_gate(const Count& all, const OrderStore::Fields& kept);

  std::int64_t put(std::span<const SaleOrder> orders,
                   Records::Source source = Records::Source::store);
  std::vector<SaleOrder> retaken(std::span<const SaleOrder> rows);
  void read_returns();
  void tell_parts();
  template <class Visit>
  void each_page(Visit&& visit);
  template <class Visit>
  void each_row(Visit&& visit);
  template <class Write>
  void in_parts(const Pairs& pairs, const Write& write);
  std::unordered_map<std::int64_t, SaleOrder> rows_of(std::span<const SaleOrder> orders) const;
  void check_mine(bool is_mine) const;
  void stay_known();

  Store& store_;
  const SaleDefinition sale_;
  const SaleKeys keys_;
  OrderStore& orders_;
  Records records_;
  OnTheWay on_the_way_;
  std::vector<SaleOrder> sent_;
  std::unordered_map<std::string, std::int64_t> returns_;  // of the database
  std::unordered_set<std::string> asked_;                  // retakes, which are not in returns_
  std::vector<std::pair<std::int64_t, std::int64_t>> new_ends_;  // in returns_: id and seq
  Count::Units parts_;
  SaleRecovery done_;

  const bool mends_definition_;
  const std::string token_ = random_hex_128();
  std::string this_store_;
  std::int64_t epoch_ = 0;        // of the store, before
  std::int64_t store_stock_ = 0;  // units, before
  std::int64_t store_changes_ = 0;
  bool is_closed_ = false;
  SteadyTime known_since_ = store_.clock().steady();
};

/// No worker begins one of its own while this one goes on.
void Recovery::stay_known() {
  constexpr std::chrono::seconds often_enough{5};
  if (store_.clock().steady() < known_since_ + often_enough) return;
  known_since_ = store_.clock().steady();
  store_.run({"PEXPIRE", keys_.recovery, "20000"}, repeatable).get();
}

void Recovery::check_mine(bool is_mine) const {
  if (!is_mine)
    throw Error{
        Errc::server,
        fmt::format("sale '{}': another recovery of it has begun; it opens the gate", sale_.name)};
}

/// Lane, birth and end of the sale are those of the database: of a sale that was lost and made
/// again, too. The definition is where the store's can not be read.
void Recovery::close_gate(const OrderStore::Fields& kept) {
  Pairs fields;
  const auto is_always = [&](const auto& field) {
    if (mends_definition_) return field.first != "archived";
    return field.first == "lane" || field.first == "born" || field.first == "closed" ||
           field.first == "database";
  };
  if (std::ranges::find(kept, "database", [](const auto& field) { return field.first; }) ==
      kept.end())
    fields.emplace_back("database", database_word(orders_));
  std::ranges::copy_if(kept, std::back_inserter(fields), is_always);
  const auto always = fmt::to_string(fields.size());
  std::ranges::copy_if(kept, std::back_inserter(fields), [&](const auto& field) {
    return !is_always(field) && field.first != "archived";
  });
  fields.emplace_back("capacity", fmt::to_string(sale_.stock));
  std::vector<std::string_view> args{group, token_, always};
  for (const auto& [field, value] : fields) args.insert(args.end(), {field, value});
  const std::vector<std::string_view> names{keys_.sale, keys_.orders, keys_.recovery};
  const auto reply =
      store_.run(scripts::sale_begin_recovery, Words{names}, Words{args}, repeatable).get();
  const auto& there = reply.as_items();
  this_store_ = there.at(0).as_text();
  done_.made_again = there.at(1).as_integer() == 1;
  store_stock_ = figure_or_zero(there.at(2));
  store_changes_ = figure_or_zero(there.at(3));
  epoch_ = figure_or_zero(there.at(4));
  is_closed_ = !there.at(5).as_text().empty();
}

std::int64_t Recovery::put(std::span<const SaleOrder> orders, Records::Source source) {
  std::int64_t written = 0;
  for (; !orders.empty(); orders = orders.subspan(std::min(most_written, orders.size()))) {
    const auto some = orders.first(std::min(most_written, orders.size()));
    written += records_.put(some, token_, source).get();
  }
  return written;
}

template <class Visit>
void Recovery::each_row(Visit&& visit) {
  std::int64_t after = std::numeric_limits<std::int64_t>::min();
  for (;;) {
    const auto rows = orders_.page(sale_.name, after, page_size);
    visit(rows);
    stay_known();
    if (rows.size() < page_size) return;
    after = rows.back().id;
  }
}

template <class Visit>
void Recovery::each_page(Visit&& visit) {
  std::string from;
  do {
    auto page = records_.scan(from, page_size).get();
    visit(page);
    stay_known();
    from = std::move(page.next);
  } while (!from.empty());
}

template <class Write>
void Recovery::in_parts(const Pairs& pairs, const Write& write) {
  for (std::size_t at = 0; at < pairs.size(); at += most_written) {
    std::vector<std::string_view> args{token_};
    for (auto i = at; i < std::min(at + most_written, pairs.size()); ++i)
      args.insert(args.end(), {pairs[i].first, pairs[i].second});
    write(Words{args});
    stay_known();
  }
}

std::unordered_map<std::int64_t, SaleOrder> Recovery::rows_of(
    std::span<const SaleOrder> orders) const {
  std::vector<std::int64_t> ids;
  for (const auto& order : orders) ids.push_back(order.id);
  std::unordered_map<std::int64_t, SaleOrder> rows;
  for (auto& row : orders_.find(sale_.name, ids)) rows.emplace(row.id, std::move(row));
  return rows;
}

void Recovery::restore_orders() {
  each_row([&](const std::vector<SaleOrder>& rows) {
    done_.in_database += static_cast<std::int64_t>(rows.size());
    done_.restored += put(rows, Records::Source::database);
    put(retaken(rows), Records::Source::retake);
  });
}

/// Orders that had expired, were paid late, and have their units again: the store has lost that.
/// Where it has a later return instead, the database has lost that.
std::vector<SaleOrder> Recovery::retaken(std::span<const SaleOrder> rows) {
  std::vector<SaleOrder> paid;
  std::vector<Wish> wishes;
  for (const auto& row : rows) {
    if (row.state != OrderState::paid) continue;
    paid.push_back(row);
    wishes.push_back({row.buyer, row.request});
  }
  std::vector<SaleOrder> again;
  const auto records = records_.find(std::span<const Wish>{wishes}).get();
  for (std::size_t i = 0; i < paid.size(); ++i) {
    if (!records[i] || stands(records[i]->state)) continue;
    std::int64_t last = 0;
    bool is_retake = false;
    for (const auto& back : orders_.returns(sale_.name, paid[i].id - 1, 1, false)) {
      if (back.order.id != paid[i].id) break;
      last = back.seq;
      if (back.ends) is_retake = back.units < 0;  // a part says nothing of the others
    }
    std::vector<std::string> later;
    for (auto seq = last + 1; seq <= last + 10; ++seq)
      later.push_back(fmt::format("{}:{}", paid[i].id, seq));
    std::vector<std::string_view> words{"HMGET", keys_.returned};
    words.insert(words.end(), later.begin(), later.end());
    const auto reply = store_.run(Words{words}).get();
    const bool is_later =
        std::ranges::any_of(reply.as_items(), [](const Value& units) { return !units.is_null(); });
    if (is_retake && !is_later) again.push_back(paid[i]);
  }
  return again;
}

/// Parts of orders that were cancelled, and that the database has lost.
void Recovery::tell_parts() {
  read_returns();
  const auto most = fmt::to_string(page_size);
  std::string cursor = "0";
  bool has_told = false;
  do {
    const auto reply = store_.run({"HSCAN", keys_.returned, cursor, "COUNT", most}).get();
    const auto& fields = reply.as_items().at(1).as_items();
    for (std::size_t i = 0; i + 1 < fields.size(); i += 2) {
      const auto& name = fields[i].as_text();
      const auto units = parse_integer<std::int64_t>(fields[i + 1].as_text()).value_or(0);
      const auto id = leading_number<std::int64_t>(name);
      if (units < 1 || returns_.contains(name)) continue;
      const auto row = orders_.find(sale_.name, std::span{&id, 1});
      if (row.empty() || !stands(row.front().state) || units >= row.front().units) continue;
      orders_.payments().cancel_units(sale_.name, id, units, "recovered " + name, told_by_store);
      has_told = true;
    }
    stay_known();
    cursor = reply.as_items().at(0).as_text();
  } while (cursor != "0");
  if (has_told) read_returns();
}

/// As the store is to have them. A retake that was asked for is asked for again; one that was
/// refused stays so.
void Recovery::read_returns() {
  returns_.clear();
  asked_.clear();
  new_ends_.clear();
  parts_.clear();
  std::int64_t after = std::numeric_limits<std::int64_t>::min();
  for (;;) {
    const auto page = orders_.returns(sale_.name, after, page_size, false);
    for (const auto& back : page) {
      if (back.units < 0 && !back.done) {
        asked_.insert(fmt::format("{}:{}", back.order.id, back.seq));
        continue;
      }
      if (back.ends && !back.done) new_ends_.emplace_back(back.order.id, back.seq);
      returns_.emplace(fmt::format("{}:{}", back.order.id, back.seq), back.units);
      if (!back.ends) parts_[back.order.id] = sum(parts_[back.order.id], back.units);
    }
    stay_known();
    if (page.size() < page_size) return;
    after = page.back().order.id;
  }
}

/// Orders of the streams that the records have lost are entered there; entries of orders in whose
/// place the database has another are removed.
void Recovery::reconcile_streams() {
  read_streams(store_, keys_, [&](const std::vector<StreamOrder>& entries) {
    std::vector<Wish> wishes;
    std::vector<SaleOrder> all;
    for (const auto& entry : entries) wishes.push_back({entry.order.buyer, entry.order.request});
    const auto records = records_.find(std::span<const Wish>{wishes}).get();
    for (const auto& record : records)
      if (record) all.push_back(*record);
    for (const auto& entry : entries) all.push_back(entry.order);
    const auto rows = rows_of(all);
    std::vector<SaleOrder> lost;
    std::vector<StreamOrder> void_entries;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const auto& order = entries[i].order;
      if (!records_.refuse_number(order).empty()) continue;  // forged: a dead letter
      if (!records[i]) lost.push_back(order);
      const bool is_other = records[i] && fingerprint_of(*records[i]) != fingerprint_of(order);
      if (is_other && rows.contains(records[i]->id)) {
        void_entries.push_back(entries[i]);
      } else {
        on_the_way_.add(order);
        done_.on_the_way += !rows.contains(order.id);
      }
    }
    if (!lost.empty()) {  // one that ended before it came into a database that is lost
      std::vector<std::string> names;
      for (const auto& order : lost) names.push_back(fmt::format("{}:1", order.id));
      std::vector<std::string_view> words{"HMGET", keys_.returned};
      words.insert(words.end(), names.begin(), names.end());
      const auto returned = store_.run(Words{words}).get();
      for (std::size_t i = 0; i < lost.size(); ++i)
        if (!returned.as_items().at(i).is_null()) lost[i].state = OrderState::cancelled;
    }
    put(lost);
    remove_entries(void_entries);
    stay_known();
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

/// Where the record of a buyer is lost alone, or older than they are.
void Recovery::restore_earlier_orders() {
  each_page([&](const Records::Page& page) { put(page.earlier); });
}

/// What the store knows and the database does not: orders that are on no way are sent again, ends
/// are told.
void Recovery::bring_on_the_way() {
  each_page([&](Records::Page& page) {
    std::vector<SaleOrder> orders = std::move(page.earlier);
    for (auto& buyer : page.buyers) orders.push_back(std::move(buyer.latest));
    const auto rows = rows_of(orders);
    std::vector<SaleOrder> lost;
    for (auto& order : orders) {
      const auto row = rows.find(order.id);
      const bool is_there =
          row != rows.end() && fingerprint_of(row->second) == fingerprint_of(order);
      if (!stands(order.state)) {
        if (!is_there || stands(row->second.state))
          end_again(order, is_there ? &row->second : nullptr);
      } else if (!is_there && !is_on_the_way(order)) {
        lost.push_back(std::move(order));
      }
    }
    send_again(lost);
  });
  done_.sent_again = static_cast<std::int64_t>(sent_.size());
  for (const auto& order : sent_) on_the_way_.add(order);
  on_the_way_.sort();
}

/// This one: what somebody wrote into the stream in its place brings it nowhere.
bool Recovery::is_on_the_way(const SaleOrder& order) const {
  const auto* const line = on_the_way_.find(order.id);
  return line && line->fingerprint == fingerprint_of(order);
}

/// Where the database has lost the payment, too, the order ends unpaid.
void Recovery::end_again(const SaleOrder& order, const SaleOrder* row) {
  const auto state = order.state == OrderState::refunding ? OrderState::cancelled : order.state;
  if (!row)
    orders_.insert_ended(sale_.name, order, state, told_by_store, epoch_);
  else if (row->state == OrderState::paid)
    orders_.payments().cancel_units(sale_.name, order.id, 0, "recovered", told_by_store);
  else
    orders_.end_order(sale_.name, order.id, state, told_by_store);
  ++done_.ended_again;
}

void Recovery::send_again(std::span<const SaleOrder> orders) {
  Pairs pairs;
  for (const auto& order : orders) {
    pairs.emplace_back(text_of(order), order.buyer.value);
    sent_.push_back(order);
  }
  in_parts(pairs, [&](Words args) {
    const std::vector<std::string_view> names{keys_.sale, keys_.orders};
    const auto sent = store_.run(scripts::sale_send_again, Words{names}, args).get();
    check_mine(sent.as_integer() == 1);
  });
}

// --- the counters, made anew from what is known now ---

Count Recovery::count() {
  constexpr int counts = 5;
  for (int i = 0; i < counts; ++i)
    if (Count all{parts_}; count(all)) return all;
  throw Error{Errc::server, fmt::format("sale '{}': orders come and go while they are counted; "
                                        "recover it once more",
                                        sale_.name)};
}

/// False: HSCAN gave some orders twice.
bool Recovery::count(Count& all) {
  each_page([&](const Records::Page& page) {
    if (!page.damaged.empty())
      throw Error{Errc::corrupt,
                  fmt::format("sale '{}': {} has a record that makes no order and that {} knows "
                              "nothing of: {}; look at it, HDEL it, and recover once more",
                              sale_.name, store_.describe(), orders_.describe(),
                              shown(page.damaged.front()))};
    for (const auto& record : page.buyers) {
      Count::Buyer alone;
      const auto& latest = record.latest;
      auto& buyer = latest.n > 1 ? all.buyers[latest.buyer.value] : alone;
      all.add(buyer, latest);
      buyer.n = latest.n;
      buyer.written = fmt::format("{} {}", record.live, record.units);
      const auto right = fmt::format("{} {}", buyer.live, buyer.units);
      if (latest.n == 1 && buyer.written != right)
        all.miscounted.emplace_back(latest.buyer.value, right);
    }
    for (const auto& order : page.earlier) all.add(all.buyers[order.buyer.value], order);
  });
  count_twins(all);
  count_buyers(all);
  return all.orders == store_.run({"HLEN", keys_.buyers}).get().as_integer() +
                           store_.run({"HLEN", keys_.requests}).get().as_integer();
}

/// Buyers who have a first order twice, as their sale was lost and made again: their latest order
/// was taken for the only one.
void Recovery::count_twins(Count& all) {
  std::vector<BuyerId> twins;
  for (const auto& [name, buyer] : all.buyers)
    if (buyer.n == 0) twins.push_back({name});
  std::erase_if(all.miscounted, [&](const auto& one) { return all.buyers.contains(one.first); });
  for (const auto& twin : twins) {
    const auto record = records_.find(std::span<const BuyerId>{&twin, 1}).get().front();
    if (!record) continue;
    auto& buyer = all.buyers[twin.value];
    Count{parts_}.add(buyer, record->latest);  // it stands in the sums already
    buyer.n = record->latest.n;
    buyer.written = fmt::format("{} {}", record->live, record->units);
  }
}

void Recovery::count_buyers(Count& all) {
  for (const auto& [name, buyer] : all.buyers) {
    const auto right = fmt::format("{} {}", buyer.live, buyer.units);
    if (buyer.written != right) all.miscounted.emplace_back(name, right);
    all.buyer_gaps += std::max<std::int64_t>(buyer.n - buyer.orders, 0);
  }
}

/// Each is a return of the database, or of an order that it could not take.
void Recovery::restore_returned(const Count& all) {
  auto right = returns_;
  std::unordered_set<std::int64_t> known;
  for (const auto& [name, units] : returns_) known.insert(leading_number<std::int64_t>(name));
  for (const auto& [id, units] : all.ended)
    if (!known.contains(id)) right.emplace(fmt::format("{}:1", id), units);
  // One that ended since its row was read stands in the records that were counted: the store gets
  // its units back when the gate is open.
  for (const auto& [id, seq] : new_ends_)
    if (!all.ended.contains(id)) right.erase(fmt::format("{}:{}", id, seq));
  Pairs wrong;
  const auto most = fmt::to_string(page_size);
  std::string cursor = "0";
  do {
    const auto reply = store_.run({"HSCAN", keys_.returned, cursor, "COUNT", most}).get();
    const auto& fields = reply.as_items().at(1).as_items();
    for (std::size_t i = 0; i + 1 < fields.size(); i += 2) {
      const auto& name = fields[i].as_text();
      const auto found = right.find(name);
      if (fields[i + 1].as_text() == refused_units && asked_.contains(name)) continue;
      if (found == right.end())
        wrong.emplace_back(name, "0");
      else if (fields[i + 1].as_text() == fmt::to_string(found->second))
        right.erase(found);
    }
    cursor = reply.as_items().at(0).as_text();
  } while (cursor != "0");
  for (const auto& [name, units] : right) wrong.emplace_back(name, fmt::to_string(units));
  in_parts(wrong, [&](Words args) {
    const std::vector<std::string_view> names{keys_.sale, keys_.returned};
    const auto written = store_.run(scripts::sale_set_returned, Words{names}, args).get();
    check_mine(written.as_integer() >= 0);
    done_.given_back += written.as_integer();
  });
}

/// As the store knew it.
std::int64_t Recovery::stock_before() {
  if (!sale_.bucket) return store_stock_;
  const auto added = store_.run({"HGET", keys_.sale, "added"}).get();
  return sum(sale_.stock,
             added.is_null() ? 0 : parse_integer<std::int64_t>(added.as_text()).value_or(0));
}

/// The stock is what the database says, unless the store knows of later changes. A bucket has what
/// is sold, until its share is restored.
Recovery::Pairs Recovery::stock(const Count& all) {
  if (store_changes_ > orders_.last_stock_change(sale_.name))
    orders_.note_stock_change(sale_.name, store_changes_, stock_before());
  const auto totals = orders_.totals(sale_.name);  // a pending change is settled behind the gate
  if (sale_.bucket)
    return {{"changes", fmt::to_string(totals.last_change)},
            {"added", fmt::to_string(totals.applied)},
            {"capacity", fmt::to_string(all.sold)}};
  return {{"changes", fmt::to_string(totals.last_change)},
          {"capacity", fmt::to_string(sum(totals.stock.initial, totals.applied))}};
}

/// Those of the last order. Gaps are where orders are lost that stood between others: an earlier
/// batch may get lost with a server while a later one has reached the database. What the database
/// can never take has no part in that, but that its number is not given once more.
Recovery::Pairs Recovery::numbers() {
  OnTheWay good{sale_};
  std::int64_t day = 0;
  std::int64_t taken = 0;
  const auto take = [&](const LedgerLine& line) {
    if (line.day > day) day = line.day, taken = 0;
    if (line.day == day) taken = std::max(taken, line.sequence);
  };
  std::optional<SaleOrder> last;
  const auto see = [&](const SaleOrder& order) {
    if (!last || order.id > last->id) last = order;
  };
  each_page([&](Records::Page& page) {
    std::vector<SaleOrder> orders = std::move(page.earlier);
    for (auto& buyer : page.buyers) orders.push_back(std::move(buyer.latest));
    const auto rows = rows_of(orders);
    std::vector<SaleOrder> others;
    for (const auto& order : orders) {
      take(line_of(order, sale_));
      if (rows.contains(order.id))
        see(order);
      else
        others.push_back(order);
    }
    const auto taken_by_others = orders_.are_taken(sale_.name, others);
    for (std::size_t i = 0; i < others.size(); ++i) {
      if (taken_by_others[i]) continue;
      good.add(others[i]);
      see(others[i]);
    }
  });
  good.sort();
  Ledger ledger;
  OrdersById all{ledger, good, std::numeric_limits<std::int64_t>::max()};
  each_row([&](const std::vector<SaleOrder>& rows) {
    for (const auto& row : rows) all.add(line_of(row, sale_));
  });
  all.finish();
  done_.gaps = ledger.orders() - ledger.in_place();
  Pairs fields{{"gaps", fmt::to_string(done_.gaps)}};
  if (day > 0) {
    fields.emplace_back("day", fmt::to_string(day));
    fields.emplace_back("taken", fmt::to_string(taken));
  }
  if (!last) return fields;
  const auto parts = IdWorker::parts(last->id);
  fields.emplace_back("last", fmt::to_string(last->issued_at.time_since_epoch().count()));
  fields.emplace_back("second", fmt::to_string(last->id >> 32));
  fields.emplace_back("sequence", fmt::to_string(parts.sequence));
  return fields;
}

/// The lane of the sale, or a new one where the store, which had lost it, has given it away.
Recovery::Pairs Recovery::lane(const OrderStore::Fields& kept) {
  const auto found = std::ranges::find(kept, "lane", [](const auto& field) { return field.first; });
  if (found == kept.end()) {
    store_.run({"HSETNX", types_key, sale_.number_type, sale_.name}, repeatable).get();
    return {};
  }
  const auto& lane = found->second;
  list_again(store_, sale_.name, sale_.number_type, lane);
  const auto owners = store_.run({"ZRANGEBYSCORE", names_key, lane, lane}).get();
  const bool is_taken = std::ranges::any_of(
      owners.as_items(), [&](const Value& name) { return name.as_text() != sale_.name; });
  if (!is_taken) return {};
  const auto other = take_lane(store_, sale_.name, true).get();
  orders_.change_definition(sale_.name, "lane", other);
  return {{"lane", other}};
}

void Recovery::open_gate(const Count& all, const OrderStore::Fields& kept) {
  Pairs fields{{"sold", fmt::to_string(all.sold)},
               {"orders", fmt::to_string(all.orders)},
               {"given_back", fmt::to_string(all.given_back)},
               {"buyer_gaps", fmt::to_string(all.buyer_gaps)},
               {"epoch", fmt::to_string(std::max(epoch_, orders_.epoch(sale_.name)))}};
  for (const auto& more : {stock(all), numbers(), lane(kept)})
    fields.insert(fields.end(), more.begin(), more.end());
  std::vector<std::string_view> args{token_, this_store_};
  for (const auto& [field, value] : fields) args.insert(args.end(), {field, value});
  const std::vector<std::string_view> names{keys_.sale, keys_.recovery};
  const auto answer =
      store_.run(scripts::sale_end_recovery, Words{names}, Words{args}, {}).get().as_integer();
  check_mine(answer != 0);
  if (answer < 0)
    throw Error{Errc::server,
                fmt::format("sale '{}': {} changed again while the sale was recovered; recover it "
                            "once more",
                            sale_.name, store_.describe())};
}

SaleRecovery Recovery::run(const OrderStore::Fields& kept) {
  try {
    return carry_out(kept);
  } catch (...) {
    make_way();
    throw;
  }
}

void Recovery::make_way() noexcept {
  try {
    store_.run(scripts::sale_drop_recovery, {keys_.recovery}, {token_}, repeatable).get();
  } catch (const std::exception&) {  // its mark ends by itself
  }
}

SaleRecovery Recovery::carry_out(OrderStore::Fields kept) {
  orders_.add_sale(sale_.name, sale_.stock);
  close_gate(kept);
  enter(store_, sale_, orders_);  // a database that is new, or older, learns the definition
  kept = orders_.definition(sale_.name);
  if (is_closed_) orders_.keep_definition(sale_.name, {{"closed", "1"}});
  epoch_ = orders_.begin_epoch(sale_.name, epoch_);
  restore_orders();
  reconcile_streams();
  restore_earlier_orders();
  bring_on_the_way();
  tell_parts();
  const auto all = count();
  in_parts(all.miscounted, [&](Words args) {
    const std::vector<std::string_view> names{keys_.sale, keys_.buyers};
    check_mine(
        store_.run(scripts::sale_recount, Words{names}, args, repeatable).get().as_integer() == 1);
  });
  restore_returned(all);
  open_gate(all, kept);
  // Where another bucket is lost, too, the last of them restores all shares.
  if (sale_.bucket && !restore_shares(store_, sale_)) return done_;
  Settlement{store_, sale_, orders_}.settle();  // what was begun and not done before
  return done_;
}

}  // namespace
}  // namespace sluice::sale

std::optional<sluice::SaleRecovery> sluice::sale::recover_if_needed(Store& store,
                                                                    const std::string& name,
                                                                    OrderStore& orders) {
  const SaleKeys keys{name};
  const auto needed =
      store.run(scripts::sale_needs_recovery, {keys.sale, keys.recovery}, {}, repeatable).get();
  if (needed.as_integer() == 0 || orders.definition(name).empty()) return std::nullopt;
  constexpr std::int64_t share_alone = 2;
  if (needed.as_integer() == share_alone) {
    if (const auto bucket = read_definition(store, name).get()) restore_shares(store, *bucket);
    return std::nullopt;
  }
  return recover(store, name, orders);
}

sluice::SaleRecovery sluice::recover(Store& store, const std::string& name, OrderStore& orders,
                                     RecoveryOptions options) {
  sale::check_name(name);
  const auto kept = orders.definition(name);
  std::optional<SaleDefinition> definition;
  try {
    definition = sale::read_definition(store, name).get();
  } catch (const Error& damaged) {
    if (damaged.errc() != Errc::corrupt || kept.empty()) throw;
  }
  const bool is_readable = definition.has_value();
  const sale::SaleKeys keys{name};
  const auto known = store.run({"HMGET", keys.sale, "archived", "database"}).get();
  if (!known.as_items().at(0).is_null())
    throw Error{Errc::bad_argument,
                fmt::format("sale '{}' is archived: there is nothing to recover", name)};
  if (!definition && kept.empty())
    throw Error{
        Errc::bad_argument,
        fmt::format("neither {} nor {} knows how sale '{}' is defined: create it again as it "
                    "was, and recover it then",
                    store.describe(), orders.describe(), name)};
  if (!definition) definition = sale::definition_of(name, kept);
  const auto& database = known.as_items().at(1);
  if (!database.is_null() && !options.new_database &&
      !sale::is_same_database(database.as_text(), sale::database_word(orders)))
    sale::attach(store, *definition, orders);  // says which
  const auto done = sale::Recovery{store, *definition, orders, !is_readable}.run(kept);
  const bool was_archived =
      std::ranges::any_of(kept, [](const auto& field) { return field.first == "archived"; });
  if (was_archived && done.on_the_way == 0) Sale::load(store, name).get()->archive(orders);
  return done;
}
