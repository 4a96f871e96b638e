/// A flash sale whose stock lies in several buckets, each on a server of its own: for more buyers a
/// second than one Redis admits (some 138,000).
///
/// Guarantee (docs/buckets.md#guarantee): as Sale's, of the whole. A buyer is always in the same
///   bucket, and so are his limit and his requests. A bucket that has too few units gets some from
///   the others while the buyer waits; `sold_out` is said only where at one instant no bucket had a
///   unit, and none was on its way, and `not_enough` in the same way. All buckets and what is on
///   its way between them are the stock, whichever process dies when, and whichever server comes
///   back without its latest seconds: none is sold twice.
/// Not guaranteed: numbers of the whole sale without a gap. Each bucket counts its own, from 1 for
///   each day, with its letter behind the type: MTA202601020001, MTB202601020001. These have no
///   gap, and none is used twice. Whoever needs one series for all: a sale without buckets, or a
///   Series over the orders of the database. That a late payment finds units that lie in another
///   bucket when a worker brings it in; pay() looks for them.
/// Threads: any. Calls made at the same time travel together, by bucket; all that wait for units of
///   other buckets borrow once.
/// In Redis: bucket b of NAME is the Sale "NAME:b", with all its keys in a slot of its own. Beside
///   a Sale's fields {NAME:b}:sale has: bucket (index, count, stock of all), moves, frozen, added,
///   out:R and in:D (the latest transfer to bucket R, and from bucket D). A buyer whose bucket has
///   enough costs what he costs a Sale. One whose bucket has to borrow waits for four round trips
///   more: all buckets are looked at, one gives, his own takes, and is asked again. At least a half
///   of what the donor has left is moved, so that the next ones need not wait.
///
///     const SaleDefinition bottles{
///         .name = "maotai", .stock = 100'000, .number_type = "MT", .digits = 6};
///     auto sale = BucketedSale::create(*store, bottles, {.buckets = 8}).get();
///     auto answer = sale.buy(BuyerId{"42"}, RequestId{"c1f0"}).get();
///     if (answer.order) print(answer.order->number);  // MTC20260102000001
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/order_store.hpp"
#include "sluice/order_worker.hpp"
#include "sluice/sale.hpp"
#include "sluice/sale_audit.hpp"
#include "sluice/sale_recovery.hpp"

namespace sluice {

struct BucketOptions {
  /// 2 to 26. As many as servers that are to share the buyers; two or three times as many, where
  /// servers may be added.
  std::int64_t buckets = 8;
};

struct BucketedStatus {
  SaleStatus whole;
  std::int64_t under_way = 0;       ///< units on their way between buckets; not in `sold`
  std::vector<SaleStatus> buckets;  ///< `stock` is what a bucket has sold or may sell at present
};

/// REQUIRES: the Store lives longer, and the BucketedSale longer than its Tasks. Moving it leaves
/// Tasks under way valid.
class BucketedSale {
 public:
  /// Throws Error where create() would, and creates nothing.
  static Task<void> check(Store& store, SaleDefinition definition, BucketOptions options);
  /// Defines the sale, or joins it where it is defined already, in the same words. Where some of
  /// its buckets are gone they are `recovering`. Throws Error as Sale::create(), and bad_argument
  /// for a number of buckets that there cannot be, or beside a sale of its name without any.
  static Task<BucketedSale> create(Store& store, SaleDefinition definition, BucketOptions options);
  /// The same for a program that can reach the database: Sale::create() says why. Blocks the
  /// thread.
  static BucketedSale create(Store& store, SaleDefinition definition, BucketOptions options,
                             OrderStore& orders);
  /// Empty: the store knows no bucket of that sale. Throws Error as Sale::load().
  static Task<std::optional<BucketedSale>> load(Store& store, std::string name);

  ~BucketedSale();
  BucketedSale(BucketedSale&&) noexcept;
  BucketedSale& operator=(BucketedSale&&) noexcept;

