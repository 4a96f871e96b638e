/// Six bottles in three buckets: each on a server of its own, where the store is a cluster.
///   sale_buckets [URL [DATABASE]]     default: embedded: sqlite::memory:
#include <fmt/format.h>

#include <sluice/bucketed_sale.hpp>
#include <sluice/open.hpp>

int main(int count, char** words) {
  const auto store = sluice::open(count > 1 ? words[1] : "embedded:");
  const auto orders = sluice::open_order_store(count > 2 ? words[2] : "sqlite::memory:");

  auto sale = sluice::BucketedSale::create(
      *store, {.name = "rare", .stock = 6, .number_type = "RB"}, {.buckets = 3}, *orders);
  for (const char* const buyer : {"ann", "bob", "cid", "dan", "eve", "fay", "gus"}) {
    // Where the bucket of a buyer is empty, it borrows from the others before anybody is refused.
    const auto answer = sale.buy({buyer}, {fmt::format("click of {}", buyer)}).get();
    fmt::print("{}: {} {}\n", buyer, to_string(answer.outcome),
               answer.order ? answer.order->number : "");
  }
  for (const auto& bucket : sale.status().get().buckets)
    fmt::print("a bucket sold {} of {}\n", bucket.sold, bucket.stock);

  // A server has one for all buckets, each in a thread with a session of its own: worker.run(stop).
  for (std::int64_t i = 0; i < sale.buckets(); ++i)
    sluice::OrderWorker{*store, sale.bucket(i), *orders}.drain();
  fmt::print("store and database fit: {}\n", audit(*store, sale, *orders).ok());
}
