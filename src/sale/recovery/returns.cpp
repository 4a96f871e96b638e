// Units that came back.
#include <fmt/format.h>

#include "base/integer.hpp"
#include "sale/recovery.lua.hpp"
#include "sale/recovery/recovery.hpp"
#include "sale/returned.hpp"
#include "sale/sums.hpp"

namespace sluice::sale {

/// Parts of orders that were cancelled, and that the database has lost.
void Recovery::tell_parts() {
  read_returns();
  bool has_told = false;
  each_returned(store_, keys_, [&](const std::string& name, const std::string& text) {
    stay_known();
    if (!returns_.contains(name)) has_told |= tell_part(name, text);
  });
  if (has_told) read_returns();
}

/// `name`: ID:VERSION. False: it is none, or of no order that stands.
bool Recovery::tell_part(const std::string& name, const std::string& text) {
  const auto units = parse_integer<std::int64_t>(text).value_or(0);
  const auto id = leading_number<std::int64_t>(name);
  if (units < 1) return false;
  const auto row = orders_.find(sale_.name, std::span{&id, 1});
  if (row.empty() || !stands(row.front().state) || units >= row.front().units) return false;
  orders_.payments().cancel_units(sale_.name, id, units, "recovered " + name, told_by_store);
  return true;
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
  std::unordered_set<std::string> as_they_are;
  each_returned(store_, keys_, [&](const std::string& name, const std::string& units) {
    if (units == refused_units && asked_.contains(name)) return;
    const auto found = right.find(name);
    if (found == right.end())
      wrong.emplace_back(name, "0");
    else if (units == fmt::to_string(found->second))
      as_they_are.insert(name);  // and not erased: it may be visited once more
  });
  for (const auto& [name, units] : right)
    if (!as_they_are.contains(name)) wrong.emplace_back(name, fmt::to_string(units));
  in_parts(wrong, [&](Words args) {
    const std::vector<std::string_view> names{keys_.sale, keys_.returned};
    const auto written = store_.run(scripts::sale_set_returned, Words{names}, args).get();
    check_mine(written.as_integer() >= 0);
    done_.given_back += written.as_integer();
  });
}

}  // namespace sluice::sale
