/// The lock scripts as functions: what is asked, and what the answer means. Nothing is decided
/// here.
#pragma once

#include <span>

#include "lock/hold/hold.hpp"
#include "sluice/store.hpp"

namespace sluice::lock {

/// The answer to one request to acquire.
struct Answer {
  std::optional<FencingToken> granted;
  std::chrono::milliseconds left{};  ///< refused: of the lease in force; -1: without end
};

/// Repeatable: a copy finds the request id of the first.
Task<Value> ask_acquire(Store& store, const Names& names, std::string_view owner,
                        std::string_view request, std::chrono::milliseconds lease);
Answer answer_to_acquire(const Value& reply);

/// Repeatable: it says how many entries there are from now on, not how many more. Reply: 1 done, 0
/// gone.
Task<Value> ask_recount(Store& store, const Hold& hold, std::uint32_t entries);

/// Harmless when repeated, but a copy is answered 0 where the first ended the hold. Reply: 1 ended,
/// 0 gone.
Task<Value> ask_release(Store& store, const Names& names, std::string_view request,
                        bool repeatable);

/// Reply for each script of the batch: an array of 1 prolonged or 0 gone for each hold, or an
/// error.
Batch renewal_of(std::span<const std::shared_ptr<Hold>> holds);
inline constexpr std::size_t holds_a_script = 100;

Task<Value> ask_force_release(Store& store, const Names& names);

}  // namespace sluice::lock
