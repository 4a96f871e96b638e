#include "server/counter.hpp"

#include <optional>

#include "server/sales_text.hpp"

namespace sluice::server {

/// Who has bought is answered so wherever he stands: a repeat asks for what he was told, not for
/// more, and his visit may be over.
Task<http::Response> serve_at_counter(Entrance& entrance, Purchase purchase) {
  OfferedSale& sale = purchase.offer->sale();
  const auto& name = sale.definition().name;
  const bool is_guarded = entrance.guards(name);
  std::optional<http::Response> stopped;
  if (is_guarded) stopped = co_await entrance.stop(purchase.ticket, name, purchase.buyer);
  if (stopped) {
    const auto earlier = co_await sale.find(purchase.buyer, purchase.wish);
    if (!earlier) co_return std::move(*stopped);
  }
  const auto admission = co_await sale.buy(purchase.buyer, purchase.wish, purchase.units);
  purchase.offer->answers().add(admission.outcome);
  if (is_guarded && admission.has_order() && !stopped)
    co_await entrance.served(purchase.ticket, name, purchase.buyer);
  std::int64_t left = 0;
  if (admission.outcome == SaleOutcome::not_enough) {
    const auto status = co_await sale.status();
    left = status.left();
  }
  co_return answer_of(sale.definition(), admission, left);
}

}  // namespace sluice::server
