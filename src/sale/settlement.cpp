#include "sale/settlement.hpp"

#include <fmt/format.h>

#include "sale/records.lua.hpp"

namespace sluice::sale {

Settlement::Settlement(Store& store, const SaleDefinition& sale, OrderStore& orders)
    : store_(store), sale_(sale), keys_(sale.name), orders_(orders), records_(store, sale) {
  orders_.add_sale(sale_.name, sale_.stock);
}

EndedOrder Settlement::end(const SaleOrder& order, OrderState state, const std::string& reason) {
  auto ended = orders_.end_order(sale_.name, order.id, state, reason);
  if (!ended.order) {  // on its way, or a dead letter: a worker will find it there
    const auto epoch = store_.run({"HGET", keys_.sale, "epoch"}).get();
    const auto result = orders_.insert_ended(sale_.name, order, state, reason,
                                             epoch.is_null() ? 0 : epoch.as_integer());
    if (result.stale)
      throw Error{Errc::server,
                  fmt::format("sale '{}' is being recovered: cancel order {} when that "
                              "has ended",
                              sale_.name, order.number)};
    if (!result.rejected.empty())
      throw Error{Errc::database,
                  fmt::format("sale '{}': order {} cannot end, {} refuses it: {}", sale_.name,
                              order.number, orders_.describe(), result.rejected.front().reason)};
    ended = orders_.end_order(sale_.name, order.id, state, reason);
    ended.now |= result.inserted == 1;
  }
  for (const auto& back : orders_.returns(sale_.name, order.id - 1, 1, true))
    if (back.order.id == order.id) settle(back);
  return ended;
}

void Settlement::settle(const OrderReturn& what) {
  if (records_.give_back(what).get() == Records::Returned::unknown)
    throw Error{Errc::server,
                fmt::format("sale '{}': {} has no order {}, which ended in {}: it lost data, see "
                            "'sluice sale recover'",
                            sale_.name, store_.describe(), what.order.number, orders_.describe())};
  orders_.return_done(sale_.name, what.order.id, what.seq);
}

/// False: the store refused it.
bool Settlement::settle(const StockChange& change) {
  const auto seq = fmt::to_string(change.seq);
  const auto delta = fmt::to_string(change.delta);
  const auto answer =
      store_.run(scripts::sale_change_stock, {keys_.sale}, {seq, delta}, repeatable).get();
  if (answer.is_null())
    throw Error{Errc::server,
                fmt::format("sale '{}' is not in {} any more", sale_.name, store_.describe())};
  if (answer.as_integer() < 0)
    throw Error{Errc::server,
                fmt::format("sale '{}': {} does not know of the change of the stock before number "
                            "{}: it lost data, see 'sluice sale recover'",
                            sale_.name, store_.describe(), change.seq)};
  orders_.end_stock_change(sale_.name, change.seq, answer.as_integer() == 1);
  return answer.as_integer() == 1;
}

bool Settlement::change_stock(std::int64_t stock) {
  for (;;) {
    const auto change = orders_.begin_stock_change(sale_.name, stock);
    if (!change) return true;
    if (!settle(*change) && change->now) return false;
  }
}

void Settlement::settle() {
  constexpr std::size_t page_size = 500;
  std::exception_ptr lost;
  std::optional<std::int64_t> after = -1;
  while (after) {
    const auto some = settle_some(*after, page_size);
    if (!lost) lost = some.lost;
    after = some.next;
  }
  if (lost) std::rethrow_exception(lost);
}

/// What the store lost holds up nothing else.
Settlement::Some Settlement::settle_some(std::int64_t after, std::size_t most) {
  Some some;
  const auto try_to = [&](auto&& settle_it) {
    try {
      settle_it();
    } catch (const Error& error) {
      if (error.errc() != Errc::server) throw;
      if (!some.lost) some.lost = std::current_exception();
    }
  };
  if (const auto change = orders_.pending_stock_change(sale_.name))
    try_to([&] { settle(*change); });
  const auto page = orders_.returns(sale_.name, after, most, true);
  for (const auto& what : page) try_to([&] { settle(what); });
  if (page.size() == most) some.next = page.back().order.id;
  return some;
}

}  // namespace sluice::sale
