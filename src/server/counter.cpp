#include "server/counter.hpp"

#include "base/integer.hpp"
#include "server/problems.hpp"

namespace sluice::server {

/// Who has bought is answered so wherever he stands: a repeat asks for what he was told, not for
/// more, and his visit may be over.
Task<http::Response> serve_at_counter(Entrance& entrance, Purchase purchase) {
  Sale& sale = purchase.offer->sale();
  const auto& name = sale.definition().name;
  auto stopped = co_await entrance.stop(purchase.ticket, name, purchase.buyer);
  if (stopped) {
    const auto earlier = co_await sale.find(purchase.buyer, purchase.wish);
    if (!earlier) co_return std::move(*stopped);
  }
  const auto admission = co_await sale.buy(purchase.buyer, purchase.wish, purchase.units);
  if (admission.has_order() && !stopped)
    co_await entrance.served(purchase.ticket, name, purchase.buyer);
  std::int64_t left = 0;
  if (admission.outcome == SaleOutcome::not_enough) {
    const auto status = co_await sale.status();
    left = status.left();
  }
  co_return answer_of(sale.definition(), admission, left);
}

Expected<std::shared_ptr<Offer>, http::Response> find_offer(const Shop& shop,
                                                            std::string_view name) {
  using namespace std::chrono_literals;
  if (auto offer = shop.find(name)) return offer;
  if (shop.trouble_of(name).empty()) return Unexpected{http::problem(problems::no_sale)};
  auto response = http::problem(problems::recovering);
  http::add_retry_after(response, 1s);
  return Unexpected{std::move(response)};
}

std::optional<ShownOrder> find_order(Sale& sale, OrderStore& orders, const BuyerId& buyer,
                                     const std::string& word) {
  const auto id = parse_integer<std::int64_t>(word);
  const auto is_it = [&](const SaleOrder& order) {
    return order.buyer == buyer && (order.number == word || (id && order.id == *id));
  };
  const auto& name = sale.definition().name;
  auto found = orders.find_number(name, word);
  if (!found && id)
    for (auto& order : orders.find(name, std::span{&*id, 1})) found = std::move(order);
  if (found && is_it(*found)) {
    ShownOrder shown{.order = *found, .is_recorded = true};
    if (sale.definition().payment) shown.money = orders.payments().find(name, found->id);
    return shown;
  }
  if (const auto latest = sale.latest(buyer).get(); latest && is_it(*latest))
    return ShownOrder{.order = *latest};
  return std::nullopt;
}

}  // namespace sluice::server
