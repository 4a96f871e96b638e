#include "lock/mutex/names.hpp"

#include "lock/hold/steps.hpp"
#include "store/key_name.hpp"

namespace sluice::lock {

Names::Names(std::string name) : key(std::move(name)) {
  if (key.empty()) throw Error{Errc::bad_argument, "a lock needs a name that is not empty"};
  if (key.size() > longest) {
    throw Error{Errc::bad_argument, "the name of a lock has at most " + std::to_string(longest) +
                                        " bytes, this one " + std::to_string(key.size()) + ": " +
                                        quoted(key)};
  }
  token = key_with_prefix("redisson_lock_token", key);
  channel = key_with_prefix("redisson_lock__channel", key);
  queue = key_with_prefix("sluice_lock_queue", key);
  waiters = key_with_prefix("sluice_lock_waiters", key);
}

}  // namespace sluice::lock
