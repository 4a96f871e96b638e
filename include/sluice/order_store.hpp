/// The database that admitted orders end in.
///
/// Guarantee (of `open_order_store`): an insert is one transaction, on disk when it returns; an
///   order is inserted once, however often it is given; the units of the inserted orders are
///   exactly what the database's stock lost; the database itself refuses a second order under the
///   same (sale, id), (sale, number), (sale, buyer, n) or (sale, buyer, request), and a stock below
///   zero. An order ends once: its row says how, and gives its units back to the stock in the same
///   transaction.
/// Not guaranteed: anything about rows that other programs change.
/// Threads: any, also those of workers and of functions that take one, all at once. A call blocks
///   its thread. With PostgreSQL and MariaDB up to eight run at the same time, each in a session of
///   its own; others wait. With SQLite one runs at a time. Processes: as many as the database
///   allows; each opens its own.
///
///     auto orders = open_order_store("sqlite:/var/lib/shop/orders.db");
///     orders->add_sale("maotai", 100);
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sluice/order_payments.hpp"
#include "sluice/sale.hpp"

namespace sluice {

struct InsertResult {
  struct Rejected {
    std::size_t index;   ///< among the orders given
    std::string reason;  ///< "the database has 3 units left, the order asks 5"
    /// Another order has what is this one's alone: the store has given it twice.
    bool is_taken = false;
  };
  std::size_t inserted = 0;
  std::size_t repeated = 0;        ///< were there already, the same in all fields
  std::vector<Rejected> rejected;  ///< can never be inserted; all others were
  bool stale =
      false;  ///< nothing was inserted: the sale was recovered since these orders were read
};

struct DatabaseStock {
  std::int64_t initial;      ///< as the sale was defined
  std::int64_t left;         ///< initial + changed + moved, without the units of standing orders
  std::int64_t changed = 0;  ///< by Sale::change_stock(), in sum
  /// Of a bucket: units that its row has from those of the others, or they from it, below 0.
  std::int64_t moved = 0;
};

/// The store that a sale of the database is sold in.
struct StoreOfSale {
  std::string id;          ///< a random word of the store; empty: the database knows none yet
  std::string place = {};  ///< where it was when it began, for messages; without a password
  std::int64_t epoch = 0;  ///< of the recovery that took this store; 0: it is the first one
  WallTime since{};        ///< by the database's clock
};

/// All that the database has of a sale, at one instant.
struct DatabaseTotals {
  DatabaseStock stock{};
  std::int64_t orders = 0;
  std::int64_t units = 0;  ///< of orders that stand
  std::int64_t odd = 0;    ///< orders whose version, reason or return does not fit their state, or
                           ///< whose units are none that an order has
  std::int64_t applied = 0;      ///< units by which changes that ended changed the stock
  std::int64_t last_change = 0;  ///< the last of these
  std::int64_t changes = 0;      ///< units by which changes of the stock changed it, by their list
  std::int64_t epoch = 0;        ///< how often the sale was recovered; -1: no number stands there
  std::int64_t pending_changes = 0;  ///< that did not end yet; one, unless somebody wrote there
  std::int64_t last_refused = 0;     ///< the last change that the store refused
  std::int64_t odd_changes = 0;      ///< that do not count 1, 2, 3 ..., or stand in no state
  std::int64_t odd_returns = 0;      ///< that are of no order that ended with so many units
};

/// What the database has of a buyer.
struct BuyerTotals {
  BuyerId buyer;
  std::int64_t orders = 0;
  std::int64_t live = 0;   ///< of these, that stand
  std::int64_t units = 0;  ///< of those that stand
};

/// What became of an order that was to end.
struct EndedOrder {
  bool now = false;                ///< it ended with this call
  std::optional<SaleOrder> order;  ///< as it stands now; empty: the database has no such order
  std::string reason;              ///< given when it ended
};

/// Units of an order that the sale gets back; or that it is to give once more, which is a retake:
/// an order that had expired is paid late. A retake is `done` when the store has given them.
struct OrderReturn {
  SaleOrder order;
  std::int64_t seq = 1;    ///< the version of the order that it belongs to
  std::int64_t units = 0;  ///< below 0: a retake
  bool done = false;       ///< the store has them, too
  bool ends = true;        ///< the order ended; false: its other units stand
};

/// A change of a sale's stock. Of each sale one is pending at most.
struct StockChange {
  std::int64_t seq = 0;    ///< 1, 2, 3 ... of the sale
  std::int64_t delta = 0;  ///< units more, or fewer
  bool now = false;        ///< begun with this call
};

/// What operators watch of a sale in the database, at one instant.
struct OrderFigures {
  struct Count {
    OrderState state = OrderState::awaiting;
    std::int64_t orders = 0;
  };
  std::vector<Count> orders = {};         ///< of each state that some order has
  std::optional<WallTime> next_due = {};  ///< the first deadline of an order that awaits payment
  std::int64_t due_soon = 0;              ///< orders whose deadline comes within a minute, or came
  std::int64_t payments_waiting = 0;
  std::int64_t payments_asking = 0;
  std::int64_t payments_flagged = 0;
  std::int64_t refunds = 0;          ///< that are not done
  std::int64_t refunds_failing = 0;  ///< of these, that failed before
  std::int64_t messages = 0;         ///< that are not sent
  std::int64_t messages_dead = 0;
  std::int64_t messages_failing = 0;           ///< not sent, and failed before; none while stopped
  std::int64_t messages_stopped = 0;           ///< not sent, as the receiver wants no more (410)
  std::optional<WallTime> stopped_since = {};  ///< not known of what an older version has stopped
  std::optional<WallTime> failing_since = {};  ///< when the oldest of these was left
  std::string last_failure = {};  ///< why the latest of these, or of the stopped, was not delivered
};

/// Which orders a list has, the newest first.
struct OrderQuery {
  std::optional<OrderState> state = {};
  std::optional<BuyerId> buyer = {};
  std::int64_t before = INT64_MAX;  ///< ids are below that
};

/// Every function throws Error when the database cannot be used now: database (locked, gone),
/// read_only, out_of_space, corrupt. The effect is `unknown` where a COMMIT was under way, else
/// `none`; giving the same orders again is safe. What the database has undone itself (a deadlock, a
/// session that broke before the COMMIT) is tried again before anybody hears of it.
class OrderStore {
 public:
  virtual ~OrderStore() = default;