  /// Of the whole sale.
  const SaleDefinition& definition() const noexcept;
  std::int64_t buckets() const noexcept;
  /// An ordinary Sale: its dead letters, its archive, when the whole is closed. Its buy() borrows
  /// nothing, and refuses buyers of other buckets (bad_argument).
  Sale& bucket(std::int64_t index);
  const Sale& bucket(std::int64_t index) const;
  Sale& bucket_of(const BuyerId& buyer);
  /// The one that gave a number; null: none did.
  Sale* bucket_of_number(std::string_view number);

  /// As Sale::buy(). `moving`: others were quicker, each time that units came to this bucket; ask
  /// again soon, with the same request id. `recovering`: all units that may be left are in a bucket
  /// that has to be recovered. Throws Error also where a bucket cannot be asked that may have the
  /// last units.
  Task<Admission> buy(BuyerId buyer, RequestId request, std::int64_t units = 1);
  Task<std::optional<SaleOrder>> find(BuyerId buyer, RequestId request);
  Task<std::optional<SaleOrder>> latest(BuyerId buyer);
  /// Of all buckets, one after another: while they sell the sum is of no instant.
  Task<BucketedStatus> status();
  Task<void> close();

  // What follows writes into the database, as the same functions of Sale, and blocks the thread.

  void close(OrderStore& orders);
  EndedOrder cancel(OrderStore& orders, BuyerId buyer, RequestId request, std::string reason);
  UnitsResult cancel_units(OrderStore& orders, BuyerId buyer, RequestId request, std::int64_t units,
                           std::string key, std::string reason = {});
  /// `sale` of the payment is the name of the whole sale.
  PaymentResult pay(OrderStore& orders, const Payment& payment);
  /// Up to `most` of each bucket.
  std::size_t expire(OrderStore& orders, std::size_t most = 100);
  /// False: more is sold than that; nothing was changed. Fewer units are taken from bucket 0, into
  /// which they are borrowed first. Throws Error: server (buyers were quicker, each time; or a
  /// bucket has to be recovered), and as Sale::change_stock().
  bool change_stock(OrderStore& orders, std::int64_t stock);
  /// Sale::settle() of each bucket; and what died on its way between two buckets arrives.
  void settle(OrderStore& orders);

 private:
  class Impl;
  explicit BucketedSale(std::unique_ptr<Impl> impl) noexcept;
  static Task<BucketedSale> make(Store& store, SaleDefinition definition, BucketOptions options,
                                 OrderStore* orders);
  std::unique_ptr<Impl> impl_;
};

/// Moves the orders of all buckets into the database, each by an OrderWorker in a thread of its
/// own. With OrderWorkerOptions::recovers, a bucket whose server lost something is recovered, and
/// then gets its share of the stock back.
class BucketedWorker {
 public:
  using OpenOrders = std::function<std::unique_ptr<OrderStore>()>;

  /// `open_orders` is called once for each bucket, by its thread. REQUIRES: Store and sale live
  /// longer. Throws Error{bad_argument} for options out of range.
  BucketedWorker(Store& store, const BucketedSale& sale, OpenOrders open_orders,
                 OrderWorkerOptions options = {});
  ~BucketedWorker();

  /// As OrderWorker::run(). What ends one bucket's worker ends all, and is thrown.
  void run(std::stop_token stop);
  /// As OrderWorker::drain(), one bucket after another, in this thread.
  void drain(std::stop_token stop = {});
  /// Sums. Any thread.
  WorkerProgress progress() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// As audit() of each bucket, whose checks have its index in front ("3:orders_counted"), and of the
/// whole: that the buckets and what is under way between them are the stock.
SaleAudit audit(Store& store, const BucketedSale& sale, OrderStore& orders,
                AuditOptions options = {});

/// As recover() of each bucket, one after another; where one had lost something, it has its share
/// of the stock again with the last of them. Returns the sums. Throws Error as recover(), and
/// bad_argument where neither store nor database knows a bucket of that sale.
SaleRecovery recover_buckets(Store& store, const std::string& sale, OrderStore& orders,
                             RecoveryOptions options = {});

}  // namespace sluice
