#include "sale/buckets/borrowing.hpp"

#include <algorithm>
#include <numeric>

#include "sale/sums.hpp"

namespace sluice::sale {
namespace {

/// Those that may give, and have most first.
std::vector<std::int64_t> donors(const Look& look, std::int64_t receiver) {
  std::vector<std::int64_t> all(look.shares.size());
  std::iota(all.begin(), all.end(), std::int64_t{0});
  std::erase_if(all, [&](std::int64_t bucket) {
    return bucket == receiver || !look.at(bucket).is_known() || look.at(bucket).left() <= 0;
  });
  std::ranges::sort(all, std::ranges::greater{},
                    [&](std::int64_t bucket) { return look.at(bucket).left(); });
  return all;
}

/// Why nothing can be said of units that a bucket may have; throws where it could not be asked.
Borrowed unknown(const Look& look) {
  for (const auto& share : look.shares)
    if (share.failure) throw Error{*share.failure};
  return Borrowed::recovering;
}

}  // namespace

Task<std::vector<Borrowed>> Borrowing::borrow(std::vector<std::int64_t> wishes) {
  auto asked = shares_.look();
  const Look look = co_await asked;
  std::vector<Borrowed> answers(wishes.size(), Borrowed::some);
  if (!own(look).is_known()) {
    std::ranges::fill(answers, unknown(look));
    co_return answers;
  }
  auto finishing = finish_transfers(receiver_, look);
  if (co_await finishing) co_return answers;

  // An order that all buckets together cannot fill takes nothing away from the others.
  const auto there = look.left();
  std::int64_t needed = 0;
  for (const auto units : wishes)
    if (units <= there) needed = sum(needed, units);
  auto bringing = bring(needed - own(look).left(), look);
  co_await bringing;
  if (std::ranges::all_of(wishes, [&](std::int64_t units) { return units <= there; }))
    co_return answers;

  // Some are told that there are not enough: so it must have been at one instant.
  auto asked_again = shares_.look_at_one_instant();
  const std::optional<Look> now = co_await asked_again;
  if (!now) co_return answers;
  for (std::size_t i = 0; i < wishes.size(); ++i)
    if (wishes[i] > there) answers[i] = unless_enough(wishes[i], *now);
  co_return answers;
}

Borrowed Borrowing::unless_enough(std::int64_t units, const Look& look) const {
  const auto there = look.left();
  if (units <= there) return Borrowed::some;
  if (!look.is_whole()) return unknown(look);
  return there <= 0 ? Borrowed::sold_out : Borrowed::not_enough;
}

/// What somebody began and has not ended, perhaps as he died. False: there was nothing.
Task<bool> Borrowing::finish_transfers(std::int64_t receiver, const Look& look) {
  bool has_finished = false;
  for (std::int64_t donor = 0; donor < shares_.count(); ++donor) {
    const auto transfer = look.under_way(donor, receiver);
    if (!transfer) continue;
    auto taking = shares_.take(donor, receiver, *transfer, look);
    has_finished |= co_await taking;
  }
  co_return has_finished;
}

Task<void> Borrowing::bring(std::int64_t lacking, const Look& look) {
  for (const auto donor : donors(look, receiver_)) {
    if (lacking <= 0) co_return;
    auto bringing = bring_from(donor, lacking, look);
    lacking -= co_await bringing;
  }
  if (lacking <= 0) co_return;
  // What is on its way between others can be borrowed where it arrives.
  for (std::int64_t receiver = 0; receiver < shares_.count(); ++receiver) {
    auto finishing = finish_transfers(receiver, look);
    co_await finishing;
  }
}

/// Returns how many came.
Task<std::int64_t> Borrowing::bring_from(std::int64_t donor, std::int64_t lacking,
                                         const Look& look) {
  auto giving = shares_.give(donor, receiver_, lacking, look);
  const std::optional<Transfer> given = co_await giving;
  if (!given || given->n == 0) co_return 0;
  auto taking = shares_.take(donor, receiver_, *given, look);
  const bool taken = co_await taking;
  co_return taken ? given->units : 0;
}

}  // namespace sluice::sale
