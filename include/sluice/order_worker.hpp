/// Moves admitted orders from the stream of a sale into the database.
///
/// Guarantee: an entry is acknowledged only after the COMMIT that holds its order, so a worker may
///   die anywhere: what it had goes to another one after `claim_after`, and the database takes a
///   repeat for what it is. An entry that makes no order, that the database refuses for good, or
///   that workers die of, is moved to the dead letters with the reason, never dropped. While the
///   database is locked, read-only or gone, entries wait and the worker tries again, logging what
///   is wrong; admission does not notice. A consumer group that was lost is made again, entries
///   that were handed to nobody (XGROUP DELCONSUMER) are found, and consumers of dead workers are
///   removed once they have nothing pending. What a Sale::cancel() or change_stock() began and a
///   crash left undone is settled when a worker begins, and twice in each `claim_after`.
///   An entry that contradicts the store's record of its request is a dead letter, too. Of a sale
///   that was lost and created again nothing gets in before recover() has compared: the database
///   may have other orders of the same requests.
/// Not guaranteed: that orders reach the database in the order of their ids. That every entry which
///   others wrote into the stream is refused: one without the store's record of its request may be
///   an order whose record was lost, so it is brought in, and the audit names it.
/// Threads: one worker, one thread. Run as many workers as you like, in as many processes.
/// In Redis: a consumer of its own in the group `workers` of {NAME}:orders; gone when the worker
///   stops with nothing pending. A batch costs three round trips besides the database's work.
///
///     auto orders = open_order_store("sqlite:orders.db");
///     OrderWorker worker{*store, sale, *orders};
///     std::jthread thread{[&](std::stop_token stop) { worker.run(stop); }};
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>

#include "sluice/order_store.hpp"
#include "sluice/sale.hpp"

namespace sluice {

struct OrderWorkerOptions {
  /// Largest transaction, 1 to 4000 orders. More: more orders a second under a backlog, and more to
  /// do again after a crash. A batch never waits to fill.
  std::size_t batch = 4000;
  /// How long an idle worker waits for orders at a time; also how long it may take to notice a
  /// stop.
  std::chrono::milliseconds idle_wait{250};
  /// Waits in the store, on a connection of its own, and has an order at once. False: it looks each
  /// `idle_wait`, and needs none: where the workers of many sales have one Store, which lets 64
  /// commands wait at a time.
  bool blocks = true;
  /// An entry untouched for so long belongs to a dead worker. More than the longest transaction may
  /// take.
  std::chrono::milliseconds claim_after{30'000};
  /// So often, 1 to 1000, an entry is taken together with others by workers that die; failures of
  /// the database do not count. Then it is tried alone, and becomes a dead letter when five workers
  /// have died of it so. More: orders beside such an entry wait longer.
  std::int64_t most_deliveries = 5;
  /// Pause after a failure of the database or store: doubles from the first to the longest, with
  /// jitter.
  std::chrono::milliseconds first_pause{50};
  std::chrono::milliseconds longest_pause{5'000};
  /// recover() by itself, within `idle_wait` or two, where the store is another than the sale knows
  /// (a replica took its place, it was started again, the slot has another master), or has lost the
  /// sale. One worker at a time, and none that has another database than the sale goes into.
  bool recovers = false;
};

/// What a worker did since it began.
struct WorkerProgress {
  std::uint64_t inserted = 0;
  std::uint64_t repeated = 0;    ///< were in the database already
  std::uint64_t claimed = 0;     ///< taken over from other workers, or from nobody
  std::uint64_t dead = 0;        ///< moved to the dead letters
  std::uint64_t recoveries = 0;  ///< of the sale
  std::uint64_t failures = 0;    ///< of the database or the store; each was tried again
  std::string last_failure;

  /// Of several workers: sums, and the last failure of `more`, if it has one.
  WorkerProgress& operator+=(const WorkerProgress& more);
};

/// REQUIRES: Store, Sale and OrderStore live longer.
class OrderWorker {
 public:
  /// Throws Error{bad_argument} for options out of range.
  OrderWorker(Store& store, const Sale& sale, OrderStore& orders, OrderWorkerOptions options = {});
  ~OrderWorker();

  /// Works until the sale is archived, or `stop`: then it finishes the batch under way; what it has
  /// not read stays in the stream. Blocks the thread. Throws what trying again cannot mend alone:
  /// Error{config_mismatch} when the database has the sale with another stock, or a newer Sluice
  /// has changed its tables.
  void run(std::stop_token stop);

  /// Works until the stream holds nothing that this worker may take, or `stop`. What other workers
  /// have pending may be left, unless it is old enough to be claimed. Throws as run(), and
  /// Error{server} for a sale that is not there, or was lost and created again.
  void drain(std::stop_token stop = {});

  /// Any thread.
  WorkerProgress progress() const;
  /// The name of this worker in the consumer group.
  const std::string& consumer() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
