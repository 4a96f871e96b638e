#include "lock/wait/message_signal.hpp"

#include <algorithm>
#include <utility>

#include "lock/wait/waiting.hpp"
#include "sluice/log.hpp"

namespace sluice::lock {

MessageSignal::MessageSignal(std::vector<Store*> stores) {
  state_->beside.resize(stores.size());
  state_->heard.resize(stores.size());
  state_->stores = std::move(stores);
}

bool MessageSignal::State::is_enough() const {
  return static_cast<std::size_t>(std::ranges::count(heard, true)) >= heard.size() / 2 + 1;
}

void MessageSignal::State::hear(std::size_t store) {
  std::shared_ptr<Completion> waiter;
  {
    const std::lock_guard lock{mutex};
    heard[store] = true;
    if (is_enough()) waiter = std::exchange(waiting, nullptr);
  }
  if (waiter) waiter->complete();  // without the mutex: the waiter may go on right here
}

MessageHandler MessageSignal::hearer(const std::shared_ptr<State>& state, std::size_t store) {
  return [weak = std::weak_ptr{state}, store](const Message&) {
    if (const auto alive = weak.lock()) alive->hear(store);
  };
}

Task<bool> MessageSignal::listen(std::string channel, SteadyTime until) {
  Store& store = *state_->stores.front();
  auto listening = in_time(store.subscribe(std::move(channel), hearer(state_, 0)), store, until);
  std::optional<Listener> listener = co_await listening;
  if (!listener) co_return false;
  const std::lock_guard lock{state_->mutex};
  state_->listener = *std::move(listener);
  co_return true;
}

Task<void> MessageSignal::try_to_listen(std::shared_ptr<State> state, std::size_t store,
                                        std::string channel) {
  try {
    auto listening =
        listen_beside_strangers(*state->stores[store], std::move(channel), hearer(state, store));
    ListenerBesideStrangers listener = co_await listening;
    const std::lock_guard lock{state->mutex};
    state->beside[store] = std::move(listener);
  } catch (const Error& failure) {
    log(LogLevel::debug,
        "messages of " + state->stores[store]->describe() + " are not heard: " + failure.message());
  }
}

void MessageSignal::listen_to_all(const std::string& channel) {
  for (std::size_t store = 0; store < state_->stores.size(); ++store)
    spawn(try_to_listen(state_, store, channel));
}

Task<void> MessageSignal::wait(SteadyTime until, std::stop_token stop) {
  const auto state = state_;
  Store& first = *state->stores.front();
  Driver* const driver = state->stores.size() == 1 ? first.driver() : nullptr;
  const auto call = std::make_shared<Completion>(driver);
  bool is_over = false;
  {
    const std::lock_guard lock{state->mutex};
    is_over = state->is_enough();
    if (!is_over) state->waiting = call;
  }
  if (!is_over) co_await wait_or_stop(call, first.clock(), until, std::move(stop));
  const std::lock_guard lock{state->mutex};
  state->waiting = nullptr;
  state->heard.assign(state->heard.size(), false);
}

}  // namespace sluice::lock