  /// Enters a sale and its stock, unless it is there. Throws Error{config_mismatch} when it is
  /// there with another stock.
  virtual void add_sale(const std::string& sale, std::int64_t stock) = 0;

  /// Brings the orders of one sale in, and takes their units off its stock. Rejects one by one what
  /// can never fit. Takes none that were read from the store in another epoch than the present one.
  virtual InsertResult insert(const std::string& sale, std::span<const SaleOrder> orders,
                              std::int64_t epoch = 0) = 0;
  /// Begins a new epoch above `above`, and returns it: from now on no order is inserted that was
  /// read before. The sale is sold in `store` from now on, where that has an id. `token` names what
  /// has begun it.
  virtual std::int64_t begin_epoch(const std::string& sale, std::int64_t above = 0,
                                   const StoreOfSale& store = {},
                                   const std::string& token = {}) = 0;
  /// The token of the present epoch.
  virtual std::string epoch_token(const std::string& sale) = 0;
  /// The present epoch; 0: the sale was never recovered, or is not in the database.
  virtual std::int64_t epoch(const std::string& sale) = 0;

  /// Empty: the database does not know the sale.
  virtual std::optional<StoreOfSale> store_of(const std::string& sale) = 0;
  /// From now on this OrderStore changes the sale for `store` alone: each transaction that changes
  /// it throws Error{config_mismatch} where the database says that it is sold in another one by
  /// now, and Error{database} where it has come less far than it had (see mark()); both with no
  /// effect. Enters the store where the database knows none. False: the database has come less far
  /// than `mark`, as a backup was restored.
  virtual bool sell_in(const std::string& sale, const StoreOfSale& store,
                       const std::string& mark) = 0;
  /// The store of the sale that had the id `before` has that of `store` from now on. False: it had
  /// neither of them, and nothing was done.
  virtual bool renew_store(const std::string& sale, const std::string& before,
                           const StoreOfSale& store) = 0;
  /// Of the sales that this OrderStore changes for a store, those that are sold in another one by
  /// now, or of which the database has come less far than it had. One question for all.
  virtual std::vector<std::string> sold_elsewhere() = 0;
  /// How far the database has come with a sale, as this OrderStore knows: a text that rises with
  /// each transaction that changes the sale. Empty: it knows nothing yet. Asks nobody.
  virtual std::string mark(const std::string& sale) = 0;

