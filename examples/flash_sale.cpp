/// Three bottles, five buyers, and a database that has every order in the end.
///   flash_sale [URL [DATABASE]]     default: embedded: sqlite::memory:
#include <fmt/format.h>

#include <sluice/open.hpp>
#include <sluice/order_worker.hpp>

int main(int count, char** words) {
  const auto store = sluice::open(count > 1 ? words[1] : "embedded:");
  const auto orders = sluice::open_order_store(count > 2 ? words[2] : "sqlite::memory:");
  orders->add_sale("bottles", 3);

  auto sale =
      sluice::Sale::create(*store, {.name = "bottles", .stock = 3, .number_type = "BT"}).get();
  for (const char* const buyer : {"ann", "bob", "ann", "cid", "dan"}) {
    // The request id is made by the buyer's side once, and sent again with each retry of the same
    // click.
    const auto answer = sale.buy({buyer}, {fmt::format("click of {}", buyer)}).get();
    fmt::print("{}: {} {}\n", buyer, to_string(answer.outcome),
               answer.order ? answer.order->number : "");
  }

  sluice::OrderWorker worker{*store, sale, *orders};
  worker.drain();  // a server has it in a thread: worker.run(stop)
  fmt::print("the database has {} orders\n", orders->page("bottles", 0, 10).size());
}
