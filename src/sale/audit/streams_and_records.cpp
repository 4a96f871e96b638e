// What the store has: its streams and records, looked up in the database.
#include <fmt/format.h>

#include <algorithm>

#include "base/integer.hpp"
#include "sale/audit/audit.lua.hpp"
#include "sale/audit/auditor.hpp"
#include "sale/order_queue.hpp"
#include "sale/sums.hpp"

namespace sluice::sale {

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
        store_.run(scripts::sale_audit_examine, {keys_.orders}, {group, from, most}, repeatable)
            .get();
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
  std::ranges::sort(odd_buyers_, {}, &BuyerId::value);  // HSCAN may give one twice
  odd_buyers_.erase(std::ranges::unique(odd_buyers_).begin(), odd_buyers_.end());
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

}  // namespace sluice::sale
