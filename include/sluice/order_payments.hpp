/// The money of orders, as the database keeps it: payments that came, deadlines, refunds, messages.
///
/// Guarantee: each function is one transaction. The row of an order is the one judge of how it
///   ends: a payment, an expiry and a cancellation that meet change it one after another, and who
///   comes second is told what the first has made of it. A payment is kept once for each event of
///   its provider, also before its order is in the database; units return to the stock in the same
///   transaction that ends an order; and each change of an order leaves a message in the same
///   transaction, numbered by the version of the order.
/// Not guaranteed: that the store knows it. Sale and OrderWorker see to that: use their functions.
/// Threads: those of its OrderStore, which it belongs to.
/// In the database: `sale_payments` (provider, event), `sale_refunds` and `sale_messages` (sale,
///   order, version), and columns of `sale_orders`: `pay_by`, `returned`, `version`.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sluice/sale.hpp"

namespace sluice {

/// What a provider says was paid.
struct Payment {
  std::string provider;  ///< 1 to 32 letters, digits, '-' or '_'
  std::string event;     ///< the provider's id of this event, 1 to 128 bytes
  std::string sale;
  std::string order;  ///< its id, or its number, which a store that was lost may give once more
  std::int64_t amount = 0;  ///< in the smallest unit of the currency
  std::string currency;     ///< "CNY"

