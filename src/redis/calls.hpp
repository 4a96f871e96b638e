/// What the calls of a Store of one server and those of a cluster share.
///
/// The coroutines that take a Client hold it: the Store may be gone before they end.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "redis/client.hpp"

namespace sluice::redis {

/// How often a script is sent again with its text, when other clients keep flushing the server's
/// scripts.
constexpr int most_script_repeats = 3;

bool is_forgotten_script(const Value& reply);

/// `blocks_for`: at the server, besides; max(): for ever.
SteadyTime deadline_of(const RedisOptions& server, const CallOptions& options,
                       std::chrono::milliseconds blocks_for = {});

/// The same for another attempt of a call that has begun then: with the time that is left, 1 ms at
/// least.
CallOptions rest_of(const RedisOptions& server, CallOptions options, SteadyTime begun);

Task<Outcome> exchange(Link& link, const Request& request, std::span<Value> replies,
                       SteadyTime deadline, CallOptions options, int slot = Operation::no_slot);

/// `was_sent`: before, without a reply. That the server refuses it now says nothing about then.
Value checked(const Request& request, Value reply, bool was_sent);

/// The WAIT at the end of a batch.
std::optional<DurableLine::Wait> replica_wait_of(const Batch& batch);

/// `is_ours`: what callers may not ask, as the WAIT at the end of a batch, or an ASKING, may be.
void add_item(Request& request, const Batch::Item& item, bool is_ours = false);

Task<DurableLine::Answer> exchange_batch(Link& link, Batch batch, Request request,
                                         SteadyTime deadline, CallOptions options,
                                         int slot = Operation::no_slot);
Task<DurableLine::Answer> call_durably(std::shared_ptr<Client> client, DurableLine::Wait wait,
                                       DurableLine::Call call);

/// Asks the server as long as the Client's trackers have a question.
Task<void> ask_for_changes(std::shared_ptr<Client> client);

}  // namespace sluice::redis
