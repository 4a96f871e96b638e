/// A flash sale: a stock that is never oversold, so many orders a buyer, every admitted order in a
/// database.
///
/// Guarantee: while the store keeps its data, the units of all orders that stand (admitted, and not
///   cancelled) never exceed the stock; no buyer has more orders or units than the limits; an order
///   gets all its units or none; order numbers are type + day + counter from 1, without a gap,
///   dated by the store's clock in the zone of the sale, and none is used twice; ids rise strictly,
///   and no two sales of a store give the same one (of any 4095 that were created one after
///   another). An admitted order stands in the stream in the same atomic step, and OrderWorker
///   takes it from there into the database exactly once. The same buyer with the same request id
///   always gets the same order, however often and however late he asks, until the sale is
///   archived. An order is cancelled once, and its units return once, whichever process dies when.
/// Not guaranteed: orders that the store lost and that had not reached the database. Where a server
///   was started again, or a replica took its place, buyers get `recovering` until recover()
///   (sluice/sale_recovery.hpp) has brought back what the database knows; orders that can be no
///   more end as dead letters (docs/sale.md), counted in `sluice_sale_dead_letters_total`. Numbers
///   are unique among the sales of one store: where several stores write into one database, give
///   their sales types of their own.
/// Threads: any. Calls made at the same time travel together, in one round trip and one script.
/// In Redis, all in the slot of NAME, no TTL: hash {NAME}:sale (definition, sold, counters), hash
///   {NAME}:buyers (buyer to his latest order), hash {NAME}:requests (buyer and request to an
///   earlier order), hash {NAME}:returned (units of cancelled orders), stream {NAME}:orders with
///   the group `workers` (orders on their way), stream {NAME}:dead (orders that the database
///   refused). An order of a buyer with 13 bytes and a request of 36 is 160 bytes. archive()
///   leaves the first hash alone. Beside them for all sales: the string sluice:sales counts those
///   that were created, the sorted set sluice:sales:names has their names, the hash
///   sluice:sales:types the sale that gives numbers of each type.
///
///     auto sale =
///         Sale::create(*store, {.name = "maotai", .stock = 100, .number_type = "MT"}).get();
///     auto answer = sale.buy(BuyerId{"42"}, RequestId{"c1f0"}).get();
///     if (answer.order) print(answer.order->number);  // MT202601020001
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/store.hpp"

namespace sluice {

/// Who buys: 1 to 128 bytes of any kind.
struct BuyerId {
  std::string value;
  friend bool operator==(const BuyerId&, const BuyerId&) = default;
};

/// One wish to buy: 1 to 128 bytes of any kind, made by the buyer's side once and sent again with
/// each retry.
struct RequestId {
  std::string value;
  friend bool operator==(const RequestId&, const RequestId&) = default;
};

/// How the orders of a sale are paid for.
struct PaymentTerms {
  /// From when the database has an order until it is to be paid: 1 ms to 90 days.
  std::chrono::microseconds window = std::chrono::minutes{30};
  /// So much later an unpaid order ends: as long as a provider may take to tell of a payment, up to
  /// a day. Tell the provider and the buyer the time before it.
  std::chrono::microseconds grace = std::chrono::minutes{2};
  /// Of a unit, in the smallest unit of the currency: 1 to 10^12.
  std::int64_t price = 0;
  /// Three capital letters (ISO 4217).
  std::string currency = {};

  friend bool operator==(const PaymentTerms&, const PaymentTerms&) = default;
};

/// Which part of a sale with buckets a sale is (sluice/bucketed_sale.hpp).
struct BucketPlace {
  std::int64_t index = 0;  ///< from 0
  std::int64_t count = 0;  ///< buckets of the whole sale
  std::int64_t stock = 0;  ///< units of the whole sale

