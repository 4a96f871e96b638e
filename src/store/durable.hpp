/// What is to be on replicas before it counts.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "sluice/durability.hpp"
#include "sluice/store.hpp"

namespace sluice {

/// How many replicas had in time what was written.
struct Copies {
  std::int64_t replicas = 0;
  std::string refusal{};  ///< why no server counted them: its error; empty: they were counted

  bool are_enough(const Durability& durability) const noexcept {
    return refusal.empty() && replicas >= durability.replicas;
  }
  /// What lacks, for a message: "0 of 2 replicas had it within 100 ms".
  std::string shortfall(const Durability& durability) const;
};

/// What the replies to a batch of scripts mean, which WAIT ended where `durability` asks for it. An
/// error of WAIT is none of the scripts: they were done, and no replica is known to have it.
struct DurableReplies {
  std::vector<Value> replies;  ///< of the scripts; none is an error
  Copies copies{};
};
struct DurableReply {
  Value reply;
  Copies copies{};
};

struct ScriptCall {
  const Script& script;
  Words keys;
  Words args;
};

/// The scripts and WAIT, in one round trip. Words are copied before this returns. Throws Error
/// where a script failed, with the effect of the whole: none if no script has done anything. Of
/// several its message names each that failed, up to ten, and how many were done.
Task<DurableReplies> run_durably(Store& store, std::span<const ScriptCall> calls,
                                 const Durability& durability, CallOptions options);
inline Task<DurableReplies> run_durably(Store& store, std::initializer_list<ScriptCall> calls,
                                        const Durability& durability, CallOptions options) {
  return run_durably(store, std::span{calls.begin(), calls.size()}, durability, options);
}
/// One script.
Task<DurableReply> run_durably(Store& store, const Script& script, Words keys, Words args,
                               const Durability& durability,
                               CallOptions options = {.repeatable = true});

/// Adds that WAIT to a batch of other calls; what the replies to the batch say.
void add_wait(Batch& batch, const Durability& durability);

/// Throws Error (bad_argument): a time for replicas that is not from 1 ms to 1 day.
Durability checked(const Durability& durability);
Copies copies_of(const std::vector<Value>& replies);

}  // namespace sluice
