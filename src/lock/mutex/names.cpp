#include "lock/mutex/names.hpp"

#include "lock/text.hpp"
#include "store/key_name.hpp"

namespace sluice::lock {

Names::Names(std::string name) : key(checked_name("a lock", std::move(name))) {
  token = key_with_prefix("redisson_lock_token", key);
  channel = key_with_prefix("redisson_lock__channel", key);
  queue = key_with_prefix("sluice_lock_queue", key);
  waiters = key_with_prefix("sluice_lock_waiters", key);
}

}  // namespace sluice::lock
