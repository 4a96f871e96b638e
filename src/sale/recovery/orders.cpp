// Orders: those of the database come into the store, and what the store alone knows goes to the
// database.
#include <fmt/format.h>

#include <algorithm>

#include "base/integer.hpp"
#include "sale/differences.hpp"
#include "sale/recovery.lua.hpp"
#include "sale/recovery/recovery.hpp"
#include "sale/returned.hpp"

namespace sluice::sale {

std::int64_t Recovery::put(std::span<const SaleOrder> orders, Records::Source source) {
  std::int64_t written = 0;
  for (; !orders.empty(); orders = orders.subspan(std::min(most_written, orders.size()))) {
    const auto some = orders.first(std::min(most_written, orders.size()));
    written += records_.put(some, token_, source).get();
  }
  return written;
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
        if (!is_there || stands(row->second.state)) end_again(order, is_there);
      } else if (!is_there && !is_on_the_way(order)) {
        lost.push_back(std::move(order));
      }
    }
    insert_with_parts(lost);
    send_again(lost);
  });
  done_.sent_again = static_cast<std::int64_t>(sent_.size());
  for (const auto& order : sent_) on_the_way_.add(order);
  on_the_way_.sort();
}

/// Orders that the database has lost whole, and of which some units came back: these may have been
/// sold again, so the database hears of both before it hears of the next order.
void Recovery::insert_with_parts(std::vector<SaleOrder>& lost) {
  std::erase_if(lost, [&](const SaleOrder& order) {
    if (!insert_standing(order)) return false;
    tell_parts_of(order.id);
    return true;
  });
}

/// False: none of its units came back, or the database does not take it.
bool Recovery::insert_standing(SaleOrder order) {
  if (returned_of(order.id).empty()) return false;
  order.state = OrderState::awaiting;
  return orders_.insert(sale_.name, std::span{&order, 1}, epoch_).rejected.empty();
}

/// This one: what somebody wrote into the stream in its place brings it nowhere.
bool Recovery::is_on_the_way(const SaleOrder& order) const {
  const auto* const line = on_the_way_.find(order.id);
  return line && line->fingerprint == fingerprint_of(order);
}

/// Where the database has lost the payment, too, the order ends unpaid. Part by part, as its money
/// went back.
void Recovery::end_again(const SaleOrder& order, bool is_there) {
  const auto state = order.state == OrderState::refunding ? OrderState::cancelled : order.state;
  is_there = is_there || insert_standing(order);
  if (is_there) tell_parts_of(order.id);
  if (!is_there)
    orders_.insert_ended(sale_.name, order, state, told_by_store, epoch_);
  else if (const auto ended = orders_.end_order(sale_.name, order.id, state, told_by_store);
           ended.order && ended.order->state == OrderState::paid)
    orders_.payments().cancel_units(sale_.name, order.id, 0, "recovered", told_by_store);
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

}  // namespace sluice::sale
