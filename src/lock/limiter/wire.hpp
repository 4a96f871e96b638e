/// The scripts of RateLimiter as functions: what is asked, and what the reply means.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
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
  bool strangers = false;            ///< wait: programs that are not ours take permits too
  std::int64_t rate = 0;             ///< granted, wait: in force
  std::string in_force;              ///< mismatch, above: for messages
};

/// Repeatable: a copy finds the id of the first in the log. `keys` must outlive the Task.
Task<RateAnswer> ask_permits(Store& store, const RateKeys& keys, const Rate& rate,
                             const RateRequest& request);
/// What a request has taken is free again. Of one that took nothing, or is given back: nothing.
Task<Value> give_back_permits(Store& store, const RateKeys& keys, std::int64_t permits,
                              std::string_view id);
/// Empty: changed. Else the definition in force, which is of another kind.
Task<std::optional<std::string>> ask_change(Store& store, const RateKeys& keys, const Rate& rate);

/// Names one request in the log: 16 bytes that no other request has, as Redisson wants them.
std::string new_permit_id();
/// This process, as a client of limiters: a UUID; another one in a forked child.
std::string process_client();

}  // namespace sluice::lock
