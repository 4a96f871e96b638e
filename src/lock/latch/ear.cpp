#include "lock/latch/ear.hpp"

#include <utility>

#include "lock/wait/waiting.hpp"

namespace sluice::lock {

Task<Ear> Ear::open(Store& store, std::string channel) {
  Ear ear{store};
  auto listening = store.listen(std::move(channel), [state = ear.state_](const Message&) {
    std::shared_ptr<Completion> waiting;
    {
      const std::lock_guard lock{state->mutex};
      state->called = true;
      waiting = std::exchange(state->waiting, nullptr);
    }
    if (waiting) waiting->complete();  // without the mutex: it may carry on right here
  });
  ear.listener_ = co_await listening;
  co_return ear;
}

Task<void> Ear::hear(SteadyTime until, std::stop_token stop) {
  const auto state = state_;
  const auto call = std::make_shared<Completion>(store_->driver());
  {
    const std::lock_guard lock{state->mutex};
    if (std::exchange(state->called, false)) co_return;
    state->waiting = call;
  }
  auto resting = wait_or_stop(call, store_->clock(), until, std::move(stop));
  co_await resting;
  const std::lock_guard lock{state->mutex};
  state->waiting = nullptr;
  state->called = false;  // whoever returns from here looks
}

}  // namespace sluice::lock
