// Units that came back.
#include <fmt/format.h>

#include <algorithm>

#include "base/integer.hpp"
#include "sale/recovery.lua.hpp"
#include "sale/recovery/recovery.hpp"
#include "sale/returned.hpp"
#include "sale/sums.hpp"

namespace sluice::sale {

/// Parts of orders that were cancelled, and that the database has lost.
void Recovery::tell_parts() {
  read_returns();
  returned_.reset();
  returned_of(0);
  bool has_told = false;
  for (const auto& [id, returns] : *returned_) {
    stay_known();
    if (std::ranges::all_of(returns, [&](const auto& back) {
          return back.second <= 0 || returns_.contains(fmt::format("{}:{}", id, back.first));
        }))
      continue;
    tell_parts_of(id);
    has_told = true;
  }
  if (has_told) read_returns();
}

const std::map<std::int64_t, std::int64_t>& Recovery::returned_of(std::int64_t id) {
  if (!returned_) {
    returned_.emplace();
    each_returned(store_, keys_, [&](const std::string& name, const std::string& units) {
      const auto seq = parse_integer<std::int64_t>(name.substr(name.find(':') + 1));
      const auto figure = parse_integer<std::int64_t>(units);
      if (seq && figure) (*returned_)[leading_number<std::int64_t>(name)][*seq] = *figure;
    });
  }
  static const std::map<std::int64_t, std::int64_t> none;
  const auto found = returned_->find(id);
  return found == returned_->end() ? none : found->second;
}

/// Of an order that stands in the database: in the order in which they came back, so that their
/// money goes back under the keys of then. An end behind which units were taken again is none.
void Recovery::tell_parts_of(std::int64_t id) {
  std::vector<std::pair<std::int64_t, std::int64_t>> parts;
  for (const auto& [seq, units] : returned_of(id)) {
    if (units < 0 && !parts.empty()) parts.pop_back();
    if (units > 0) parts.emplace_back(seq, units);
  }
  if (parts.empty()) return;
  const auto row = orders_.find(sale_.name, std::span{&id, 1});
  if (row.empty() || !stands(row.front().state)) return;
  std::unordered_set<std::int64_t> known;
  for (const auto& back : orders_.returns(sale_.name, id - 1, 1, false))
    if (back.order.id == id) known.insert(back.seq);
  std::int64_t rest = row.front().units;
  for (const auto& [seq, units] : parts) {
    rest -= units;  // the last return of an order that ended is its end
    if (!known.contains(seq) && rest > 0)
      orders_.payments().cancel_units(sale_.name, id, units,
                                      fmt::format("recovered {}:{}", id, seq), told_by_store);
  }
}

/// Orders that expired, as the database has them, and whose late payment was decided already: it
/// was refused, or it took the units again, and then they came back with its money. The database
/// has lost that, and hears the same answer when it asks again: the money goes back under the key
/// of then. Where it went back in parts, nobody knows under which keys: a person looks at it.
std::unordered_set<std::string> Recovery::refused_retakes() {
  std::unordered_map<std::int64_t, std::string> decided;
  std::unordered_set<std::int64_t> in_parts;
  for (const auto& [id, returns] : *returned_)
    for (auto retake = returns.begin(); retake != returns.end(); ++retake) {
      const auto back = std::next(retake);
      if (retake->second > 0 || (retake->second < 0 && back == returns.end())) continue;
      auto name = fmt::format("{}:{}", id, retake->first);
      if (!returns_.contains(name)) decided[id] = std::move(name);
      if (retake->second < 0 && back->second != -retake->second) in_parts.insert(id);
    }
  std::vector<std::int64_t> ids;
  for (const auto& [id, name] : decided) ids.push_back(id);
  std::unordered_set<std::string> refused;
  for (std::span<const std::int64_t> rest{ids}; !rest.empty();
       rest = rest.subspan(std::min(page_size, rest.size())))
    for (const auto& row : orders_.find(sale_.name, rest.first(std::min(page_size, rest.size()))))
      if (row.state == OrderState::expired) {
        refused.insert(decided[row.id]);
        if (in_parts.contains(row.id)) orders_.payments().hold(sale_.name, row.id);
      }
  return refused;
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
  for (const auto& name : refused_retakes()) right.emplace(name, 0);
  each_returned(store_, keys_, [&](const std::string& name, const std::string& units) {
    if (units == refused_units && asked_.contains(name)) return;
    const auto found = right.find(name);
    if (found == right.end())
      wrong.emplace_back(name, "");
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