  friend bool operator==(const Payment&, const Payment&) = default;
};

enum class PaymentState {
  waiting,   ///< for its order, which is not in the database yet
  asking,    ///< its order had expired: the store is asked for its units
  applied,   ///< its order is paid
  returned,  ///< its order had ended: the money goes back, by a refund
  flagged,   ///< it does not fit: a person has to look at it
  // What a person has made of one that was flagged, or waited for an order that never came.
  refunding,  ///< its money goes back, whatever its order does
  refunded,   ///< it went back
  settled,    ///< it was handled outside
};
std::string_view to_string(PaymentState state) noexcept;

struct KeptPayment {
  Payment payment;
  PaymentState state = PaymentState::waiting;
  std::string note;  ///< why it was flagged; who settled it, how, and why
  WallTime received_at{};
  std::int64_t attempts = 0;  ///< to give its money back, that failed
  std::string failure = {};   ///< why the last one did
  WallTime due{};  ///< of one that goes back: when it is tried next; that went back: when it was
};

/// The place of a payment in a list.
struct PaymentPlace {
  std::string provider;
  std::string event;
};

/// The place of a message among those of a sale.
struct MessagePlace {
  std::int64_t order_id = 0;
  std::int64_t seq = 0;
};

/// An order with what it owes.
struct PayableOrder {
  SaleOrder order;
  std::int64_t returned = 0;  ///< units that were cancelled while the others stand
  std::int64_t version = 0;   ///< changes of the row: an ETag
  /// By the database's clock, so that a program whose clock is wrong ends nothing early. Empty: of
  /// a sale without payment.
  std::optional<WallTime> pay_by;
  std::int64_t due = 0;  ///< for the units that are left; 0: it has ended
};

/// What became of a payment.
struct PaymentResult {
  PaymentState state = PaymentState::waiting;
  bool now = false;  ///< with this call
  std::string note;
  std::optional<PayableOrder> order;  ///< as it stands now
  /// This event was kept before and said something else: that counts, and this payment does not.
  bool differs = false;
};

/// What became of a person's wish to settle a payment.
struct SettledPayment {
  bool now = false;                    ///< with this call
  std::optional<KeptPayment> payment;  ///< as it stands now; empty: no such payment is kept
};

/// What became of a wish to cancel some units of an order.
struct UnitsResult {
  enum class Outcome {
    cancelled,
    repeated,     ///< this key did it before
    other_units,  ///< this key took back another number of units before: nothing was changed
    ended,        ///< the order does not stand
    too_many,     ///< it has fewer units
    unknown,      ///< the database has no such order
  };
  Outcome outcome = Outcome::unknown;
  std::int64_t units = 0;             ///< that were cancelled
  std::int64_t refund = 0;            ///< money that goes back
  std::optional<PayableOrder> order;  ///< as it stands now
};

/// Money that goes back: of an order, or (`id` 0) of a payment that a person sends back.
/// refund_key() is the key under which the provider gets it, however often it is sent.
struct Refund {
  std::string sale;
  std::string order;  ///< its number
  std::int64_t id = 0;
  std::int64_t seq = 0;
  std::int64_t amount = 0;
  std::string currency;
  std::string provider;  ///< of the payment
  std::string event;
  std::string state;          ///< "asked", "done", "settled": a person has given it otherwise
  std::int64_t attempts = 0;  ///< that failed
  std::string note;           ///< why the last one did; of a settled one: who gave it, and why
  /// Of an order: which part of its payment goes back, "whole" or "500-1000", from what went back
  /// before to what has gone back with it. Empty: it was noted by an older version.
  std::string part = {};
  WallTime since{};  ///< when it was asked for
  WallTime due{};    ///< when it is tried next; of a done or settled one: when that was
};

/// What happened to an order, or to the sale, for those who want to be told.
struct OrderMessage {
  std::int64_t order_id = 0;  ///< 0: of the sale itself
  std::int64_t seq = 0;       ///< the version of the order that it tells of; of the sale: 1, 2 ...
  std::string type;           ///< "order.paid"
  std::string data;           ///< JSON
  WallTime at{};
  std::int64_t attempts = 0;  ///< with this one: its fence
  /// "due", "done", "dead"; "stopped": it is due, and its receiver wants no more.
  std::string state;
  std::string note = {};  ///< why it was not delivered last
  /// A random word, so that a message of a database that was restored has an id of its own. Empty:
  /// it was left by an older version.
  std::string mark = {};
  WallTime due{};  ///< when it is tried next
};

/// Orders that were issued on one day and are in one state.
struct DayTotal {
  WallTime day{};  ///< where it begins
  OrderState state = OrderState::awaiting;
  std::int64_t orders = 0;
  std::int64_t units = 0;     ///< of orders that stand those that are left, of others all
  std::int64_t returned = 0;  ///< of orders that stand: those that were cancelled
};

/// Money that one provider moved on one day in one currency, as its own statement has it.
struct DayMoney {
  WallTime day{};  ///< where it begins
  std::string provider;
  std::string currency;
  std::int64_t payments = 0;
  std::int64_t paid = 0;  ///< by all payments that came on that day, whatever became of them
  std::int64_t refunds = 0;
  std::int64_t given_back = 0;  ///< by refunds, and payments sent back, that were done on that day
  std::int64_t settled = 0;  ///< of refunds and payments that a person settled outside on that day
};

/// Money of one order, in the currency of its sale.
struct OrderMoney {
  std::int64_t id = 0;
  std::int64_t paid = 0;        ///< by all payments that came for it, also such as did not fit
  std::int64_t given_back = 0;  ///< by the provider
  std::int64_t settled = 0;     ///< by a person, outside: of refunds and payments
};

/// What the database counts of a sale's money, and what does not fit. The last five are 0 in a
/// sound one.
struct PaymentTotals {
  std::int64_t waiting = 0;       ///< payments
  std::int64_t asking = 0;        ///< payments
  std::int64_t flagged = 0;       ///< payments
  std::int64_t refunds = 0;       ///< that are not done
  std::int64_t messages = 0;      ///< that are not sent
  std::int64_t dead = 0;          ///< messages
  std::int64_t odd_messages = 0;  ///< orders with other messages than versions
  std::int64_t odd_payments =
      0;  ///< orders that are paid without a payment, or by two, or another sum
  std::int64_t odd_refunds = 0;    ///< refunds that are of no return, or no payment, or beyond it
  std::int64_t odd_deadlines = 0;  ///< orders that await payment without a deadline
  std::int64_t odd_events = 0;     ///< payments in no state, or of an order that says otherwise
};

class OrderPayments {
 public:
  virtual ~OrderPayments() = default;

