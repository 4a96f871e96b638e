#include "lock/semaphore/names.hpp"

#include "lock/text.hpp"
#include "store/key_name.hpp"

namespace sluice::lock {
PoolNames PoolNames::counted(std::string name) {
  const std::string free = checked_name("a semaphore", std::move(name));
  return {.free = free,
          .holds = key_with_prefix("sluice_semaphore_holds", free),
          .queue = key_with_prefix("sluice_semaphore_queue", free),
          .people = key_with_prefix("sluice_semaphore_people", free),
          .turns = key_with_prefix("sluice_semaphore_turns", free),
          .channel = key_with_prefix("redisson_sc", free),
          .done = key_with_prefix("sluice_semaphore_done", free)};
}

PoolNames PoolNames::identified(std::string name) {
  const std::string free = checked_name("a semaphore", std::move(name));
  return {.free = free,
          .holds = key_with_suffix(free, "timeout"),
          .queue = key_with_prefix("sluice_permit_queue", free),
          .people = key_with_prefix("sluice_permit_people", free),
          .turns = key_with_prefix("sluice_permit_turns", free),
          .channel = key_with_prefix("redisson_sc", free),
          .done = key_with_prefix("sluice_permit_done", free)};
}

std::string PoolNames::answer(std::string_view request) const {
  return done + ':' + std::string{request};
}

}  // namespace sluice::lock
