// The second library: a sale with its orders in SQLite.
#include <sluice/open.hpp>
#include <sluice/order_worker.hpp>

int main() {
  const auto store = sluice::open("embedded:");
  const auto orders = sluice::open_order_store("sqlite::memory:");
  orders->add_sale("bottles", 1);
  auto sale =
      sluice::Sale::create(*store, {.name = "bottles", .stock = 1, .number_type = "MT"}).get();
  const auto answer = sale.buy({"ann"}, {"click"}).get();
  sluice::OrderWorker{*store, sale, *orders}.drain();
  return answer.has_order() && orders->page("bottles", 0, 10).size() == 1 ? 0 : 1;
}
