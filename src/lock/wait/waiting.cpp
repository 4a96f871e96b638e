#include "lock/wait/waiting.hpp"

#include <string_view>

#include "sluice/when_all.hpp"
#include "store/waiter.hpp"

namespace sluice::lock {

Task<void> wait_or_stop(std::shared_ptr<Completion> call, Clock& clock, SteadyTime until,
                        std::stop_token stop) {
  const std::stop_callback on_stop{std::move(stop), [call] { call->complete(); }};
  co_await wait_until(*call, clock, until);
}

Task<ListenerBesideStrangers> listen_beside_strangers(Store& store, std::string channel,
                                                      MessageHandler handler) {
  std::vector<Task<Listener>> both;  // made at once: the Store may be gone when one is confirmed
  both.push_back(store.subscribe(channel + ":sluice", [](const Message&) {}));
  both.push_back(store.subscribe(std::move(channel), std::move(handler)));
  auto listening = when_all(std::move(both));
  std::vector<Listener> listeners = co_await listening;
  co_return ListenerBesideStrangers{std::move(listeners[0]), std::move(listeners[1])};
}

bool StopOrDrop::await_ready() const noexcept { return Waiter::current() != nullptr; }

}  // namespace sluice::lock
