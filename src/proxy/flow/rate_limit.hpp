/// How many requests, and bytes of them, a user or an address may send: one account of each for all
/// workers of a pool, so that a limit holds whichever worker a connection lands on.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/config/config.hpp"
#include "sluice/clock.hpp"

namespace sluice::proxy::flow {

/// A bucket of `rate.burst` tokens, which fills at `rate`, as the time at which it will be full
/// (the generic cell rate algorithm): one atomic number, whatever the rate. It is full at first.
/// Threads: any; no token is given twice.
class TokenBucket {
 public:
  /// No request waits longer.
  static constexpr std::chrono::seconds longest_wait{10};

  /// Takes `cost` tokens. How long from now until they are there: 0, they were. Empty: longer than
  /// `patience`, and none was taken. What costs more than the burst waits for a full bucket, and
  /// is charged with `longest_wait` beyond it at most. REQUIRES: rate.holds(), patience <=
  /// longest_wait.
  std::optional<std::chrono::nanoseconds> take(const Rate& rate, std::uint64_t cost, SteadyTime now,
                                               std::chrono::nanoseconds patience) noexcept;
  /// What was taken at the same rate was not needed.
  void give_back(const Rate& rate, std::uint64_t cost) noexcept;
  void fill() noexcept { full_at_.store(INT64_MIN, std::memory_order_relaxed); }
  /// Of two the one that is full earlier has more tokens.
  std::int64_t full_at() const noexcept { return full_at_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> full_at_{INT64_MIN};  // ns of the steady clock
};

/// What one request costs.
struct RequestCost {
  std::uint64_t requests = 1;
  std::uint64_t bytes = 0;
};

/// The limits of one user or address. A Rate that does not hold is none.
struct RatePair {
  Rate requests, bytes;
  std::uint64_t mark() const noexcept;  ///< other rates have another one
  bool hold() const noexcept { return requests.holds() || bytes.holds(); }
};

/// The account of one user or address. It is full again when its rates change.
class RateAccount {
 public:
  /// Both or neither; else as TokenBucket::take().
  std::optional<std::chrono::nanoseconds> take(const RatePair& rates, RequestCost cost,
                                               SteadyTime now,
                                               std::chrono::nanoseconds patience) noexcept;
  void give_back(const RatePair& rates, RequestCost cost) noexcept;
  std::int64_t full_at() const noexcept { return std::max(requests_.full_at(), bytes_.full_at()); }

 private:
  std::atomic<std::uint64_t> mark_{0};  // of the rates that it was last used with
  TokenBucket requests_, bytes_;
};

/// The accounts of so many addresses, in a table that never grows. An address that is not in it
/// takes the place of the account that is fullest among eight, and goes on with what that has left:
/// addresses, however many take turns, win no tokens by pushing each other out. Threads: any.
class AddressAccounts {
 public:
  static constexpr std::size_t ways = 8;
  static constexpr std::size_t sets = 2048;
  static constexpr std::size_t most_addresses = sets * ways;

  AddressAccounts();

  /// Of an address that is the bytes of net::network_of().
  std::uint64_t name_of(std::string_view network) const noexcept;
  /// Calls `use` with the account of the address.
  template <class Use>
  auto with(std::uint64_t name, Use use) {
    const std::lock_guard lock{mutexes_[name % mutexes_.size()]};
    return use(find(name));
  }

 private:
  struct Entry {
    std::uint64_t name = 0;
    RateAccount account;
  };

  RateAccount& find(std::uint64_t name) noexcept;

  const std::uint64_t seed_;  // so that nobody can choose addresses of one set
  std::array<std::mutex, 64> mutexes_;
  std::vector<Entry> entries_;
};

/// What all workers share of a pool.
class RateAccounts {
 public:
  /// It stays as long as the pool: who connects again does not begin anew.
  std::shared_ptr<RateAccount> user(std::string_view name);
  AddressAccounts& addresses();

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<RateAccount>, std::less<>> users_;
  std::unique_ptr<AddressAccounts> addresses_;  // made when a pool first needs it
};

/// The limits that hold for one client.
class ClientLimits {
 public:
  /// `network`: of net::network_of(); empty: it has no address, and no limit by address.
  ClientLimits(RateAccounts& accounts, std::string_view network);

  static bool are_needed(const PoolSettings& settings) noexcept;
  /// The settings, or who the client is, have changed. `user`: empty before login.
  void apply(const PoolSettings& settings, std::string_view user);

  /// As TokenBucket::take(), of both accounts or of neither.
  std::optional<std::chrono::nanoseconds> take(RequestCost cost, SteadyTime now,
                                               std::chrono::nanoseconds patience);

  /// The request in hand is paid for, and comes again.
  void note_paid() noexcept { paid_ = true; }
  bool was_paid() noexcept { return std::exchange(paid_, false); }

 private:
  RateAccounts& accounts_;
  AddressAccounts* addresses_ = nullptr;  // null: no limit by address
  std::shared_ptr<RateAccount> user_;     // null: none by user
  RatePair of_user_, of_address_;
  std::string network_;
  std::uint64_t address_ = 0;
  bool paid_ = false;
};

}  // namespace sluice::proxy::flow