  virtual std::optional<PayableOrder> find(const std::string& sale, std::int64_t id) = 0;
  /// Those of these that the database has, ids rising, by two statements.
  virtual std::vector<PayableOrder> find(const std::string& sale,
                                         std::span<const std::int64_t> ids) = 0;

  /// Keeps a payment. False: this event was kept before; nothing is changed, whatever it says now.
  virtual bool keep(const Payment& payment) = 0;
  /// Does what a kept payment asks for: pays its order, if it fits and is awaited; asks for a
  /// retake, if it has expired; notes a refund, if it was cancelled; flags it, if it does not fit.
  /// Others of the same order that wait are applied with it, in the order in which they came.
  virtual PaymentResult apply(const Payment& payment) = 0;
  /// Up to `most` payments in a state, in the order in which they came, behind the one at `after`,
  /// whatever its state is now; none where there is no such payment. One whose COMMIT takes long
  /// while pages are read may be in none of them: it is in the next list. Of all sales, also of
  /// such that the database does not know, where `sale` is empty.
  virtual std::vector<KeptPayment> list(const std::string& sale, PaymentState state,
                                        std::size_t most,
                                        const std::optional<PaymentPlace>& after = {}) = 0;
  /// All payments of an order, or that name it.
  virtual std::vector<KeptPayment> payments_of(const std::string& sale, const SaleOrder& order) = 0;
  /// Payments that wait, of sales that the database does not know.
  virtual std::int64_t payments_of_no_sale() = 0;
  /// A person settles a payment that is flagged, or that waits and whose order is not in the
  /// database: `refunding`, its money goes back; or `settled`, also while it was tried in vain to
  /// give the money back. The note keeps who it was, and why.
  /// With `may` only from a state of which that is true: one that the person saw. Nothing happens
  /// to the order. A wish for `refunding` that is repeated makes the refund due at
  /// once. A database that is restored forgets that one was settled: use settle_outside(). Throws
  /// Error{bad_argument} for another state.
  virtual SettledPayment settle_payment(const PaymentPlace& place, PaymentState to,
                                        const std::string& who, const std::string& why,
                                        const std::function<bool(PaymentState)>& may = {}) = 0;
  /// Flags each payment of an order that has expired and comes from now on: the database has lost
  /// that a late one took its units, and that some came back with their money.
  virtual void hold(const std::string& sale, std::int64_t id) = 0;
  /// The same as list(), of payments that wait and whose order is in the database now.
  virtual std::vector<Payment> ready(const std::string& sale, std::size_t most) = 0;

  /// Orders whose deadline, and grace, have passed: up to `most`, those that are due first.
  virtual std::vector<std::int64_t> due(const std::string& sale, std::size_t most) = 0;
  /// Ends an order if it is still unpaid, and its deadline and grace have passed; not while a
  /// payment of it is kept that nobody has applied. False: it goes on, or has ended before.
  virtual bool expire(const std::string& sale, std::int64_t id) = 0;
  /// The same of several, in one transaction: where a whole sale is unpaid, each would wait for the
  /// row of the sale. Returns how many it ended.
  virtual std::size_t expire_all(const std::string& sale, std::span<const std::int64_t> ids) = 0;
  /// Cancels some units of an order that stands, or all that are left (`units` is 0): they go back
  /// to the stock, and their price goes back if it was paid, also by a payment that is kept and was
  /// not applied before. Once for each key. Throws Error{corrupt} where an order is paid without a
  /// payment; nothing is changed then.
  virtual UnitsResult cancel_units(const std::string& sale, std::int64_t id, std::int64_t units,
                                   const std::string& key, const std::string& reason) = 0;
  /// Ends a retake: the store had the units, and they are the order's again, which is paid; or it
  /// had not, and the money goes back. False: it has ended before.
  virtual bool end_retake(const std::string& sale, std::int64_t id, std::int64_t seq,
                          bool taken) = 0;

