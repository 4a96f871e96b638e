#include "sale/on_the_way.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

namespace sluice::sale {

std::uint64_t fingerprint_of(const SaleOrder& order) {
  return std::hash<std::string>{}(
      fmt::format("{} {} {} {} {} {}:{}{}", order.number, order.id, order.units, order.n,
                  order.issued_at.time_since_epoch().count(), order.buyer.value.size(),
                  order.buyer.value, order.request.value));
}

std::uint64_t fingerprint_of(const BuyerId& buyer) { return std::hash<std::string>{}(buyer.value); }

void OnTheWay::add(const SaleOrder& order) {
  lines_.push_back({line_of(order, sale_), fingerprint_of(order), fingerprint_of(order.buyer)});
}

void OnTheWay::sort() {
  std::ranges::sort(lines_, {}, &Line::id);
  const auto again = std::ranges::unique(lines_, {}, &Line::id);
  lines_.erase(again.begin(), again.end());
  by_buyer_.resize(lines_.size());
  std::iota(by_buyer_.begin(), by_buyer_.end(), 0U);
  std::ranges::sort(by_buyer_, {}, [this](std::uint32_t at) { return lines_[at].buyer; });
}

const OnTheWay::Line* OnTheWay::find(std::int64_t id) const {
  const auto found = std::ranges::lower_bound(lines_, id, {}, &Line::id);
  return found != lines_.end() && found->id == id ? &*found : nullptr;
}

std::vector<OnTheWay::Line> OnTheWay::of(const BuyerId& buyer) const {
  const auto same = std::ranges::equal_range(by_buyer_, fingerprint_of(buyer), {},
                                             [this](std::uint32_t at) { return lines_[at].buyer; });
  std::vector<Line> found;
  for (const auto at : same) found.push_back(lines_[at]);
  return found;
}

void OrdersById::add(const LedgerLine& row) {
  pass_waiting(row.id);
  count(row);
}

void OrdersById::finish() { pass_waiting(std::numeric_limits<std::int64_t>::max()); }

void OrdersById::pass_waiting(std::int64_t below) {
  for (; waiting_ != lines_.end() && waiting_->id < below; ++waiting_) counted_ += count(*waiting_);
}

bool OrdersById::count(const LedgerLine& line) {
  if (line.id <= last_ || line.id > cut_) return false;
  last_ = line.id;
  ledger_.add(line);
  return true;
}

}  // namespace sluice::sale
