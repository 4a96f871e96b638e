// What the database has: its orders and returns, looked up in the store.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/integer.hpp"
#include "sale/audit/auditor.hpp"
#include "sale/returned.hpp"
#include "sale/sums.hpp"

namespace sluice::sale {

void Auditor::walk_rows(const std::function<void(const std::vector<SaleOrder>&)>& visit) {
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

void Auditor::each_return(bool only_pending, const std::function<void(const OrderReturn&)>& visit) {
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
  each_returned(store_, keys_, [&](const std::string& name, const std::string& units) {
    if (units != refused_units && !is_return(name, units))
      differences_.add(returns_differ, "return " + shown(name), "units returned", shown(units), "");
  });
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

}  // namespace sluice::sale
