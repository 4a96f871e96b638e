/// Sends what orders leave behind: messages to those who want to be told, refunds to providers.
///
/// Guarantee: each message is sent at least once, and those of an order one after another, in the
///   order of its versions. Several senders may run: a message is one's alone for the lease, and
///   who comes back after it writes nothing over what another has written since (the database
///   counts attempts, and a result is noted for the last one alone). What fails is sent again after
///   5 s, 5 min, 30 min, 2 h, 5 h, 10 h and 24 h, by the database's clock, each up to a tenth
///   later, and not before the receiver wants it; then it is dead, and replay() sends it again. A
///   refund is sent until the provider takes it, after at most a day each, always with the same
///   key.
/// Not guaranteed: that a message comes once: its receiver keeps the id. That a dead one, replayed,
///   comes before later ones of its order: its `version` says where it belongs. That the store
///   sells again when `sale.reopened` comes: it follows the database a moment later, and buyers may
///   be faster; nor that it comes at all where dead letters wait, or orders are on their way: the
///   database does not know then that all was sold.
/// Threads: one; an OrderStore of its own.
///
///     OrderMessages messages{orders, "maotai", "https://shop.example/sales/maotai", keys, send};
///     messages.send_due();   // from time to time
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "sluice/order_store.hpp"
#include "sluice/webhook.hpp"

namespace sluice {

/// A message as it goes over the wire: a CloudEvent 1.0 in structured mode (application/cloudevents
/// +json), signed.
struct SignedMessage {
  WebhookHead head;
  std::string body;
};

/// What the receiver has made of it.
struct Delivery {
  enum Kind {
    done,    ///< HTTP 2xx
    failed,  ///< anything else, or no answer: again, later
    gone,    ///< HTTP 410: nothing more is sent until replay()
  };
  Delivery(Kind what, std::chrono::seconds wait = {}, std::string reason = {})
      : kind(what), retry_after(wait), why(std::move(reason)) {}  // implicit

  Kind kind;
  /// Where it failed: the receiver asks for so much time (HTTP Retry-After). More than a day counts
  /// as a day.
  std::chrono::seconds retry_after;
  std::string why;  ///< where it was not taken: for people; kept with the message
};

class OrderMessages {
 public:
  /// Sends one message and waits for the answer, for less than `lease`. What it throws is `failed`.
  using Send = std::function<Delivery(const SignedMessage&)>;

  static constexpr std::chrono::seconds lease{60};

  /// `source`: the URI of the sale, for CloudEvents. REQUIRES: `orders` lives longer.
  OrderMessages(OrderStore& orders, std::string sale, std::string source, WebhookKeys keys,
                Send send);

  struct Sent {
    std::size_t done = 0;
    std::size_t failed = 0;
    std::size_t dead = 0;
    bool gone = false;
    /// Nothing was due.
    bool nothing() const noexcept { return done + failed + dead == 0 && !gone; }
  };
  /// Sends up to `most` messages that are due. Throws what the database throws.
  Sent send_due(std::size_t most = 100);
  /// Sends all dead ones again, and all that wait after `gone`. Returns how many.
  std::int64_t replay();

 private:
  SignedMessage sign(const OrderMessage& message) const;
  Delivery deliver(const OrderMessage& message) const;

  OrderStore& orders_;
  const std::string sale_;
  const std::string source_;
  const WebhookKeys keys_;
  const Send send_;
};

// --- refunds ---

/// The money of a refund of an order went back in another way, as by cash: it is `settled`, and no
/// provider is asked for it. The store notes that first, so that a database that is restored from a
/// backup is told again by send_refunds() instead of asking the provider. True: it is settled now,
/// or another call has done it meanwhile; false: it is done, or not there. Throws what store and
/// database throw: where the effect is `unknown`, or the process dies, the store may have noted it,
/// and the next sender settles it, so a person who has settled a refund gives its money.
bool settle_outside(Store& store, OrderStore& orders, const Refund& refund, const std::string& who,
                    const std::string& why);
/// The same of a payment: OrderPayments::settle_payment() with `settled`.
SettledPayment settle_outside(Store& store, OrderStore& orders, const PaymentPlace& place,
                              const std::string& who, const std::string& why,
                              const std::function<bool(PaymentState)>& may = {});

struct RefundsSent {
  /// Also such as a person had settled outside before the database was restored: no provider is
  /// asked for these.
  std::size_t done = 0;
  std::size_t failed = 0;  ///< they are sent again, later
};

/// Sends up to `most` refunds that are due, of one provider or, empty, of all. Several senders may
/// run, as with messages: `send` takes less than OrderMessages::lease. It gives one to its provider
/// under refund_key(), however often it is asked, and returns why it was not taken; empty: it was.
/// An empty `sale`: those of payments that a person sends back, of whatever sale. Throws what store
/// and database throw: nothing is sent while the store does not say what was settled outside, nor
/// (Error{database}) of an archived sale whose database was restored from before, until recover();
/// what `send` throws is a reason.
RefundsSent send_refunds(Store& store, OrderStore& orders, const std::string& sale,
                         const std::function<std::string(const Refund&)>& send,
                         std::size_t most = 100, const std::string& provider = {});

}  // namespace sluice
