/// How a bucket that has too few units gets some from the others. All buyers of it that wait at a
/// time borrow once.
#pragma once

#include <memory>
#include <vector>

#include "sale/buckets/shares.hpp"
#include "store/combiner.hpp"

namespace sluice::sale {

enum class Borrowed {
  some,        ///< the bucket may have enough now: ask it again
  sold_out,    ///< at some instant since the question no bucket had a unit, and none was under way
  not_enough,  ///< the same of so many as were asked for
  recovering,  ///< some are in a bucket that has to be recovered
};

class Borrowing {
 public:
  /// REQUIRES: the Shares live longer.
  Borrowing(Store& store, Shares& shares, std::int64_t receiver)
      : shares_(shares),
        receiver_(receiver),
        combiner_(store.driver(), most_together,
                  [this](std::vector<std::int64_t> wishes) { return borrow(std::move(wishes)); }) {}

  /// For an order of so many units. Throws Error where a bucket that may have some cannot be asked.
  Task<Borrowed> borrow_for(std::int64_t units) { return combiner_.call(units); }

 private:
  static constexpr std::size_t most_together = 4096;

  Task<std::vector<Borrowed>> borrow(std::vector<std::int64_t> wishes);
  Task<bool> finish_transfers(std::int64_t receiver, const Look& look);
  Task<void> bring(std::int64_t lacking, const Look& look);
  Task<std::int64_t> bring_from(std::int64_t donor, std::int64_t lacking, const Look& look);
  Borrowed unless_enough(std::int64_t units, const Look& look) const;
  const Share& own(const Look& look) const { return look.at(receiver_); }

  Shares& shares_;
  const std::int64_t receiver_;
  Combiner<std::int64_t, Borrowed> combiner_;
};

}  // namespace sluice::sale
