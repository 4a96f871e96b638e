#include "engine/embedded/waiting_calls.hpp"

#include <utility>

namespace sluice::engine {

void WaitingCalls::add(const Call& call) {
  call->is_waiting = true;
  for (const auto& key : call->keys) by_key_[key].push_back(call);
}

bool WaitingCalls::remove(WaitingCall& call) {
  if (!std::exchange(call.is_waiting, false)) return false;
  for (const auto& key : call.keys) {
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) continue;  // named twice
    found->second.remove_if([&](const Call& other) { return other.get() == &call; });
    if (found->second.empty()) by_key_.erase(found);
  }
  return true;
}

std::vector<WaitingCalls::Call> WaitingCalls::of(std::string_view key) const {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

}  // namespace sluice::engine
