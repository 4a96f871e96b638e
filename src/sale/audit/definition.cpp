// Definition, counters, stock, lists, and keys that expire.
#include <fmt/format.h>

#include <algorithm>

#include "sale/audit/auditor.hpp"
#include "sale/settlement.hpp"
#include "sale/sums.hpp"
#include "sluice/id.hpp"

namespace sluice::sale {

void Auditor::compare_definition() {
  for (const auto& [field, value] : fields_of(sale_))
    if (counters_.text(field) != value)
      differences_.add(definition_differs, "the definition", field, shown(counters_.text(field)),
                       shown(value) + " (this program)");
  const auto there = orders_.store_of(sale_.name);
  const bool may_be_unnamed = counters_.text("mark").empty();  // no worker has written yet
  if (there && there->id != counters_.text("home") && !(there->id.empty() && may_be_unnamed))
    differences_.add(definition_differs, "the definition", "home", shown(counters_.text("home")),
                     shown(there->id));
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
  for (const auto* const field : {"format", "lane", "born"})
    expected.emplace_back(field, counters_.text(field));
  expected.emplace_back("database", database_word(orders_));
  if (const auto& there = counters_.text("database");
      !there.empty() && !is_same_database(there, expected.back().second))
    differences_.add(definition_differs, "the definition", "database", shown(there),
                     shown(expected.back().second));
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

}  // namespace sluice::sale