  friend bool operator==(const BucketPlace&, const BucketPlace&) = default;
};

struct SaleDefinition {
  /// 1 to 128 bytes without braces.
  std::string name;
  /// Units to sell, 0 to 10^12, and no more than a day has numbers (see `digits`): each may be an
  /// order. Sale::change_stock() changes what is sold, not the definition.
  std::int64_t stock = 0;
  /// From when (inclusive) and until when (exclusive) the store's clock lets buyers in; empty: no
  /// such bound.
  std::optional<WallTime> opens_at = {};
  std::optional<WallTime> closes_at = {};
  /// Orders a buyer may have, cancelled ones not counted; 0: as many as he likes (ordinary goods).
  std::int64_t limit = 1;
  /// Units a buyer may have in all these orders; 0: no such limit.
  std::int64_t unit_limit = 0;
  /// Units of the largest order; 0: only the stock bounds it.
  std::int64_t largest_order = 0;
  /// What order numbers begin with: 1 to 16 letters, digits, '-' or '_'. There is no default: two
  /// sales of one type would give the same numbers, so a type belongs to one sale of a store until
  /// that is archived and the day of its last number over.
  std::string number_type = {};
  /// IANA name of the zone whose midnights begin a new day of numbers.
  std::string zone = "UTC";
  /// Width of the counter in a number, 1 to 12: a day has 10^digits - 1 numbers, then it is *full*.
  int digits = 4;
  /// Empty: orders are not paid for here, and never expire.
  std::optional<PaymentTerms> payment = {};
  /// Set by BucketedSale alone. `stock` is what the bucket has in the beginning.
  std::optional<BucketPlace> bucket = {};

  friend bool operator==(const SaleDefinition&, const SaleDefinition&) = default;
};

/// How an order stands. An order that ended otherwise than by being paid for gives its units back
/// to the sale; its number is not used again.
enum class OrderState {
  awaiting,   ///< admitted, not paid yet
  cancelled,  ///< before it was paid
  paid,       ///< in time, or late while units were left
  expired,    ///< it was not paid in time
  refunding,  ///< it ended, and money goes back
  refunded,   ///< the provider has taken all refunds
};
std::string_view to_string(OrderState state) noexcept;
/// Whether an order in that state holds units of the sale.
constexpr bool stands(OrderState state) noexcept {
  return state == OrderState::awaiting || state == OrderState::paid;
}

struct SaleOrder {
  std::string number;  ///< "MT202601020001"
  std::int64_t id;     ///< layout of IdWorker: IdWorker::parts(id)
  std::int64_t units;
  BuyerId buyer;
  std::int64_t n;      ///< the buyer's n-th order in this sale, from 1; cancelled ones count
  WallTime issued_at;  ///< by the store's clock
  RequestId request;
  /// As far as the store knows it: an order that stands is `awaiting` there, also when it is paid,
  /// and one that ended may be further. OrderStore has the present state.
  OrderState state = OrderState::awaiting;

  friend bool operator==(const SaleOrder&, const SaleOrder&) = default;
};

enum class SaleOutcome {
  admitted,
  repeated,     ///< this request was admitted before; the same order again
  other_units,  ///< this request was admitted before, for other units; that order
  cancelled,    ///< this request was admitted before, and its order has ended: its state says how
  already_bought,  ///< the buyer has as many orders as the limit allows; his latest order
  too_many_units,  ///< the buyer would have more units than the limit allows; his latest order
  sold_out,
  not_enough,  ///< some units are left, but fewer than asked
  full,        ///< the numbers of the day are used up; see SaleDefinition::digits
  not_started,
  closed,      ///< also when the sale was archived
  moving,      ///< of a sale with buckets: its last units are on their way, ask again soon
  recovering,  ///< the store lost orders, and gets them back from the database: ask again soon
  not_loaded,  ///< the store does not know the sale (any more)
};
std::string_view to_string(SaleOutcome outcome) noexcept;

struct Admission {
  SaleOutcome outcome;
  /// Of admitted, repeated, other_units, cancelled and already_bought; of too_many_units where he
  /// has one.
  std::optional<SaleOrder> order;

