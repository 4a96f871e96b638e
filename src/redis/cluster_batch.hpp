/// A batch of which each item goes to the node of its keys: one pipeline a node, all at the same
/// time. What a node refuses is sent again, together, until the deadline.
#pragma once

#include <optional>
#include <vector>

#include "redis/cluster.hpp"
#include "redis/durable_line.hpp"

namespace sluice::redis {

/// An item whose node is lost has a Value of type error in its place. Throws the Error of a node
/// when no item has a reply.
Task<std::vector<Value>> call_batch(ClusterPtr cluster, Batch batch, std::vector<int> slots,
                                    std::optional<DurableLine::Wait> wait, CallOptions options);

}  // namespace sluice::redis