  /// Up to `most` orders with an id above `after`, ids rising.
  virtual std::vector<SaleOrder> page(const std::string& sale, std::int64_t after,
                                      std::size_t most) = 0;
  /// The orders with these ids, in no order; those that are not there are left out.
  virtual std::vector<SaleOrder> find(const std::string& sale,
                                      std::span<const std::int64_t> ids) = 0;
  /// For each of the orders, whether it can never get in as another one has its id, its number, its
  /// place (buyer, n) or its request.
  virtual std::vector<bool> are_taken(const std::string& sale,
                                      std::span<const SaleOrder> orders) = 0;
  /// Of those of the buyers that have orders, in no order.
  virtual std::vector<BuyerTotals> totals(const std::string& sale,
                                          std::span<const BuyerId> buyers) = 0;
  /// Looks at every order.
  virtual DatabaseTotals totals(const std::string& sale) = 0;
  /// Counts every order: for a person who looks now and then. All is 0 where the database does not
  /// know the sale.
  virtual OrderFigures figures(const std::string& sale) = 0;
  /// The sales that the database knows, by name.
  virtual std::vector<std::string> sales() = 0;
  /// Empty: the database does not know the sale.
  virtual std::optional<DatabaseStock> stock(const std::string& sale) = 0;

  /// Fields of the sale's definition and their values, as the store has them. The database keeps
  /// the first value of each.
  using Fields = std::vector<std::pair<std::string, std::string>>;
  virtual void keep_definition(const std::string& sale, const Fields& fields) = 0;
  /// Another value of one of them.
  virtual void change_definition(const std::string& sale, const std::string& field,
                                 const std::string& value) = 0;
  /// Empty: the database has none, or does not know the sale.
  virtual Fields definition(const std::string& sale) = 0;
  /// How many buyers have more than `limit` orders in the database that did not end.
  virtual std::int64_t buyers_above(const std::string& sale, std::int64_t limit) = 0;

  /// The order with this number.
  virtual std::optional<SaleOrder> find_number(const std::string& sale,
                                               const std::string& number) = 0;
  /// Up to `most` orders of a buyer with an id above `after`, ids rising.
  virtual std::vector<SaleOrder> orders_of(const std::string& sale, const BuyerId& buyer,
                                           std::int64_t after, std::size_t most) = 0;
  /// Up to `most` orders, ids falling. Of a state that few have it looks at all of the sale.
  virtual std::vector<SaleOrder> newest(const std::string& sale, const OrderQuery& which,
                                        std::size_t most) = 0;
  /// The order of this buyer's request.
  virtual std::optional<SaleOrder> find_request(const std::string& sale, const BuyerId& buyer,
                                                const RequestId& request) = 0;