  /// The buyer has what this request asked for.
  bool has_order() const noexcept {
    return outcome == SaleOutcome::admitted || outcome == SaleOutcome::repeated;
  }
};

enum class SaleState {
  not_loaded,
  not_started,
  open,
  sold_out,
  full,  ///< the numbers of the day are used up; open again tomorrow
  closed,
  recovering,
  archived  ///< and its orders are in the database alone
};
std::string_view to_string(SaleState state) noexcept;

struct SaleStatus {
  SaleState state = SaleState::not_loaded;
  std::int64_t stock = 0;
  std::int64_t sold = 0;     ///< units
  std::int64_t orders = 0;   ///< admitted
  std::int64_t waiting = 0;  ///< entries of the stream: not known to be in the database yet
  std::int64_t dead = 0;     ///< dead letters
  std::int64_t left() const noexcept { return stock - sold; }
};

/// How orders are on their way into the database.
struct OrderFlow {
  struct Worker {
    std::string name;                  ///< of its consumer
    std::int64_t pending = 0;          ///< entries that it has taken, and not acknowledged
    std::chrono::milliseconds idle{};  ///< since it last asked for entries
  };
  std::int64_t entries = 0;  ///< in the stream
  /// How long the oldest of them has been there; empty: there is none.
  std::optional<std::chrono::milliseconds> oldest = {};
  std::vector<Worker> workers = {};  ///< in no order
};

/// An order that a worker could not bring into the database.
struct DeadLetter {
  std::string id;     ///< its place among the dead letters
  std::string entry;  ///< the place that it had in the stream of orders
  std::string reason;
  std::vector<std::pair<std::string, std::string>> fields;  ///< as they stood in the stream
  std::optional<SaleOrder> order;  ///< what they say; empty: they make no order
};

/// Sale::archive() refuses: something has to end before. what() says what, and what to do.
class SaleIsNotOver final : public Error {
 public:
  explicit SaleIsNotOver(const std::string& message) : Error(Errc::server, message) {}
};

class BucketedSale;
class OrderStore;
struct EndedOrder;
struct Payment;
struct PaymentResult;
struct UnitsResult;

struct ArchiveOptions {
  /// All orders go into this file, too, as CSV, each as it stands when the sale is archived, or
  /// later; it is there whole or not at all. Empty: the database alone has them.
  std::string file = {};
  /// About how many orders one step deletes, 1 to 10,000. Fewer hold up a server for less: 100 for
  /// less than a millisecond, also where a hash of a million shrinks meanwhile; 500 for up to 10.
  std::size_t step = 100;
};

/// REQUIRES: the Store lives longer, and the Sale longer than its Tasks. Moving it leaves Tasks
/// under way valid.
class Sale {
 public:
  /// Throws Error where create() would, and creates nothing.
  static Task<void> check(Store& store, SaleDefinition definition);
  /// Defines the sale in the store, or joins it where it is defined already, in the same words;
  /// also where it is over: an archived sale stays `closed` for ever. Throws Error: bad_argument (a
  /// field out of range, a sale that could not sell its stock, another's number_type, or the name
  /// of one with buckets; says which and why), config_mismatch (defined otherwise; says how),
  /// wrong_type (a key is of another type, or no sale's hash; a hash of buyers, requests or returns
  /// and a stream are taken for what this sale left when the store lost a part of it). Not
  /// guaranteed: that the store has not lost this sale. One that comes back empty lets create()
  /// begin a new one, which sells the stock once more until a worker or the create() below sees the
  /// orders in the database; those who bought meanwhile are dead letters then, see give_back().
  static Task<Sale> create(Store& store, SaleDefinition definition);
  /// The same for a program that can reach the database: where that knows the sale and the store
  /// does not, the sale is `recovering` from its first instant. Blocks the thread. Throws Error{
  /// config_mismatch} also where the orders go into another database.
  static Sale create(Store& store, SaleDefinition definition, OrderStore& orders);
  /// Empty: the store knows no such sale. Throws Error: config_mismatch (of a version of Sluice
  /// that keeps sales otherwise; says what to do).
  static Task<std::optional<Sale>> load(Store& store, std::string name);
  /// The sales of a store, archived ones too, in the order of their creation. O(sales), nothing
  /// else is looked at.
  static Task<std::vector<std::string>> names(Store& store);

