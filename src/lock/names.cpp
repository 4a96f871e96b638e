#include "lock/names.hpp"

#include "sluice/value.hpp"

namespace sluice::lock {
namespace {

/// Redisson's RedissonObject.prefixName: braces make the derived name fall into the slot of the key, unless the name
/// brings its own.
std::string prefixed(std::string_view prefix, const std::string& name) {
  std::string all{prefix};
  if (name.find('{') == std::string::npos) return all.append(":{").append(name).append("}");
  return all.append(":").append(name);
}

}  // namespace

Names::Names(std::string name) : key(std::move(name)) {
  if (key.empty()) throw Error{Errc::bad_argument, "a lock needs a name that is not empty"};
  if (key.size() > longest) {
    throw Error{Errc::bad_argument, "the name of a lock has at most " + std::to_string(longest) + " bytes, this one " +
                                        std::to_string(key.size()) + ": " + quoted(key)};
  }
  token = prefixed("redisson_lock_token", key);
  channel = prefixed("redisson_lock__channel", key);
}

std::string quoted(const std::string& name) { return to_string(Value::bulk_string(name)); }

}  // namespace sluice::lock
