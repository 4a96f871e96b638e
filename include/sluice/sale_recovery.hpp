/// Heals a sale whose store lost what it had: an older replica took the server's place, it was
/// restored from a file, or it is empty.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/order_store.hpp"
#include "sluice/sale.hpp"

namespace sluice {

struct SaleRecovery {
  bool made_again = false;       ///< the store did not know the sale any more
  std::string reason;            ///< why the sale was shut, in words; empty: it was not
  std::int64_t in_database = 0;  ///< orders
  std::int64_t restored = 0;     ///< of these, that the store had lost
  std::int64_t given_back = 0;   ///< returns that it had lost
  std::int64_t on_the_way = 0;   ///< orders of the streams that are not in the database yet
  std::int64_t sent_again = 0;   ///< orders that the store knew and that were on no way
  std::int64_t ended_again = 0;  ///< orders that had ended, and whose end the database had lost
  std::int64_t gaps = 0;         ///< places in the numbers where orders are lost for good
  std::int64_t removed = 0;      ///< entries of the streams whose buyer has another order instead
};

struct RecoveryOptions {
  /// The database that the sale went into is lost: it goes into this one from now on. Stop the
  /// workers that write into the other one first.
  bool new_database = false;
  /// The store that the sale was sold in is lost, or came back empty: it is sold in this one from
  /// now on. The database refuses all that the other one still brings, and its buyers get
  /// `recovering` as soon as a process that uses it hears of that, with the next commit. Orders
  /// that it told of meanwhile are lost: end what uses it first.
  bool new_store = false;
};

/// Closes the gate (buyers get `recovering`; cancels and changes of the stock are refused), begins
/// a new epoch in the database, so that no worker brings in what it read before, writes into the
/// store what the database has, sends orders on their way that were on none, tells the database of
/// ends and changes of the stock that it has lost, counts all anew, and opens the gate. Which part
/// was lost, and who made the sale again, makes no difference. A sale that the database knows as
/// closed, or archived, is so again; of one that the store knows as archived the store has no
/// orders, and its database is accepted as it is, also where it came back from before. Workers and
/// sellers may run meanwhile. Safe where nothing was lost, and each step does no harm when it is
/// done twice: after an Error, or the death of the process, do it again. What can be promised: an
/// order that had reached the database, or that the surviving store has, is its buyer's, and a
/// repeat of his request gets it. An order that was told and that neither has is lost: a repeat of
/// its request is a new request. Blocks the thread, for some 10 seconds 100,000 orders at the most.
/// Keeps some 200 bytes for each buyer with several orders, and for each order that ended. Throws
/// Error: bad_argument (neither store nor database knows the sale), config_mismatch (the orders go
/// into another database; says which; or the database has its orders from another store; names
/// both), database (it has not the units that the store's stock needs), server (the store changed
/// again, or another recovery began: do it again), and what both throw.
SaleRecovery recover(Store& store, const std::string& sale, OrderStore& orders,
                     RecoveryOptions options = {});

}  // namespace sluice
