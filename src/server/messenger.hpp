/// Sends what orders leave behind, from within the service: messages to the shop's own systems,
/// refunds to payment providers.
///
/// Guarantee: as OrderMessages and send_refunds() promise it, also where several processes run:
///   each message and each refund is one sender's alone while it is under way. Sales take turns, a
///   message or a refund each: one that has much to send, or a target that is slow, holds up the
///   next sale for as long as a request lasts.
/// Not guaranteed: that messages of different orders come in the order in which they happened.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/rare_line.hpp"
#include "server/http_client.hpp"
#include "server/shop.hpp"
#include "sluice/order_messages.hpp"
#include "sluice/payment_provider.hpp"

namespace sluice::server {

/// Where messages of all sales go, and how they are signed.
struct MessageTarget {
  std::string url;
  WebhookKeys keys;
};

/// Where refunds of a provider go.
struct RefundTarget {
  std::shared_ptr<const PaymentProvider> provider;
  std::string url;
};

struct MessengerOptions {
  std::optional<MessageTarget> messages = {};
  std::vector<RefundTarget> refunds = {};
  HttpClientOptions http = {};
  std::size_t senders = 4;               ///< threads that send messages; of refunds: one a target
  std::chrono::milliseconds every{500};  ///< how often each sale is looked at
};

/// REQUIRES: the shop lives longer.
class Messenger {
 public:
  Messenger(Shop& shop, MessengerOptions options);
  /// Waits for what is under way.
  ~Messenger();
  /// Nothing more is begun; what is under way has HttpClientOptions::after_stop.
  void stop();

 private:
  /// A sale, or a bucket of one.
  struct Subject {
    std::string sale;    ///< the whole
    std::string rows;    ///< under which name the database has it
    std::string source;  ///< a URI, for CloudEvents
  };
  /// Which sale is looked at next. One that has more to send waits behind the others for its next
  /// turn; one that takes a thread long is taken by another one in the next round.
  class Rounds {
   public:
    /// `has_payments`: of each round, first of all, the subject without a sale: payments that a
    /// person sends back.
    Rounds(const Shop& shop, std::chrono::milliseconds every, bool has_payments = false)
        : shop_(shop), every_(every), has_payments_(has_payments) {}
    /// Waits for the next round where this one is over. Empty: stop.
    std::optional<Subject> next(const std::stop_token& stop);
    /// It may have more to send.
    void again(Subject subject);

   private:
    void add(Offer& offer);
    void add(Subject subject);

    const Shop& shop_;
    const std::chrono::milliseconds every_;
    const bool has_payments_;
    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::deque<Subject> left_;              // guarded by mutex_
    std::set<std::string> waiting_;         // guarded by mutex_; the rows of those
    std::optional<SteadyTime> begun_ = {};  // guarded by mutex_
  };
  struct At {
    OrderStore& orders;
    HttpClient& client;
    const Subject& subject;
  };
  /// Sends one thing. False: there was none, or it failed: the next round is soon enough.
  using Send = std::function<bool(const At&)>;

  void begin(std::shared_ptr<Rounds> rounds, Send send);
  void work(const std::stop_token& stop, Rounds& rounds, const Send& send);
  bool send_message(const At& at);
  bool send_refund(const At& at, const RefundTarget& target);
  void stop_whole(const At& at);
  Delivery deliver(HttpClient& client, const SignedMessage& message);
  std::string give_back(const At& at, const RefundTarget& target, const Refund& refund) const;
  void complain(std::string_view of, std::string_view why);

  Shop& shop_;
  const MessengerOptions options_;
  std::mutex mutex_;
  RareLine line_;  // guarded by mutex_
  std::vector<std::jthread> threads_;
};

}  // namespace sluice::server
