/// A payment provider that moves no money: to try a shop, and to see what it makes of payments that
/// come late, twice, wrong or never.
///
///   POST /pay     {"sale","order","amount","currency","as"}: what a payment page would send; 202
///   POST /refund  takes a refund of the service, once for each Idempotency-Key
///   GET  /state   what was paid, told and given back so far
///
/// Guarantee: a payment is told again, as real providers do, until the service has it. No refund is
///   taken twice, and no more of a payment goes back than came.
/// Not guaranteed: that it remembers anything when it ends.
/// Threads: any.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include "base/json.hpp"
#include "http/server.hpp"
#include "server/http_client.hpp"
#include "sluice/payment_provider.hpp"

namespace sluice::server {

/// How a simulated buyer pays.
enum class Paying : std::uint8_t {
  pay,    ///< as he should
  late,   ///< after SimulatedProviderOptions::late
  again,  ///< as he should, and the same payment is told five times
  twice,  ///< by two payments
  wrong,  ///< one unit of the currency too much
  never,
};
inline constexpr std::size_t ways_of_paying = 6;
std::string_view to_string(Paying way) noexcept;

/// How often each way is taken, in parts of their sum.
struct PayingHabits {
  std::array<std::uint32_t, ways_of_paying> parts{1};

  /// "late", or "pay=90,late=5,never=5". Throws Error{bad_argument}.
  static PayingHabits of(std::string_view words);
  Paying choose() const;
};

/// Orders that the shop lists are paid without being asked for.
struct PaidShop {
  std::string url;  ///< "http://127.0.0.1:8080"
  std::string key;  ///< of the scope `orders`
};

struct SimulatedProviderOptions {
  std::shared_ptr<const HmacPayments> provider;
  std::string payments;  ///< the URL of the service's /v1/payments/NAME
  net::Endpoint listen{.host = "127.0.0.1", .port = 0, .unix_path = {}};
  PayingHabits habits = {};
  std::chrono::milliseconds delay{200};    ///< from paying until it is told
  std::chrono::milliseconds late{60'000};  ///< the same of a late payment
  std::uint32_t refunds_fail = 0;          ///< in percent: half of these are taken all the same
  std::optional<PaidShop> shop = {};
  std::chrono::milliseconds every{1'000};        ///< how often it asks the shop for orders
  std::chrono::milliseconds first_pause{1'000};  ///< before it tells again; doubles up to a minute
};

class SimulatedProvider {
 public:
  /// It serves when this returns. Throws as http::Server does.
  explicit SimulatedProvider(SimulatedProviderOptions options);
  ~SimulatedProvider();

  std::uint16_t port() const noexcept { return server_->port(); }
  /// As GET /state has it.
  Json state() const;

 private:
  static constexpr std::size_t most_waiting = 100'000;

  /// A payment that is to be told.
  struct Telling {
    Payment payment;
    int left = 1;  ///< times
    std::chrono::milliseconds pause;
  };
  struct Money {
    std::int64_t paid = 0;
    std::int64_t given_back = 0;
  };
  struct TakenRefund {
    std::string payment;
    std::int64_t amount = 0;
  };
  struct Counts {
    std::array<std::uint64_t, ways_of_paying> ways{};
    std::uint64_t told = 0;
    std::uint64_t telling_failed = 0;
    std::uint64_t refunds_asked = 0;
    std::uint64_t refunds_failed = 0;   // on purpose
    std::uint64_t refunds_refused = 0;  // no signature, another amount under a key, too much
  };

  http::Routes routes();
  http::Response take_wish(const http::Request& request);
  http::Response take_refund(const http::Request& request);
  http::Response take_refund(const std::string& key, const TakenRefund& refund,
                             const std::string& currency);
  bool pay(Payment payment, Paying way);
  void plan(Payment payment, std::chrono::milliseconds in, int times = 1);
  void tell_all(const std::stop_token& stop);
  bool tell(HttpClient& client, const Payment& payment);
  void pay_all(const std::stop_token& stop);
  void pay_orders_of(HttpClient& client, const std::string& sale, const std::string& currency);

  const SimulatedProviderOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable_any planned_;
  std::multimap<SteadyTime, Telling> waiting_;    // guarded by mutex_; by when they are due
  std::map<std::string, std::int64_t> paid_;      // guarded by mutex_; amount by event
  std::map<std::string, TakenRefund> refunds_;    // guarded by mutex_; by key
  std::map<std::string, Money> money_;            // guarded by mutex_; by currency
  Counts counts_;                                 // guarded by mutex_
  std::map<std::string, std::string> looked_at_;  // of pay_all: cursor by sale
  std::unique_ptr<http::Server> server_;
  std::jthread teller_;
  std::jthread payer_;
};

}  // namespace sluice::server
