#include "lock/wait/waiting.hpp"

namespace sluice::lock {

Task<void> wait_or_stop(std::shared_ptr<Completion> call, Clock& clock, SteadyTime until,
                        std::stop_token stop) {
  const std::stop_callback on_stop{std::move(stop), [call] { call->complete(); }};
  auto waiting = wait_until(*call, clock, until);
  co_await waiting;
}

}  // namespace sluice::lock