  ~Sale();
  Sale(Sale&&) noexcept;
  Sale& operator=(Sale&&) noexcept;

  const SaleDefinition& definition() const noexcept;

  /// Buys `units` for `buyer`, all or none. After an Error, also one with effect `unknown`, ask
  /// again with the same request id: it ends in one order. One round trip, shared with the calls
  /// made meanwhile.
  /// Throws Error: bad_argument (at once: empty or long id, units out of range), corrupt (what the
  /// store has of this buyer, or of the sale, was damaged), and what the store throws.
  Task<Admission> buy(BuyerId buyer, RequestId request, std::int64_t units = 1);

  /// Purchases begun while it lives, by whichever thread, are one admission at its end: for a
  /// program that has many at hand at once, as a server at each turn of its loop. Null: they travel
  /// together already. A thread that holds it must not wait for a purchase: `.get()` would for
  /// ever.
  std::shared_ptr<void> gather();

  /// What the store has of a request that was admitted, also where it ended since; the database may
  /// not have it yet. Empty: nobody was admitted for it, or the sale is archived. One round trip,
  /// two for an earlier order of the buyer. Throws Error as buy(), bad_argument aside.
  Task<std::optional<SaleOrder>> find(BuyerId buyer, RequestId request);
  /// The buyer's latest order, in the same way.
  Task<std::optional<SaleOrder>> latest(BuyerId buyer);

  /// Throws Error: corrupt (a figure in the store that no sale writes), and what the store throws.
  Task<SaleStatus> status();
  /// An id up to which the database has every order that was admitted, but for dead letters and
  /// what a recovery brings in later; -1: nobody was admitted yet. So a program that reads page
  /// after page up to it passes over none. Where the store does not know the sale: the highest id.
  Task<std::int64_t> recorded_up_to();
  /// The stream of orders, and those who read it: up to `most` workers. One round trip. Throws what
  /// the store throws.
  Task<OrderFlow> flow(std::size_t most = 100);
  /// Admits nobody any more. Orders on their way still reach the database. There is no way back.
  /// The store alone knows of it: one that comes back from before it, sells on after its recovery,
  /// unless a worker has begun since then.
  Task<void> close();

  // What follows writes into the database that the workers write into: it blocks the thread
  // (order_store.hpp says which threads may share an OrderStore). After an Error, or the death of
  // the process, do the same again, or settle(). The first database that is given is the one that
  // the sale goes into, from then on; another is refused (config_mismatch: says which, and what to
  // do). While the sale has to be recovered nothing is changed (server).

