/// What each bucket of a sale has to sell, and units on their way from one to another.
///
///   capacity of a bucket = units that were sold there + units that may be
///   sum of the capacities + units under way = what the whole sale sells            (I7)
///
/// A transfer is two steps: give() takes units out of the donor's capacity and notes them there,
/// take() adds them to the receiver's. Both steps count the transfers of their pair of buckets, so
/// a process may die between them: whoever looks sees it, and takes it once.
///
/// A store may lose its latest seconds. What a lost bucket had is not remembered anywhere, and need
/// not be: it is what all the others do not have. restore_shares() stops all transfers, each bucket
/// at an instant of its own, reads what those that lost nothing have, and sets the shares of the
/// others to the rest of the stock. Transfers that were begun before belong to another word, and
/// nobody takes them any more.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/sale.hpp"

namespace sluice::sale {

struct Transfer {
  std::int64_t n = 0;  ///< of its donor and its receiver, from 1
  std::int64_t units = 0;
  friend bool operator==(const Transfer&, const Transfer&) = default;
};

/// A bucket, as its hash has it at one instant.
struct Share {
  bool is_there = false;
  bool is_shut = false;  ///< it has to be recovered
  bool is_frozen = false;
  std::string moves;  ///< empty: its capacity is not what it has to sell
  std::int64_t capacity = 0;
  std::int64_t sold = 0;
  std::int64_t stock = 0;                ///< as it was defined
  std::int64_t added = 0;                ///< by changes of the stock
  std::int64_t given_back = 0;           ///< by orders that ended
  std::map<std::int64_t, Transfer> out;  ///< the latest to each bucket
  std::map<std::int64_t, std::int64_t> in;
  std::optional<Error> failure = {};  ///< it could not be asked

  bool is_known() const noexcept { return is_there && !is_shut && !moves.empty(); }
  std::int64_t left() const noexcept { return capacity - sold; }
  /// n of the latest transfer that came from there; 0: none did.
  std::int64_t taken_from(std::int64_t donor) const {
    const auto found = in.find(donor);
    return found == in.end() ? 0 : found->second;
  }
};

/// All of them, one after another: units move meanwhile.
struct Look {
  std::vector<Share> shares;

  const Share& at(std::int64_t bucket) const { return shares.at(static_cast<std::size_t>(bucket)); }
  /// Every share is known, and of the same word.
  bool is_whole() const noexcept;
  /// The transfer from one to the other that the receiver does not have; empty: there is none that
  /// may still be taken.
  std::optional<Transfer> under_way(std::int64_t donor, std::int64_t receiver) const;
  std::int64_t units_under_way() const;
  /// Left in all buckets whose share is known, and under way between them.
  std::int64_t left() const;
  std::int64_t capacity() const;
  /// What the whole sale sells.
  std::int64_t stock() const;
  /// Between two looks no units have come to a bucket: neither from another one, nor from orders
  /// that ended, nor by a change of the stock. At the instant between them no bucket had more left
  /// than in the first one.
  bool nothing_came_since(const Look& first) const;
};

class Shares {
 public:
  Shares(Store& store, const SaleDefinition& whole, std::int64_t count);

  /// One round trip, or one for each bucket where a server does not answer. A bucket that cannot be
  /// asked says why; none of them throws.
  Task<Look> look();
  /// The first of two looks between which no units came to a bucket; empty: some did, each time.
  Task<std::optional<Look>> look_at_one_instant();

  /// Takes at least `needed` units out of the donor's share, if it has so many, or all it has.
  /// `look` says what moved before. n is 0: nothing is left there; empty: no units move now.
  Task<std::optional<Transfer>> give(std::int64_t donor, std::int64_t receiver, std::int64_t needed,
                                     const Look& look);
  /// Adds them to the receiver's, once. False: not now, or it has them already.
  Task<bool> take(std::int64_t donor, std::int64_t receiver, Transfer transfer, const Look& look);

  std::int64_t count() const noexcept { return static_cast<std::int64_t>(keys_.size()); }
  const std::string& key(std::int64_t bucket) const {
    return keys_.at(static_cast<std::size_t>(bucket));
  }

 private:
  Task<Share> look_at(const std::string& key);

  Store& store_;
  const std::string name_;
  std::vector<std::string> keys_;
};

/// Gives buckets that lost something their shares back; any bucket of the sale says which sale.
/// False: not before others are recovered, too. Does nothing where all shares are known. May be
/// killed anywhere, and done again; of two at once the later one ends. Blocks the thread.
/// Throws Error: server (a store changed meanwhile, or another one has begun: do it again), corrupt
/// (more is sold than there is), and what the store throws.
bool restore_shares(Store& store, const SaleDefinition& bucket);

}  // namespace sluice::sale
