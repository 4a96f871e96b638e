/// What is to be on replicas before it counts.
#pragma once

#include <cstdint>
#include <vector>

#include "sluice/durability.hpp"
#include "sluice/store.hpp"

namespace sluice {

/// A script's reply, and how many replicas had what it wrote in time.
struct DurableReply {
  Value reply;
  std::int64_t replicas = 0;

  bool is_in_enough(const Durability& durability) const noexcept {
    return replicas >= durability.replicas;
  }
};

/// The script and WAIT, in one round trip. Repeatable. Words are copied before this returns.
Task<DurableReply> run_durably(Store& store, const Script& script, Words keys, Words args,
                               const Durability& durability);

/// Adds the WAIT of run_durably() to a batch; whether the replies to the batch say enough.
void add_wait(Batch& batch, const Durability& durability);
bool is_in_enough(const std::vector<Value>& replies, const Durability& durability);

}  // namespace sluice
