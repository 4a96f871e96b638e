/// The scripts of RateLimiter as functions: what is asked, and what the answer means.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "sluice/store.hpp"

namespace sluice::lock {

/// A rate as it stands in Redis.
struct Rate {
  std::int64_t permits = 0;
  std::chrono::milliseconds interval{};
  char kind = '0';  ///< 0 overall, 1 per client
  std::chrono::milliseconds keep_alive{};
};

struct RateKeys {
  RateKeys(std::string name, std::string_view client);  // client: empty for an overall rate

  std::string definition;
  std::string free;
  std::string log;
};

struct RateRequest {
  std::int64_t permits = 0;  ///< 0: only look
  std::string_view id;
  bool follow = false;
  std::int64_t counted_by = 0;
};

struct RateAnswer {
  enum class Kind { granted, wait, mismatch, above };
  Kind kind = Kind::granted;
  std::int64_t left = 0;             ///< granted
  std::chrono::microseconds wait{};  ///< wait
  std::int64_t rate = 0;             ///< granted, wait: in force
  std::string in_force;              ///< mismatch, above: for messages
};

/// Repeatable: a copy finds the id of the first in the log.
Task<Value> ask_permits(Store& store, const RateKeys& keys, const Rate& rate,
                        const RateRequest& request);
RateAnswer answer_to_permits(const Value& reply);

/// Replies: 1 done, 0 another kind; then what ask_permits is answered for no permits.
Batch change_of_rate(const RateKeys& keys, const Rate& rate);

}  // namespace sluice::lock
