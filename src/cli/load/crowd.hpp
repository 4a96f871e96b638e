/// A crowd of buyers: what each asks next and when, what he makes of the answers, and what is
/// measured. It has no socket and no clock: a driver sends what it says, and tells it what came.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <queue>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "cli/load/ledger.hpp"
#include "cli/load/response_reader.hpp"
#include "cli/load/tally.hpp"
#include "sluice/clock.hpp"
#include "sluice/token.hpp"

namespace sluice::load {

struct CrowdPlan {
  std::string sale;
  std::string host = "localhost";  ///< of the field Host
  /// Names of buyers begin so; another run's buyers are others.
  std::string prefix = "load";
  /// How buyers come: so many a second for `lasts`, `buyers` at most; 0: all at once; below 0: the
  /// next one as soon as a connection is free, which finds the highest rate.
  double rate = 0;
  std::uint64_t buyers = 10'000;
  std::chrono::nanoseconds lasts = std::chrono::seconds{10};
  bool looks = true;                 ///< each looks at the sale first
  bool buys = true;                  ///< else each looks, and leaves
  bool queues = false;               ///< each goes through the waiting room
  std::chrono::nanoseconds think{};  ///< between looking and clicking, on average
  double repeats = 0.1;              ///< this share clicks twice
  double slow = 0;                   ///< this share sends slowly
  std::int64_t most_units = 1;       ///< each buys 1 to so many
  int tries = 10;                    ///< of one question
  std::optional<TokenKeys> keys;     ///< sign a token for each buyer; none: he is believed
  std::uint64_t seed = 1;
};

/// One request, to be sent now.
struct Ask {
  std::uint64_t buyer = 0;
  std::string bytes;
  bool slowly = false;
};

/// Threads: one at a time.
class Crowd {
 public:
  /// REQUIRES: the ledger lives longer. Crowds of one ledger have prefixes of their own.
  Crowd(CrowdPlan plan, Ledger& ledger, SteadyTime begins, WallTime wall);

  /// The next question that is due. Empty: nobody wants to ask now. REQUIRES: what it gave is sent,
  /// and answered() or failed() is called for it once.
  std::optional<Ask> next(SteadyTime now);
  /// When to call next() again; SteadyTime::max(): after the next answer.
  SteadyTime next_due() const;
  void answered(std::uint64_t buyer, const HttpAnswer& answer, SteadyTime now);
  /// The connection broke, or the answer was none.
  void failed(std::uint64_t buyer, const std::string& why, SteadyTime now);

  /// Nobody comes any more.
  void close();
  /// Everybody has his last answer.
  bool is_over() const noexcept { return !has_arrivals() && active_.empty(); }
  /// Instead of a crowd: each order of the ledger is looked at, until `until`, when the database
  /// must have it.
  void check_orders(SteadyTime now, SteadyTime until);
  /// Who has no last answer is counted as one who gave up, and his wait until now as well.
  void end(SteadyTime now);

  /// The sale has a price: orders may end before their buyers ask again.
  void set_may_end(bool may_end) noexcept { may_end_ = may_end; }

  const Tally& tally() const noexcept { return tally_; }
  /// How the sale stood when a buyer looked last; empty: nobody was shown it.
  const std::optional<ToldSale>& sale() const noexcept { return sale_; }
  std::size_t active() const noexcept { return active_.size(); }

 private:
  struct Buyer {
    std::string name;
    std::string token;   // empty: he is believed
    std::string ticket;  // of the waiting room
    Step step = Step::look;
    std::int64_t units = 1;
    bool repeats = false;
    bool slow = false;
    bool may_have_bought = false;  // a click was sent and not answered
    int tries = 0;
    SteadyTime due;      // when he means to ask
    SteadyTime clicked;  // when he meant to click first
  };
  struct Due {
    SteadyTime when;
    std::uint64_t order;  // of two at one moment
    std::uint64_t buyer;
    bool operator>(const Due& other) const noexcept {
      return std::pair{when, order} > std::pair{other.when, other.order};
    }
  };

  bool has_arrivals() const noexcept;
  SteadyTime arrival(std::uint64_t index) const noexcept;
  void arrive(SteadyTime due);
  Buyer make_buyer(std::uint64_t index);
  void ask_at(std::uint64_t id, Buyer& buyer, Step step, SteadyTime due);
  void again(std::uint64_t id, Buyer& buyer, SteadyTime now, std::chrono::nanoseconds pause,
             std::string_view why);
  void go_on(std::uint64_t id, Buyer& buyer, const HttpAnswer& answer, const JsonValue& body,
             SteadyTime now);
  void begin_purchase(std::uint64_t id, Buyer& buyer, SteadyTime now);
  void after_queue(std::uint64_t id, Buyer& buyer, const HttpAnswer& answer, const JsonValue& body,
                   SteadyTime now);
  void after_click(std::uint64_t id, Buyer& buyer, const HttpAnswer& answer, const JsonValue& body,
                   const std::string& problem, SteadyTime now);
  void after_check(std::uint64_t id, Buyer& buyer, const HttpAnswer& answer, const JsonValue& body,
                   SteadyTime now);
  void count(const Buyer& buyer, std::string_view outcome, SteadyTime now);
  void leave(std::uint64_t id);
  void give_up(std::uint64_t id, SteadyTime now);
  std::string request_of(const Buyer& buyer) const;
  std::chrono::nanoseconds think();
  bool chance(double share);

  CrowdPlan plan_;
  const SteadyTime begins_;
  const WallTime token_expires_;
  const std::string sale_path_;
  std::mt19937_64 random_;
  std::unordered_map<std::uint64_t, Buyer> active_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  std::uint64_t arrived_ = 0;
  std::uint64_t dues_ = 0;
  bool closed_ = false;
  bool may_end_ = false;
  SteadyTime check_until_{};
  Tally tally_;
  std::optional<ToldSale> sale_;
  Ledger& ledger_;
};

}  // namespace sluice::load