  /// Ends an order that is `awaiting`: in one transaction it gets the state and the reason, the
  /// stock its units, and a return is noted that the store does not know of yet. A payment of it
  /// that is kept and not applied yet is applied first: the order may be `paid` then, and goes on.
  virtual EndedOrder end_order(const std::string& sale, std::int64_t id, OrderState state,
                               const std::string& reason) = 0;
  /// Brings in an order that ended before the database had it, as insert() and end_order() do
  /// together; the stock stays as it is, so it needs no units there. Nothing was done where the
  /// result has it `repeated`, `rejected` or `stale`.
  virtual InsertResult insert_ended(const std::string& sale, const SaleOrder& order,
                                    OrderState state, const std::string& reason,
                                    std::int64_t epoch) = 0;
  /// Why the orders with these ids ended, in the same order; empty: it stands.
  virtual std::vector<std::string> reasons(const std::string& sale,
                                           std::span<const std::int64_t> ids) = 0;
  /// About `most` returns of orders with an id above `after`, ids rising, and of each order all
  /// that there are; or those alone that the store does not know of yet. Fewer: these are the last.
  virtual std::vector<OrderReturn> returns(const std::string& sale, std::int64_t after,
                                           std::size_t most, bool only_pending) = 0;
  /// The store has the units of this return.
  virtual void return_done(const std::string& sale, std::int64_t id, std::int64_t seq) = 0;
  /// The same of several, in one transaction.
  virtual void returns_done(const std::string& sale, std::span<const OrderReturn> returns) = 0;

  /// Begins to change what the sale has to sell in all to `stock` units. More units are there at
  /// once, fewer when the change ends. Empty: it has as many. Returns a change that is pending,
  /// instead of this one, where there is one: end that first.
  virtual std::optional<StockChange> begin_stock_change(const std::string& sale,
                                                        std::int64_t stock) = 0;
  virtual std::optional<StockChange> pending_stock_change(const std::string& sale) = 0;
  /// Ends a pending change; `applied` is false where the store refused it.
  virtual void end_stock_change(const std::string& sale, std::int64_t seq, bool applied) = 0;
  /// The number of the last change, pending or not; 0: there is none.
  virtual std::int64_t last_stock_change(const std::string& sale) = 0;
  /// Notes that the change `seq` has led to `stock` units, where the database has lost it and,
  /// maybe, some before it; a pending one is refused. Throws Error{database} where more are sold.
  virtual void note_stock_change(const std::string& sale, std::int64_t seq, std::int64_t stock) = 0;

  /// The time by the database's clock, which is the same for all who use it: deadlines go by it.
  virtual WallTime wall() = 0;
  /// Payments, deadlines, refunds and messages of its orders.
  virtual OrderPayments& payments() = 0;

  /// Writes what nothing reads, and commits: throws what a change of an order would meet, as a disk
  /// that is full.
  virtual void check_writable() = 0;

  /// Which database this is, wherever it lies and whatever opens it: a random word that it got when
  /// it was made. A copy has the same.
  virtual std::string identity() = 0;
  /// For messages: where it is, without a password.
  virtual std::string describe() const = 0;
};

struct OrderStoreLimits {
  /// How long a call may take, 1 s to 24 h. A session whose server has not answered by then is
  /// given up: the call throws Error{database}, with the effect unknown where a COMMIT was under
  /// way. Waits for locks, and in servers statements that only read, end a fifth earlier. Tables
  /// are made or changed without a limit, and a file of SQLite on a disk that hangs has none.
  std::chrono::milliseconds answer{600'000};
  bool makes_file = true;  ///< false: a file of SQLite that is not there is an Error{database}
};

/// "sqlite:/path/to/orders.db" (created when it is not there), "sqlite::memory:" (gone with the
/// OrderStore); with sluice::sale_databases also "postgresql://user:password@host:port/database"
/// and "mariadb://..." or "mysql://...", whose settings docs/sale.md lists. The tables are made
/// where they are missing, and brought up to date. Blocks up to 5 s where a server does not
/// answer, and for as long as tables are changed, by another process, too, which the log says.
/// Throws Error: bad_argument for another scheme or a setting that there is not; config_mismatch
/// where a newer version of Sluice has made the tables; corrupt where a file of an older version
/// has two orders of one request (names them); and as OrderStore's functions. No message has the
/// password in it.
std::unique_ptr<OrderStore> open_order_store(const std::string& url, OrderStoreLimits limits = {});

/// Where the orders of a sale go, as its store remembers it, without a password; of a sale with
/// buckets, those of the first. Empty: nowhere yet, or the store does not know the sale. Blocks the
/// thread, and throws what the store throws.
std::string database_of_sale(Store& store, const std::string& sale);

}  // namespace sluice