  /// Up to `most` refunds of orders that are to be sent now.
  virtual std::vector<Refund> refunds(const std::string& sale, std::size_t most) = 0;
  /// Up to `most` refunds of orders in a state ("asked", "failing": asked, and failed before,
  /// "done": also settled) behind the one at `after`, by order and version.
  virtual std::vector<Refund> refunds(const std::string& sale, const std::string& state,
                                      const MessagePlace& after, std::size_t most) = 0;
  /// Makes one due at once, if it is not done. False: there is none.
  virtual bool resend_refund(const std::string& sale, const MessagePlace& place) = 0;
  /// Takes one of those that are to be sent now, of this provider or, empty, of any: nobody else
  /// gets it for `lease`. Where `sale` is empty: one of a payment that a person sends back, of
  /// whatever sale.
  virtual std::optional<Refund> take_refund(const std::string& sale, const std::string& provider,
                                            std::chrono::seconds lease) = 0;
  /// All of an order.
  virtual std::vector<Refund> refunds_of(const std::string& sale, std::int64_t id) = 0;
  /// The provider has taken it; or, with `settled_by`, a person has given the money otherwise (use
  /// settle_outside(), which a database that is restored does not forget). False: that was noted
  /// before.
  virtual bool refund_done(const Refund& refund, const std::string& settled_by = {}) = 0;
  virtual void refund_failed(const Refund& refund, const std::string& why,
                             std::chrono::seconds again_in) = 0;

  /// Takes up to `most` messages that are due, for `lease`: another sender gets them after that.
  /// Of an order only the oldest one that is not sent.
  virtual std::vector<OrderMessage> take_messages(const std::string& sale, std::size_t most,
                                                  std::chrono::seconds lease) = 0;
  /// False: another sender has taken it meanwhile, and this is written nowhere.
  virtual bool message_sent(const std::string& sale, const OrderMessage& message) = 0;
  /// Empty `again_in`: it is dead. `why` is kept with it.
  virtual bool message_failed(const std::string& sale, const OrderMessage& message,
                              std::optional<std::chrono::seconds> again_in,
                              const std::string& why = {}) = 0;
  /// Who was told does not want to be told any more. Nothing is due then, and all is kept.
  virtual void stop_messages(const std::string& sale) = 0;
  /// Makes all that are dead due again, and begins again where they were stopped: all that were not
  /// sent are due at once then. Returns how many go out.
  virtual std::int64_t replay_messages(const std::string& sale) = 0;
  /// Makes one that is dead, or waits for its next attempt, due at once, and begins again where
  /// they were stopped. Returns how many go out: 0, there is none; more than 1, they were stopped.
  virtual std::int64_t resend_message(const std::string& sale, const MessagePlace& place) = 0;
  /// Begins again where they were stopped. Returns how many go out.
  virtual std::int64_t resume_messages(const std::string& sale) = 0;
  /// Up to `most` in a state ("due", "failing": due, and failed before, "done", "dead") behind the
  /// one at `after`, by order and version.
  virtual std::vector<OrderMessage> messages(const std::string& sale, const std::string& state,
                                             const MessagePlace& after, std::size_t most) = 0;
  /// All of an order, or of the sale (0), in their order.
  virtual std::vector<OrderMessage> messages_of(const std::string& sale, std::int64_t id) = 0;

  /// Orders by the day on which they were issued, the latest days first, and by state; up to 1,000
  /// of both. Days begin `offset` after those of UTC, less than a day before or after. Looks at
  /// every order.
  virtual std::vector<DayTotal> by_day(const std::string& sale, std::chrono::minutes offset) = 0;
  /// Money that came in and went back, the latest days first, up to 1,000 rows; `offset` as there.
  /// Of all sales, also of such that the database does not know, where `sale` is empty. Looks at
  /// every payment.
  virtual std::vector<DayMoney> money_by_day(const std::string& sale,
                                             std::chrono::minutes offset) = 0;
  /// Of those of these orders that money came for, in no order.
  virtual std::vector<OrderMoney> money_of(const std::string& sale,
                                           std::span<const std::int64_t> ids) = 0;
  /// Looks at every order.
  virtual PaymentTotals totals(const std::string& sale) = 0;
};

}  // namespace sluice
