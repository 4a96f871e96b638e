#include "lock/shared/names.hpp"

#include "lock/text.hpp"
#include "store/key_name.hpp"

namespace sluice::lock {

SharedNames::SharedNames(std::string name) : key(checked_name("a lock", std::move(name))) {
  hold_keys = key_with_suffix(key, "");
  hold_keys.pop_back();  // the colon
  token = key_with_prefix("redisson_lock_token", key);
  channel = key_with_prefix("redisson_rwlock", key);
  writers = key_with_prefix("sluice_rw_writers", key);
  readers = key_with_prefix("sluice_rw_readers", key);
}

}  // namespace sluice::lock
