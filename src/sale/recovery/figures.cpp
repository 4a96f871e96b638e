// What the sale counts, made anew from what is known now.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/integer.hpp"
#include "sale/differences.hpp"
#include "sale/ledger.hpp"
#include "sale/recovery/recovery.hpp"
#include "sale/sums.hpp"
#include "sluice/id.hpp"

namespace sluice::sale {

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

}  // namespace sluice::sale
