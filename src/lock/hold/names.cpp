#include "lock/hold/names.hpp"

#include "sluice/value.hpp"
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
}

std::string quoted(const std::string& name) { return to_string(Value::bulk_string(name)); }

}  // namespace sluice::lock
