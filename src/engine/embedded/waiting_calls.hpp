/// Calls that wait for something to arrive at a key (BLPOP, XREADGROUP BLOCK ...), in the order in
/// which they came.
///
/// Threads: under the engine's lock.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/task.hpp"
#include "sluice/value.hpp"

namespace sluice::engine {

struct WaitingCall {
  WaitingCall(std::vector<std::string> command, Driver* driver)
      : words(std::move(command)), done(driver) {}

  std::vector<std::string> words;  ///< to be executed again
  std::vector<std::string> keys;
  std::int64_t timeout_ms = 0;  ///< 0: for ever
  bool is_waiting = false;
  Value reply;                 ///< null after the timeout
  std::uint64_t position = 0;  ///< in the log, of what the reply has seen
  bool wrote = false;
  Completion done;
};

class WaitingCalls {
 public:
  using Call = std::shared_ptr<WaitingCall>;

  bool empty() const noexcept { return by_key_.empty(); }
  void add(const Call& call) {
    call->is_waiting = true;
    for (const auto& key : call->keys) by_key_[key].push_back(call);
  }
  /// False: it does not wait any more.
  bool remove(WaitingCall& call) {
    if (!std::exchange(call.is_waiting, false)) return false;
    for (const auto& key : call.keys) {
      const auto found = by_key_.find(key);
      if (found == by_key_.end()) continue;  // named twice
      found->second.remove_if([&](const Call& other) { return other.get() == &call; });
      if (found->second.empty()) by_key_.erase(found);
    }
    return true;
  }
  /// Those that wait for a key, the oldest first.
  std::vector<Call> of(std::string_view key) const {
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return {};
    return {found->second.begin(), found->second.end()};
  }

 private:
  std::map<std::string, std::list<Call>, std::less<>> by_key_;
};

}  // namespace sluice::engine
