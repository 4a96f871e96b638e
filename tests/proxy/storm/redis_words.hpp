/// Requests to Redis, right and nearly so.
#pragma once

#include <string>

#include "proxy/flow/request_stream.hpp"

namespace sluice::test {

/// Names of groups and consumers of the streams h:x0 and h:x1: any word may be one.
inline constexpr std::string_view group_names[] = {"g", "streams", "block", "group", "count", "0"};

/// RESP or a typed line, with commands from the table and from patterns of those whose words have
/// an order of their own.
std::string redis_request(Random& random);

}  // namespace sluice::test
