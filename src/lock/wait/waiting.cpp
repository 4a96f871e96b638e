#include "lock/wait/waiting.hpp"

namespace sluice::lock {

Task<void> wait_or_stop(std::shared_ptr<Completion> call, Clock& clock, SteadyTime until,
                        std::stop_token stop) {
  const std::stop_callback on_stop{std::move(stop), [call] { call->complete(); }};
  co_await wait_until(*call, clock, until);
}

Task<ListenerBesideStrangers> listen_beside_strangers(Store& store, std::string channel,
                                                      MessageHandler handler) {
  auto counted = store.listen(channel + ":sluice", [](const Message&) {});
  Listener ours = co_await counted;
  auto listening = store.listen(std::move(channel), std::move(handler));
  Listener listener = co_await listening;
  co_return ListenerBesideStrangers{std::move(ours), std::move(listener)};
}

}  // namespace sluice::lock
