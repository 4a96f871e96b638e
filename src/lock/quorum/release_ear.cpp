#include "lock/quorum/release_ear.hpp"

#include <algorithm>

#include "lock/hold/steps.hpp"
#include "lock/wait/waiting.hpp"
#include "sluice/log.hpp"

namespace sluice::lock {

ReleaseEar::ReleaseEar(const Round::Nodes& nodes, const std::string& channel) {
  state_->listeners.resize(nodes.size());
  state_->told.resize(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) spawn(listen(state_, *nodes[i], i, channel));
}

Task<void> ReleaseEar::listen(std::shared_ptr<State> state, Store& node, std::size_t which,
                              std::string channel) {
  try {
    auto listening = node.listen(channel, [weak = std::weak_ptr{state}, which](const Message&) {
      if (const auto hearer = weak.lock()) hearer->tell(which);
    });
    Listener listener = co_await listening;
    const std::lock_guard lock{state->mutex};
    state->listeners[which] = std::move(listener);
  } catch (const Error& failure) {
    log(LogLevel::debug, "releases at " + node.describe() + " are not heard: " + failure.message());
  }
}

bool ReleaseEar::State::is_told() const {
  const auto many = static_cast<std::size_t>(std::ranges::count(told, true));
  return many >= majority_of(told.size());
}

void ReleaseEar::State::tell(std::size_t node) {
  std::shared_ptr<Completion> roused;
  {
    const std::lock_guard lock{mutex};
    told[node] = true;
    if (is_told()) roused = std::exchange(waiting, nullptr);
  }
  if (roused) roused->complete();  // without the mutex: it may carry on right here
}

Task<void> ReleaseEar::hear(Clock& clock, SteadyTime until, std::stop_token stop) {
  const auto state = state_;
  const auto call = std::make_shared<Completion>();
  bool told = false;
  {
    const std::lock_guard lock{state->mutex};
    told = state->is_told();
    if (!told) state->waiting = call;
  }
  if (!told) {
    auto resting = wait_or_stop(call, clock, until, std::move(stop));
    co_await resting;
  }
  const std::lock_guard lock{state->mutex};
  state->waiting = nullptr;
  state->told.assign(state->told.size(), false);
}

}  // namespace sluice::lock
