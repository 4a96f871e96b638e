// An audit walks through the streams, then through the store's records, then through the database,
// each a page at a time, and looks up what it finds on the other side. Ids rise with each order, so
// the sale's counters, read first, say which orders they count: those up to the last id. Later ones
// are compared, too, but not counted. What the first look does not find may be on its way from one
// place to another: it gets a second look.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/integer.hpp"
#include "base/keyed_hash.hpp"
#include "sale/audit.lua.hpp"
#include "sale/differences.hpp"
#include "sale/ledger.hpp"
#include "sale/on_the_way.hpp"
#include "sale/order_queue.hpp"
#include "sale/records.hpp"
#include "sale/streams.hpp"
#include "sale/sums.hpp"
#include "sluice/id.hpp"
#include "sluice/sale_audit.hpp"
#include "store/info.hpp"

namespace sluice::sale {
namespace {

constexpr int looks = 3;
constexpr int looks_at_stock = 10;

// The checks that count differences.
constexpr std::string_view poison = "entries_that_make_no_order";
constexpr std::string_view of_nobody = "entries_handed_to_nobody";
constexpr std::string_view without_entry = "pending_entries_that_are_gone";
constexpr std::string_view early = "pending_entries_not_handed_out";
constexpr std::string_view entries_differ = "orders_of_the_stream_that_differ";
constexpr std::string_view nowhere = "orders_admitted_but_nowhere";
constexpr std::string_view strangers = "orders_nobody_was_admitted_for";
constexpr std::string_view orders_differ = "orders_of_the_database_that_differ";
constexpr std::string_view buyers_differ = "buyers_that_differ";
constexpr std::string_view above_limit = "buyers_above_limit";
constexpr std::string_view damaged = "records_that_make_no_order";
constexpr std::string_view returns_differ = "returns_that_differ";
constexpr std::string_view definition_differs = "definition_that_differs";
constexpr std::string_view counters_differ = "counters_that_differ";
constexpr std::string_view expires = "keys_that_expire";
constexpr std::string_view unlisted = "lists_of_sales_that_differ";

/// The fields of the sale's hash that are numbers, and what each may be: written without zeros in
/// front.
struct CounterRow {
  std::string_view name;
  std::int64_t least;
  std::int64_t most;
  bool always;  ///< also in a sale that has sold nothing
};

constexpr CounterRow counter_rows[] = {
    {"capacity", 0, most_units, true},
    {"sold", 0, most_units, true},
    {"orders", 0, most_units, true},
    {"lane", 1, 4095, true},
    {"born", 1, end_of_time, true},
    {"given_back", 0, most_units, false},
    {"last", 1, end_of_time, false},
    {"day", 1970'01'01, 9999'12'31, false},
    {"taken", 0, most_units, false},
    {"second", 0, 0x7fff'ffff, false},
    {"sequence", 0, 0xffff'ffff, false},
    {"changes", 0, most_units, false},
    {"refused", 1, most_units, false},
    {"epoch", 0, most_units, false},
    {"gaps", 0, most_units, false},
    {"closed", 1, 1, false},
    {"archived", 1, end_of_time, false},
    {"buyer_gaps", 0, most_units, false},
    {"added", -most_units, most_units, false},
};

/// The hash of the sale, read at one instant.
class Counters {
 public:
  void read(Store& store, const SaleKeys& keys) {
    const auto reply = store.run({"HGETALL", keys.sale}).get();
    fields_.clear();
    const auto& items = reply.as_items();
    for (std::size_t i = 0; i + 1 < items.size(); i += 2)
      fields_[items[i].as_text()] = items[i + 1].as_text();
  }

  bool exist() const { return fields_.contains("capacity"); }
  bool has(const std::string& name) const { return fields_.contains(name); }
  const std::string& text(const std::string& name) const {
    static const std::string none;
    const auto found = fields_.find(name);
    return found == fields_.end() ? none : found->second;
  }
  bool is_right(const CounterRow& row) const {
    const auto& written = text(std::string{row.name});
    const auto number = parse_integer<std::int64_t>(written);
    return number && *number >= row.least && *number <= row.most &&
           fmt::to_string(*number) == written;
  }
  /// 0: it is not there, or not right.
  std::int64_t number(const std::string& name) const {
    const auto* const row = std::ranges::find(counter_rows, name, &CounterRow::name);
    return is_right(*row) ? *parse_integer<std::int64_t>(text(name)) : 0;
  }
  /// Of the last order that these counters count; -1: there is none.
  std::int64_t last_id() const {
    if (text("second").empty()) return -1;
    return number("second") << 32 | number("sequence");
  }

 private:
  std::map<std::string, std::string> fields_;
};

class Auditor {
 public:
  Auditor(Store& store, const Sale& sale, OrderStore& orders, AuditOptions options)
      : store_(store),
        sale_(sale.definition()),
        keys_(sale_.name),
        orders_(orders),
        records_(store, sale_),
        differences_(options.named) {}

  SaleAudit run();

 private:
  /// Name, figure, expected; ok when both are the same.
  void check(std::string_view name, std::int64_t figure, std::int64_t expected,
             std::string detail) {
    audit_.checks.push_back({.name = std::string{name},
                             .ok = figure == expected,
                             .figure = figure,
                             .expected = expected,
                             .detail = std::move(detail)});
  }
  /// So many differences; `detail` where there is none.
  void check(std::string_view name, std::string detail) {
    const auto found = differences_.count(name);
    check(name, found, 0, found == 0 ? std::move(detail) : differences_.summary(name));
  }

  void walk_streams();
  void compare_entries(const std::vector<StreamOrder>& entries);
  void walk_group();

  void walk_records();
  void look_up(const Records::Page& page);
  void look_up(const SaleOrder& record, const SaleOrder* row);
  void look_again();
  void compare_buyers(const std::vector<BuyerRecord>& buyers);
  void check_limits(const BuyerRecord& record);
  void look_at_buyers_again();
  std::int64_t places_left(const BuyerRecord& record, const BuyerTotals* in_database);
  bool fits(const BuyerRecord& record, const BuyerTotals* in_database, bool say);
  void count_elsewhere(BuyerTotals& his);

  template <class Visit>
  void walk_rows(Visit&& visit);
  void compare_rows(const std::vector<SaleOrder>& rows);
  bool is_same(const SaleOrder& row, const SaleOrder& record) const;
  bool compare(const SaleOrder& record, SaleOrder row);
  void look_at_row_again(const SaleOrder& seen);
  void read_ending();
  void read_parts();
  template <class Visit>
  void each_return(bool only_pending, Visit&& visit);
  void walk_returns();
  void walk_returned();
  bool is_return(const std::string& name, const std::string& units);

  void compare_definition();
  void compare_counters();
  void compare_stock();
  void compare_list();
  void look_for_expiry();
  void check_gate();
  void report();
  void report_common();
  void report_numbers();
  void report_database();
  void report_money();
  void report_archived();
  void tell_what_is_unknown();

  Store& store_;
  const SaleDefinition sale_;
  const SaleKeys keys_;
  OrderStore& orders_;
  Records records_;
  Differences differences_;
  SaleAudit audit_;

  Counters counters_;
  std::int64_t cut_ = -1;  // the last id that they count
  Ledger ledger_;
  OnTheWay on_the_way_{sale_};
  std::vector<SaleOrder> not_found_;  // neither there nor on their way, at the first look
  std::vector<BuyerId> odd_buyers_;
  std::unordered_set<std::int64_t> ending_;  // the database has ended them, the store has not
  std::unordered_map<std::int64_t, std::int64_t> parts_;  // units of theirs that were cancelled
  std::unordered_set<std::string> returns_;  // all returns of the database, as the store has them
  std::unordered_set<std::string, KeyedHash> ending_buyers_;
  DatabaseTotals database_;
  bool in_database_ = true;  // the database knows the sale
  std::optional<SaleOrder> last_order_;
  bool group_is_there_ = true;
};

// --- the streams ---

void Auditor::walk_streams() {
  const auto found = read_streams(store_, keys_, [&](const auto& page) {
    for (const auto& entry : page) {
      on_the_way_.add(entry.order);
      if (entry.order.id == cut_) last_order_ = entry.order;
    }
    compare_entries(page);
  });
  on_the_way_.sort();
  audit_.dead = found.dead;
  for (std::int64_t i = 0; i < found.poison; ++i) {
    const auto at = static_cast<std::size_t>(i);
    differences_.add(poison, at < found.places.size() ? found.places[at] : "another entry",
                     "content", "", "no order");
  }
}

void Auditor::compare_entries(const std::vector<StreamOrder>& entries) {
  std::vector<Wish> wishes;
  wishes.reserve(entries.size());
  for (const auto& entry : entries) wishes.push_back({entry.order.buyer, entry.order.request});
  auto records = records_.find(std::span<const Wish>{wishes}).get();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto& order = entries[i].order;
    if (!records[i]) {
      differences_.add(entries_differ, place_of(order), "order", "", shown(order.number));
      continue;
    }
    // It may have reached the database and ended there, before its entry was acknowledged.
    records[i]->state = OrderState::awaiting;
    differences_.compare(entries_differ, *records[i], order);
  }
}

void Auditor::walk_group() {
  const auto most = fmt::to_string(page_size);
  std::string from = "-";
  do {
    const auto reply =
        store_.run(scripts::sale_examine, {keys_.orders}, {group, from, most}, repeatable).get();
    group_is_there_ = !reply.is_null();
    if (!group_is_there_) return;
    const auto& parts = reply.as_items();
    const auto note = [&](std::size_t part, std::string_view name, const char* in_group) {
      for (const auto& id : parts.at(part).as_items())
        differences_.add(name, "entry " + id.as_text(), "pending", in_group, "the stream's state");
    };
    note(1, of_nobody, "for nobody");
    note(2, without_entry, "without an entry");
    note(3, early, "before it was handed out");
    from = parts.at(0).as_text();
  } while (!from.empty());
}

// --- the store's records, looked up in the database ---

void Auditor::walk_records() {
  std::string from;
  do {
    auto page = records_.scan(from, page_size).get();
    look_up(page);
    compare_buyers(page.buyers);
    for (auto& place : page.damaged)
      differences_.add(damaged, shown(place), "record", "no order", "");
    from = std::move(page.next);
  } while (!from.empty());
}

void Auditor::look_up(const Records::Page& page) {
  std::vector<std::int64_t> ids;
  for (const auto& buyer : page.buyers) ids.push_back(buyer.latest.id);
  for (const auto& order : page.earlier) ids.push_back(order.id);
  std::unordered_map<std::int64_t, SaleOrder> rows;
  for (auto& row : orders_.find(sale_.name, ids)) rows.emplace(row.id, std::move(row));
  const auto row_of = [&](const SaleOrder& order) {
    const auto found = rows.find(order.id);
    return found == rows.end() ? nullptr : &found->second;
  };
  for (const auto& buyer : page.buyers) look_up(buyer.latest, row_of(buyer.latest));
  for (const auto& order : page.earlier) look_up(order, row_of(order));
}

void Auditor::look_up(const SaleOrder& record, const SaleOrder* row) {
  if (row) {  // is compared whole from the other side, if its buyer and request lead there
    if (row->buyer != record.buyer || row->request != record.request) compare(record, *row);
    return;
  }
  if (const auto* const line = on_the_way_.find(record.id)) {
    if (line->fingerprint != fingerprint_of(record))
      differences_.add(entries_differ, place_of(record), "order", shown(record.number),
                       "another one with its id");
  } else {
    not_found_.push_back(record);
  }
}

/// Those that are there now had moved. Order by order: an order goes from the dead letters to the
/// stream, and from there to the database.
void Auditor::look_again() {
  if (not_found_.empty()) return;
  OnTheWay moved{sale_};
  read_streams(store_, keys_, [&](const auto& page) {
    for (const auto& entry : page) moved.add(entry.order);
  });
  moved.sort();
  std::erase_if(not_found_, [&](const SaleOrder& order) { return moved.find(order.id); });
  for (std::size_t at = 0; at < not_found_.size(); at += page_size) {
    const auto end = std::min(at + page_size, not_found_.size());
    std::vector<std::int64_t> ids;
    for (auto i = at; i < end; ++i) ids.push_back(not_found_[i].id);
    std::unordered_set<std::int64_t> there;
    for (const auto& row : orders_.find(sale_.name, ids)) there.insert(row.id);
    for (auto i = at; i < end; ++i)
      if (!there.contains(not_found_[i].id))
        differences_.add(nowhere, place_of(not_found_[i]), "order", shown(not_found_[i].number),
                         "");
  }
}

/// Those that do not fit are looked at again when all else is known.
void Auditor::compare_buyers(const std::vector<BuyerRecord>& buyers) {
  std::vector<BuyerId> with_many;
  for (const auto& record : buyers)
    if (record.latest.n > 1) with_many.push_back(record.latest.buyer);
  std::unordered_map<std::string, BuyerTotals, KeyedHash> totals;
  for (auto& his : orders_.totals(sale_.name, with_many))
    totals.emplace(his.buyer.value, std::move(his));
  for (const auto& record : buyers) {
    const auto his = totals.find(record.latest.buyer.value);
    if (!fits(record, his == totals.end() ? nullptr : &his->second, false))
      odd_buyers_.push_back(record.latest.buyer);
    check_limits(record);
  }
}

void Auditor::check_limits(const BuyerRecord& record) {
  const auto note = [&](const char* what, std::int64_t has, std::int64_t limit) {
    if (limit > 0 && has > limit)
      differences_.add(above_limit, fmt::format("buyer '{}'", shown(record.latest.buyer.value)),
                       what, fmt::to_string(has), fmt::format("a limit of {}", limit));
  };
  note("orders", record.live, sale_.limit);
  note("units", record.units, sale_.unit_limit);
}

/// Orders that were lost before a recovery have left their places among those of their buyers.
void Auditor::look_at_buyers_again() {
  std::int64_t gaps = 0;
  std::vector<std::pair<BuyerRecord, std::optional<BuyerTotals>>> with_gaps;
  for (const auto& buyer : odd_buyers_) {
    const auto record = records_.find(std::span<const BuyerId>{&buyer, 1}).get().front();
    if (!record) continue;
    const auto totals = orders_.totals(sale_.name, std::span<const BuyerId>{&buyer, 1});
    const auto* const his = totals.empty() ? nullptr : &totals.front();
    const auto missing = places_left(*record, his);
    if (missing == 0) {
      fits(*record, his, true);
    } else {
      gaps += missing;
      with_gaps.emplace_back(*record, his ? std::optional{*his} : std::nullopt);
    }
  }
  if (gaps == counters_.number("buyer_gaps")) return;
  for (const auto& [record, his] : with_gaps) fits(record, his ? &*his : nullptr, true);
}

/// Of a buyer who has fewer orders than his latest says, and in nothing else differs.
std::int64_t Auditor::places_left(const BuyerRecord& record, const BuyerTotals* in_database) {
  BuyerTotals his{.buyer = record.latest.buyer};
  if (in_database) his = *in_database;
  count_elsewhere(his);
  const bool same = his.live == record.live && his.units == record.units;
  return same ? std::max<std::int64_t>(record.latest.n - his.orders, 0) : 0;
}

/// What the store has counted of a buyer against his orders, wherever they are. Notes what differs
/// if it is to say so.
bool Auditor::fits(const BuyerRecord& record, const BuyerTotals* in_database, bool say) {
  const auto& latest = record.latest;
  if (latest.id > cut_ || ending_buyers_.contains(latest.buyer.value)) return true;  // moves
  BuyerTotals his{.buyer = latest.buyer};
  if (latest.n == 1) {
    const auto part = parts_.find(latest.id);
    const auto units = latest.units - (part == parts_.end() ? 0 : part->second);
    his = {.buyer = latest.buyer,
           .orders = 1,
           .live = stands(latest.state) ? 1 : 0,
           .units = stands(latest.state) ? units : 0};
  } else {
    if (in_database) his = *in_database;
    count_elsewhere(his);
  }
  if (his.orders == latest.n && his.live == record.live && his.units == record.units) return true;
  if (!say) return false;
  const auto note = [&](const char* what, std::int64_t in_store, std::int64_t elsewhere) {
    if (in_store != elsewhere)
      differences_.add(buyers_differ, fmt::format("buyer '{}'", shown(latest.buyer.value)), what,
                       fmt::to_string(in_store), fmt::to_string(elsewhere));
  };
  note("orders", latest.n, his.orders);
  note("orders that stand", record.live, his.live);
  note("units", record.units, his.units);
  return false;
}

/// Adds a buyer's orders that are not in the database.
void Auditor::count_elsewhere(BuyerTotals& his) {
  const auto lines = on_the_way_.of(his.buyer);
  std::vector<std::int64_t> ids;
  for (const auto& line : lines) ids.push_back(line.id);
  std::unordered_set<std::int64_t> in_database;
  for (const auto& row : orders_.find(sale_.name, ids)) in_database.insert(row.id);
  for (const auto& line : lines) {
    if (in_database.contains(line.id)) continue;
    ++his.orders;
    ++his.live;
    his.units = sum(his.units, line.units);
  }
}

// --- the database, looked up in the store's records ---

template <class Visit>
void Auditor::walk_rows(Visit&& visit) {
  OrdersById all{ledger_, on_the_way_, cut_};
  std::int64_t after = std::numeric_limits<std::int64_t>::min();
  for (;;) {
    const auto rows = orders_.page(sale_.name, after, page_size);
    visit(rows);
    for (const auto& row : rows) {
      all.add(line_of(row, sale_));
      if (row.id == cut_) last_order_ = row;
    }
    if (rows.size() < page_size) break;
    after = rows.back().id;
  }
  all.finish();
  audit_.on_the_way = all.waiting();
}

void Auditor::compare_rows(const std::vector<SaleOrder>& rows) {
  std::vector<Wish> wishes;
  wishes.reserve(rows.size());
  for (const auto& row : rows) wishes.push_back({row.buyer, row.request});
  const auto records = records_.find(std::span<const Wish>{wishes}).get();
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (!records[i] || !is_same(rows[i], *records[i])) look_at_row_again(rows[i]);
}

/// The store knows less of states than the database does.
bool Auditor::compare(const SaleOrder& record, SaleOrder row) {
  if (is_same_state(record.state, row.state)) row.state = record.state;
  return differences_.compare(orders_differ, record, row);
}

bool Auditor::is_same(const SaleOrder& row, const SaleOrder& record) const {
  auto in_that_state = record;
  in_that_state.state = row.state;
  return row == in_that_state &&
         (is_same_state(record.state, row.state) || ending_.contains(row.id));
}

void Auditor::look_at_row_again(const SaleOrder& seen) {
  for (int look = 1; look <= looks; ++look) {
    const auto found = orders_.find(sale_.name, std::span<const std::int64_t>{&seen.id, 1});
    const auto& row = found.empty() ? seen : found.front();
    const Wish wish{row.buyer, row.request};
    const auto record = records_.find(std::span<const Wish>{&wish, 1}).get().front();
    if (record && is_same(row, *record)) return;
    if (look < looks) {
      read_ending();
    } else if (record) {
      compare(*record, row);
    } else {
      differences_.add(strangers, place_of(row), "order", "", shown(row.number));
    }
  }
}

// --- returns ---

/// Of orders that the database has ended, and that the store still takes for standing; or the
/// other way round, where one was paid late.
void Auditor::read_ending() {
  each_return(true, [&](const OrderReturn& pending) {
    ending_.insert(pending.order.id);
    ending_buyers_.insert(pending.order.buyer.value);
  });
}

void Auditor::read_parts() {
  each_return(false, [&](const OrderReturn& back) {
    if (!back.ends) parts_[back.order.id] = sum(parts_[back.order.id], back.units);
  });
}

template <class Visit>
void Auditor::each_return(bool only_pending, Visit&& visit) {
  std::int64_t after = std::numeric_limits<std::int64_t>::min();
  for (;;) {
    const auto page = orders_.returns(sale_.name, after, page_size, only_pending);
    for (const auto& back : page) visit(back);
    if (page.size() < page_size) return;
    after = page.back().order.id;
  }
}

namespace {

/// As the store has it, with its units.
std::string text_of(const OrderReturn& back) {
  return fmt::format("{}:{} {}", back.order.id, back.seq, back.units);
}

}  // namespace

void Auditor::walk_returns() {
  std::int64_t after = std::numeric_limits<std::int64_t>::min();
  for (;;) {
    const auto page = orders_.returns(sale_.name, after, page_size, false);
    if (page.empty()) break;
    std::vector<std::string> names;
    for (const auto& row : page) {
      names.push_back(fmt::format("{}:{}", row.order.id, row.seq));
      returns_.insert(text_of(row));
    }
    std::vector<std::string_view> words{"HMGET", keys_.returned};
    words.insert(words.end(), names.begin(), names.end());
    const auto reply = store_.run(Words{words}).get();
    for (std::size_t i = 0; i < page.size(); ++i) {
      const auto& there = reply.as_items().at(i);
      const auto units = fmt::to_string(page[i].units);
      const bool is_asked = !page[i].done;  // the store may have answered it
      const bool is_refused =
          is_asked && page[i].units < 0 && !there.is_null() && there.as_text() == refused_units;
      const bool same = is_refused || (there.is_null() ? is_asked : there.as_text() == units);
      if (!same || std::abs(page[i].units) > page[i].order.units)
        differences_.add(returns_differ, place_of(page[i].order), "units returned",
                         there.is_null() ? "" : shown(there.as_text()), units);
    }
    if (page.size() < page_size) break;
    after = page.back().order.id;
  }
  walk_returned();
}

/// The store's side: each is a return of the database.
void Auditor::walk_returned() {
  const auto most = fmt::to_string(page_size);
  std::string cursor = "0";
  do {
    const auto reply = store_.run({"HSCAN", keys_.returned, cursor, "COUNT", most}).get();
    const auto& fields = reply.as_items().at(1).as_items();
    for (std::size_t i = 0; i + 1 < fields.size(); i += 2) {
      const auto& name = fields[i].as_text();
      const auto& units = fields[i + 1].as_text();
      if (units != refused_units && !is_return(name, units))
        differences_.add(returns_differ, "return " + shown(name), "units returned", shown(units),
                         "");
    }
    cursor = reply.as_items().at(0).as_text();
  } while (cursor != "0");
}

/// One that was not there at the first look may be new.
bool Auditor::is_return(const std::string& name, const std::string& units) {
  const auto text = fmt::format("{} {}", name, units);
  if (returns_.contains(text)) return true;
  const auto id = leading_number<std::int64_t>(name);
  const auto found = orders_.returns(sale_.name, id - 1, 1, false);
  return std::ranges::any_of(
      found, [&](const OrderReturn& back) { return back.order.id == id && text_of(back) == text; });
}

// --- definition and counters ---

void Auditor::compare_definition() {
  for (const auto& [field, value] : fields_of(sale_))
    if (counters_.text(field) != value)
      differences_.add(definition_differs, "the definition", field, shown(counters_.text(field)),
                       shown(value) + " (this program)");
  const auto kept = orders_.definition(sale_.name);
  // The orders that stand there a worker has brought in, and it keeps the definition first.
  if (kept.empty() && database_.units > 0)
    differences_.add(definition_differs, "the definition", "all fields", "the sale's hash", "");
  else if (kept.empty())
    audit_.unknown.push_back(
        "the database has no definition of the sale, as no worker has run: whether its limits, "
        "its lane and its times were changed nobody can tell");
  for (const auto& [field, value] : kept) {
    if (field == "archived" && counters_.text(field).empty()) continue;  // the store comes last
    if (counters_.text(field) != value)
      differences_.add(definition_differs, "the definition", field, shown(counters_.text(field)),
                       shown(value));
  }
  if (kept.empty()) return;
  auto expected = fields_of(sale_);
  for (const auto* const field : {"format", "lane", "born", "database"})
    expected.emplace_back(field, counters_.text(field));
  for (const auto& [field, value] : expected)
    if (std::ranges::find(kept, field, [](const auto& one) { return one.first; }) == kept.end())
      differences_.add(definition_differs, "the definition", field, shown(value), "");
}

/// What the sale's hash says of its last order, and of what database and store agreed upon.
void Auditor::compare_counters() {
  const auto note = [&](std::string_view what, const std::string& here,
                        const std::string& elsewhere) {
    if (here != elsewhere)
      differences_.add(counters_differ, "the sale", std::string{what}, shown(here), elsewhere);
  };
  for (const auto& row : counter_rows) {
    const std::string name{row.name};
    const auto& text = counters_.text(name);
    const bool needed = row.always || (cut_ >= 0 && name == "last");
    if (counters_.has(name) ? !counters_.is_right(row) : needed)
      note(name, text, fmt::format("a number from {} to {}", row.least, row.most));
  }
  if (counters_.has("archived")) {
    note("closed", counters_.text("closed"), "1");
    if (counters_.number("archived") < std::max(counters_.number("last"), counters_.number("born")))
      note("archived", counters_.text("archived"), "an instant after the last order");
  }
  compare_stock();
  if (cut_ < 0) return;
  const auto& last = ledger_.last();
  const auto parts = IdWorker::parts(last.id);
  note("second", counters_.text("second"),
       fmt::to_string(
           std::chrono::duration_cast<std::chrono::seconds>(parts.issued_at - IdWorker::epoch)
               .count()));
  note("sequence", counters_.text("sequence"), fmt::to_string(parts.sequence));
  note("day", counters_.text("day"), fmt::to_string(ledger_.highest().day));
  note("taken", counters_.text("taken"), fmt::to_string(ledger_.highest().sequence));
  if (last_order_)
    note("last", counters_.text("last"),
         fmt::to_string(last_order_->issued_at.time_since_epoch().count()));
}

/// Changes of the stock, and recoveries, may go on meanwhile: what differs is read once more, the
/// database between two equal readings of the store.
void Auditor::compare_stock() {
  Counters counters = counters_;
  bool is_steady = true;
  for (int look = 1; look <= looks_at_stock; ++look) {
    const bool last = look == looks_at_stock;
    const auto fits = [&](const char* what, std::int64_t elsewhere) {
      if (counters.number(what) == elsewhere) return true;
      if (last && is_steady)
        differences_.add(counters_differ, "the sale", what, shown(counters.text(what)),
                         fmt::to_string(elsewhere));
      return false;
    };
    const auto& stock = database_.stock;
    const auto capacity = in_database_ ? sum(stock.initial, stock.changed) : sale_.stock;
    bool same = fits("epoch", database_.epoch);
    if (database_.pending_changes == 0) {
      same &= sale_.bucket ? fits("added", stock.changed) : fits("capacity", capacity);
      same &= fits("changes", database_.last_change);
      // a recovery does not bring this one back: no change of before is asked for again
      if (counters.has("refused") || database_.epoch == 0)
        same &= fits("refused", database_.last_refused);
    }
    if (same || last) return;
    counters.read(store_, keys_);
    database_ = orders_.totals(sale_.name);
    Counters after;
    after.read(store_, keys_);
    is_steady = after.text("changes") == counters.text("changes") &&
                after.text("epoch") == counters.text("epoch");
  }
}

/// Where the store keeps what sales have in common.
void Auditor::compare_list() {
  const auto note = [&](std::string_view key, const char* what, const std::string& here,
                        std::string elsewhere) {
    differences_.add(unlisted, "key " + std::string{key}, what, shown(here), std::move(elsewhere));
  };
  const auto count = store_.run({"GET", lanes_key}).get();
  const auto made = count.is_null() ? std::string{} : count.as_text();
  const auto number = parse_integer<std::int64_t>(made).value_or(0);
  if (number < counters_.number("lane") || fmt::to_string(number) != made)
    note(lanes_key, "sales that were created", made, "at least " + counters_.text("lane"));
  const auto owner = store_.run({"HGET", types_key, sale_.number_type}).get();
  const auto named = owner.is_null() ? std::string{} : owner.as_text();
  if (named != sale_.name && !counters_.has("archived"))
    note(types_key, "sale that has its type of numbers", named, shown(sale_.name));
  if (store_.run({"ZSCORE", names_key, sale_.name}).get().is_null())
    note(names_key, "name", "", shown(sale_.name));
}

/// No key of a sale expires: who sets a time for one loses it then.
void Auditor::look_for_expiry() {
  for (const auto& key :
       {keys_.sale, keys_.buyers, keys_.requests, keys_.returned, keys_.orders, keys_.dead,
        std::string{lanes_key}, std::string{names_key}, std::string{types_key}}) {
    const auto left = store_.run({"PTTL", key}).get().as_integer();
    if (left >= 0)
      differences_.add(expires, "key " + shown(key), "time to live", fmt::format("{} ms", left),
                       "none");
  }
}

void Auditor::report() {
  const auto sold = counters_.number("sold");
  const auto given_back = counters_.number("given_back");
  const auto capacity = counters_.number("capacity");
  const auto taken = difference(ledger_.units(), given_back);
  check("sold_plus_left_is_stock", sum(taken, capacity - sold), capacity,
        fmt::format("{} units in orders, {} given back, {} left", ledger_.units(), given_back,
                    capacity - sold));
  check("units_of_orders_are_sold", taken, sold,
        fmt::format("{} orders in the database, {} on the way or dead", audit_.in_database,
                    audit_.on_the_way));
  check("units_oversold", std::max<std::int64_t>(sold - capacity, 0), 0,
        fmt::format("sold {} of {}", sold, capacity));
  report_numbers();
  check(orders_differ, "every order of the database is as the store has it");
  check(strangers, "every order of the database is known to the store");
  check(nowhere, fmt::format("{} orders admitted", audit_.admitted));
  check(entries_differ, "every order on its way is as the store has it");
  check(poison, "in the stream or among the dead letters");
  check(damaged, "the store's records can be read");
  check(buyers_differ, "each buyer has the orders that are counted for him");
  check(above_limit, sale_.limit > 0 ? fmt::format("limit {}", sale_.limit) : "no limit");
  check("group_of_workers", group_is_there_ ? 1 : 0, 1,
        group_is_there_ ? "it is there" : "it is lost; a worker makes it again");
  check(of_nobody, "every entry that was handed out is pending for a worker");
  check(without_entry, "every pending entry is in the stream");
  check(early, "no entry is pending before it was handed out");
  check(returns_differ, "what was given back is of orders that ended");
  check(counters_differ, "last order, day, numbers and stock");
  check(definition_differs, "as the database keeps it");
  report_common();
  report_database();
}

void Auditor::report_common() {
  check(expires, "every key stays");
  check(unlisted, "the store's lists of sales have this one");
}

void Auditor::report_numbers() {
  check("orders_counted", audit_.admitted, ledger_.orders(),
        "the sale's counter against the orders that there are");
  const auto gaps = counters_.number("gaps");
  check("numbers_dense_and_ids_rising", sum(ledger_.in_place(), gaps), ledger_.orders(),
        ledger_.first_fault().empty()
            ? "1, 2, 3 ... for each day, in the order of the ids"
            : fmt::format("{} gap(s) by recoveries; {}", gaps, ledger_.first_fault()));
}

void Auditor::report_database() {
  if (!in_database_) {
    audit_.unknown.push_back(
        fmt::format("{} does not know the sale yet, a worker enters it: whether this is "
                    "the database of the sale nobody can tell",
                    orders_.describe()));
    return;
  }
  const auto& stock = database_.stock;
  check("database_stock_began_as_stock", stock.initial, sale_.stock, orders_.describe());
  check("database_stock_lost_what_was_ordered",
        difference(sum(sum(stock.initial, stock.changed), stock.moved), stock.left),
        database_.units, fmt::format("{} orders", database_.orders));
  check("database_changes_add_up", stock.changed, database_.changes,
        "the list of stock changes against their sum");
  check("changes_out_of_order", database_.odd_changes, 0,
        "changes of the stock count from 1, and all but the last have ended");
  check("orders_with_an_odd_version", database_.odd, 0,
        "an order that stands has version 0 and no reason, one that ended has its return");
  check("returns_of_no_order", database_.odd_returns, 0,
        "each is of an order that ended with so many units");
  report_money();
}

/// Payments, deadlines, refunds and messages, of a sale that has some.
void Auditor::report_money() {
  if (!sale_.payment || !in_database_) return;
  const auto money = orders_.payments().totals(sale_.name);
  check("payments_that_do_not_fit_their_orders", money.odd_payments, 0,
        "each order that was paid has one payment, and no other has one");
  check("money_that_is_missing_or_too_much", money.odd_refunds, 0,
        "what was paid and did not go back is the price of the units that an order has");
  check("payments_in_no_state", money.odd_events, 0, "every payment is of an order, or waits");
  check("orders_without_a_deadline", money.odd_deadlines, 0,
        "every order that awaits its payment has one");
  check("messages_that_differ_from_versions", money.odd_messages, 0,
        "each change of an order has its message");
  const auto tell = [&](std::int64_t figure, std::string_view what) {
    if (figure > 0) audit_.unknown.push_back(fmt::format("{} {}", figure, what));
  };
  tell(money.flagged, "payment(s) do not fit, and a person has to look at them");
  tell(money.waiting, "payment(s) wait for an order that is not in the database");
  tell(money.asking, "late payment(s) wait for the store to say whether units are left");
  tell(money.refunds, "refund(s) were not sent yet");
  tell(money.dead, "message(s) could not be delivered");
}

/// An archive leaves the counters; the orders are in the database alone, where some may have ended
/// since.
void Auditor::report_archived() {
  const auto hashes = store_.run({"EXISTS", keys_.buyers, keys_.requests, keys_.returned}).get();
  check("sale_is_archived", 1, 1,
        fmt::format("{} keeps its counters, {} its orders", store_.describe(), orders_.describe()));
  check("archive_is_finished", hashes.as_integer(), 0,
        hashes.as_integer() == 0 ? "no orders are left in the store"
                                 : "hashes of orders are left in the store: archive once more");
  const auto sold = counters_.number("sold");
  const auto given_back = counters_.number("given_back");
  check("units_of_orders_were_sold", difference(ledger_.units(), given_back), sold,
        fmt::format("{} units in orders, {} given back before the archive", ledger_.units(),
                    given_back));
  report_numbers();
  check(counters_differ, "last order, day, numbers and stock");
  check(definition_differs, "as the database keeps it");
  report_common();
  report_database();
  audit_.unknown.push_back(
      "the sale is archived: buyers, request ids and instants of its orders stand in the database "
      "alone; compare them with the file of the archive");
}

void Auditor::tell_what_is_unknown() {
  if (database_.pending_changes > 0)
    audit_.unknown.push_back(
        "a change of the stock is under way: whether the store has as much to sell as the "
        "database");
  audit_.unknown.push_back(
      "an order that a buyer was told of and that neither the store nor the database has: compare "
      "with what buyers have");
  audit_.unknown.push_back(
      "a change that was made in the same way in the store and in the database; the words of a "
      "reason for which an order ended; how many units a change asked for that was refused; "
      "whether somebody closed the sale by hand");
  if (!ending_.empty())
    audit_.unknown.push_back(fmt::format(
        "{} order(s) ended in the database, and the store was not told yet", ending_.size()));
}

/// Whether the store is the one that has admitted the orders so far.
void Auditor::check_gate() {
  Batch batch;  // where INFO may not be run, create() could not either
  add_info(batch, store_, keys_.sale, "replication");
  const auto here = store_id(store_.run(std::move(batch)).get().front());
  const auto note = [&](bool same, std::string detail) {
    check("store_is_the_same", same ? 1 : 0, 1, std::move(detail));
  };
  const auto advice = fmt::format("run 'sluice sale recover {}'", sale_.name);
  if (counters_.text("recovering") == shut_as_lost)
    note(false, "the store lost the sale, and it was created again: " + advice);
  else if (counters_.has("recovering"))
    note(false, "a recovery of it has not ended: let it end, or " + advice);
  else if (!counters_.has("store") && here.empty())
    note(true, "the store does not say which it is, so the sale has no gate");
  else if (counters_.text("store").empty())
    note(false, "the sale does not remember its store: " + advice);
  else
    note(counters_.text("store") == here,
         counters_.text("store") == here
             ? "no restart and no other server since the sale was created or recovered"
             : "it was started again, or another server took its place: " + advice);
}

SaleAudit Auditor::run() {
  counters_.read(store_, keys_);
  check("sale_is_loaded", counters_.exist() ? 1 : 0, 1, store_.describe());
  if (!counters_.exist()) return std::move(audit_);
  const bool is_archived = counters_.has("archived");
  if (!is_archived) check_gate();
  cut_ = counters_.last_id();
  audit_.admitted = counters_.number("orders");
  database_ = orders_.totals(sale_.name);
  in_database_ = orders_.stock(sale_.name).has_value();
  audit_.in_database = database_.orders;
  look_for_expiry();
  compare_list();
  if (is_archived) {
    walk_rows([](const auto&) {});
    compare_definition();
    compare_counters();
    report_archived();
    audit_.differences = differences_.take();
    return std::move(audit_);
  }
  read_ending();
  read_parts();
  walk_streams();
  walk_group();
  walk_records();
  look_again();
  look_at_buyers_again();
  walk_rows([&](const auto& rows) { compare_rows(rows); });
  walk_returns();
  compare_definition();
  compare_counters();
  report();
  tell_what_is_unknown();
  audit_.differences = differences_.take();
  return std::move(audit_);
}

}  // namespace

}  // namespace sluice::sale

sluice::SaleAudit sluice::audit(Store& store, const Sale& sale, OrderStore& orders,
                                AuditOptions options) {
  return sale::Auditor{store, sale, orders, options}.run();
}