  /// As close(), and no recovery opens the sale again.
  void close(OrderStore& orders);
  /// Cancels the order of a request before it is paid, and gives its units back to the sale. Its
  /// number is not used again; a repeat of the request gets `cancelled`; the buyer may buy anew
  /// with another one. An order on its way is brought into the database first; one of an archived
  /// sale ends in the database alone. `order` is empty where nobody was admitted for that request,
  /// `now` false where the order had ended before. A reason has up to 1000 bytes.
  /// Throws Error: bad_argument (a longer reason), database (refuses the order, see dead_letters();
  /// or has lost it), server (the store lost the order; it ended in the database, and settle() goes
  /// on after the recovery), and what both throw.
  EndedOrder cancel(OrderStore& orders, BuyerId buyer, RequestId request, std::string reason);
  /// Cancels some units of an order that stands, or all that are left (`units` is 0), also of a
  /// paid one: they return to the sale, and their price goes back. Once for each `key`, of 1 to 128
  /// bytes, which the caller makes once and sends again with each retry. An order that the database
  /// does not have yet is `unknown`: cancel() ends it whole. Throws Error: bad_argument (the key,
  /// the units, a longer reason, or the order changed 90 times), and as cancel().
  UnitsResult cancel_units(OrderStore& orders, BuyerId buyer, RequestId request, std::int64_t units,
                           std::string key, std::string reason = {});
  /// Keeps a payment, once for each event of its provider, and pays its order with it if it fits.
  /// One that comes before its order waits for it; one that comes after the order has expired takes
  /// the units again, if some are left and the buyer has not bought otherwise, else its money goes
  /// back. After an Error, or the death of the process, tell it again, or settle().
  /// Throws Error: bad_argument (another sale's, or fields out of range), and as cancel(); once it
  /// is kept, whatever is thrown, workers go on with it.
  PaymentResult pay(OrderStore& orders, const Payment& payment);
  /// Ends up to `most` orders that were not paid in time: their units return to the sale. Workers
  /// do it, too. Returns how many.
  std::size_t expire(OrderStore& orders, std::size_t most = 100);
  /// Changes what the sale sells in all. False: more is sold than that; nothing was changed.
  /// Throws Error: bad_argument (out of range, more than a day has numbers, an archived sale, or a
  /// bucket of a sale: see BucketedSale),
  /// server (store and database do not know the same changes: recover the sale).
  bool change_stock(OrderStore& orders, std::int64_t stock);
  /// Does what a cancel() or change_stock() began and a crash left undone.
  void settle(OrderStore& orders);

  /// Ends the sale and takes its orders out of the store: closes it, brings the last orders into
  /// the database, audits, writes the file, and deletes in small steps; buyers get `closed` then,
  /// whatever they ask. Payments of orders that are not there get flagged; refunds and messages
  /// that are not sent yet go on. Killed anywhere, the next call goes on. False: it was archived
  /// before.
  /// Throws SaleIsNotOver (dead letters: settle them first; orders that await their payment, or
  /// late payments that await their units: cancel them or wait; or `stop` came), Error:
  /// bad_argument (options; or a bucket of a sale that is not closed), corrupt (the audit finds a
  /// fault; says which). Until it deletes, nothing is lost but that the sale is closed.
  bool archive(OrderStore& orders, ArchiveOptions options = {}, std::stop_token stop = {});

  /// Up to `most` dead letters after the one with id `after` (empty: from the oldest).
  Task<std::vector<DeadLetter>> dead_letters(std::string after = {}, std::size_t most = 100);
  /// Sends a dead letter to the workers again, once its cause is gone. False: there is none with
  /// that id.
  Task<bool> revive(std::string dead_letter_id);
  /// Settles a dead letter otherwise: its order is cancelled, as by cancel(), the database gets it
  /// as one that ended, its units return to the sale, and the letter is removed. Where another
  /// order has its number in the database (sold once more by a store that had lost the sale), it
  /// leaves the store without a trace; recover the sale when all such letters are settled. The
  /// `order` of the result is empty where nothing was to be given back: the letter makes no order,
  /// or one that neither store nor database knows. Empty: there is no letter with that id. Blocks
  /// the thread; after an Error, or the death of the process, do it again. A reason has up to 1000
  /// bytes. Throws Error: bad_argument (a longer reason), database (refuses it even so), server (as
  /// cancel()), and what both throw.
  std::optional<EndedOrder> give_back(OrderStore& orders, std::string dead_letter_id,
                                      std::string reason);

 private:
  friend class BucketedSale;
  class Impl;
  explicit Sale(std::unique_ptr<Impl> impl) noexcept;
  Sale(Store& store, SaleDefinition definition);
  static Task<bool> is_there(Store& store, const SaleDefinition& definition);
  static Task<Sale> make(Store& store, SaleDefinition definition, bool was_lost);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
