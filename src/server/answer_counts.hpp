/// What buyers of a sale were answered, since this process began.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "sluice/sale.hpp"

namespace sluice::server {

/// The names of SaleOutcome, as figures and metrics show them.
inline constexpr std::array<std::string_view, 14> outcome_names{
    "admitted",       "repeated", "other_units", "cancelled", "already_bought",
    "too_many_units", "sold_out", "not_enough",  "full",      "not_started",
    "closed",         "moving",   "recovering",  "not_loaded"};
static_assert(static_cast<std::size_t>(SaleOutcome::not_loaded) + 1 == outcome_names.size());

/// Threads: any; wait-free.
class AnswerCounts {
 public:
  void add(SaleOutcome outcome) noexcept {
    counts_[static_cast<std::size_t>(outcome)].fetch_add(1, std::memory_order_relaxed);
  }
  /// REQUIRES: `outcome` is an index of outcome_names.
  std::uint64_t of(std::size_t outcome) const noexcept {
    return counts_[outcome].load(std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<std::uint64_t>, outcome_names.size()> counts_{};
};

}  // namespace sluice::server
