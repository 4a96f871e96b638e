#include "redisson/fair_acquire.lua.hpp"
#include "redisson/fair_force.lua.hpp"
#include "redisson/fair_give_up.lua.hpp"
#include "redisson/fair_release.lua.hpp"
#include "redisson/fenced_acquire.lua.hpp"
#include "redisson/lock_acquire.lua.hpp"
#include "redisson/lock_force.lua.hpp"
#include "redisson/lock_release.lua.hpp"
#include "redisson/lock_renew.lua.hpp"
#include "redisson/read_acquire.lua.hpp"
#include "redisson/read_release.lua.hpp"
#include "redisson/read_renew.lua.hpp"
#include "redisson/rw_force.lua.hpp"
#include "redisson/write_acquire.lua.hpp"
#include "redisson/write_release.lua.hpp"
#include "store/key_name.hpp"
#include "support/java_peer.hpp"

namespace sluice::test {
namespace {

std::string java_text(std::chrono::milliseconds time) { return std::to_string(time.count()); }

}  // namespace

// RLock

std::string JavaPeer::Lock::channel() const {
  return key_with_prefix("redisson_lock__channel", name_);
}

Value JavaPeer::Lock::acquire(Milliseconds lease) const {
  return run(scripts::redisson_lock_acquire, {name_}, {java_text(lease), peer_.owner()});
}

bool JavaPeer::Lock::acquire_within(Milliseconds patience) const {
  return wait_for_null(channel(), patience, [this] { return acquire(); });
}

Value JavaPeer::Lock::renew() const {
  return run(scripts::redisson_lock_renew, {name_},
             {java_text(JavaPeer::default_lease), peer_.owner()})
      .as_items()
      .at(0);
}

Value JavaPeer::Lock::release_with(const std::string& latch) const {
  return run(scripts::redisson_lock_release, {name_, channel(), latch},
             {peer_.owner(), java_text(JavaPeer::default_lease), java_text(latch_ttl)});
}

Value JavaPeer::Lock::release() const {
  return with_latch([this](const std::string& latch) { return release_with(latch); });
}

std::pair<Value, Value> JavaPeer::Lock::release_twice() const {
  Value first;
  Value second = with_latch([&](const std::string& latch) {
    first = release_with(latch);
    return release_with(latch);
  });
  return {std::move(first), std::move(second)};
}

Value JavaPeer::Lock::force() const {
  return run(scripts::redisson_lock_force, {name_, channel()}, {});
}

// RFencedLock

std::string JavaPeer::FencedLock::counter() const {
  return key_with_prefix("redisson_lock_token", name_);
}

std::optional<std::uint64_t> JavaPeer::FencedLock::acquire(Milliseconds lease) const {
  const Value reply =
      run(scripts::redisson_fenced_acquire, {name_, counter()}, {java_text(lease), peer_.owner()});
  const auto token = reply.as_items().at(1).as_integer();
  if (token < 0) return std::nullopt;
  return static_cast<std::uint64_t>(token);
}

// RFairLock

std::string JavaPeer::FairLock::channels() const {
  return key_with_prefix("redisson_lock__channel", name_);
}
std::string JavaPeer::FairLock::channel() const { return channels() + ':' + peer_.owner(); }
std::string JavaPeer::FairLock::queue() const {
  return key_with_prefix("redisson_lock_queue", name_);
}
std::string JavaPeer::FairLock::deadlines() const {
  return key_with_prefix("redisson_lock_timeout", name_);
}

Value JavaPeer::FairLock::ask(std::string_view how, Milliseconds lease) const {
  return run(scripts::redisson_fair_acquire, {name_, queue(), deadlines()},
             {java_text(lease), peer_.owner(), java_text(fair_wait), java_text(peer_.now()),
              std::string{how}});
}

Value JavaPeer::FairLock::acquire(Milliseconds lease) const { return ask("queue", lease); }
Value JavaPeer::FairLock::try_acquire() const { return ask("once", JavaPeer::default_lease); }

bool JavaPeer::FairLock::acquire_within(Milliseconds patience) const {
  const bool in = wait_for_null(channel(), patience, [this] { return acquire(); });
  if (!in) give_up();
  return in;
}

Value JavaPeer::FairLock::give_up() const {
  return run(scripts::redisson_fair_give_up, {queue(), deadlines()},
             {peer_.owner(), java_text(fair_wait)});
}

Value JavaPeer::FairLock::release() const {
  return with_latch([this](const std::string& latch) {
    return run(scripts::redisson_fair_release, {name_, queue(), deadlines(), channels(), latch},
               {peer_.owner(), java_text(JavaPeer::default_lease), java_text(latch_ttl),
                java_text(peer_.now())});
  });
}

Value JavaPeer::FairLock::force() const {
  return run(scripts::redisson_fair_force, {name_, queue(), deadlines(), channels()},
             {java_text(peer_.now())});
}

// RReadWriteLock

std::string JavaPeer::ReadLock::channel() const {
  return key_with_prefix("redisson_rwlock", name_);
}
std::string JavaPeer::ReadLock::hold_keys() const {
  return key_with_suffix(name_, peer_.owner() + ":rwlock_timeout");
}

Value JavaPeer::ReadLock::acquire(Milliseconds lease) const {
  return run(scripts::redisson_read_acquire, {name_, hold_keys()},
             {java_text(lease), peer_.owner()});
}

bool JavaPeer::ReadLock::acquire_within(Milliseconds patience) const {
  return wait_for_null(channel(), patience, [this] { return acquire(); });
}

Value JavaPeer::ReadLock::renew() const {
  return run(scripts::redisson_read_renew, {name_, hold_keys()},
             {java_text(JavaPeer::default_lease), peer_.owner()});
}

Value JavaPeer::ReadLock::release() const {
  std::string prefix = key_with_suffix(name_, "");
  prefix.pop_back();  // the colon
  return with_latch([&](const std::string& latch) {
    return run(scripts::redisson_read_release, {name_, channel(), latch, prefix},
               {peer_.owner(), java_text(latch_ttl)});
  });
}

bool JavaPeer::ReadLock::is_locked() const {
  const Value mode = peer_.line().command({"HGET", name_, "mode"});
  if (mode.is_null()) return false;
  return mode.as_text() == "read" ||
         (mode.as_text() == "write" && peer_.line().command({"HLEN", name_}).as_integer() > 2);
}

Value JavaPeer::ReadLock::force() const {
  return run(scripts::redisson_rw_force, {name_, channel()}, {"read", "0"});
}

std::string JavaPeer::WriteLock::channel() const {
  return key_with_prefix("redisson_rwlock", name_);
}

Value JavaPeer::WriteLock::acquire(Milliseconds lease) const {
  return run(scripts::redisson_write_acquire, {name_}, {java_text(lease), owner()});
}

bool JavaPeer::WriteLock::acquire_within(Milliseconds patience) const {
  return wait_for_null(channel(), patience, [this] { return acquire(); });
}

Value JavaPeer::WriteLock::renew() const {
  return run(scripts::redisson_lock_renew, {name_}, {java_text(JavaPeer::default_lease), owner()})
      .as_items()
      .at(0);
}

Value JavaPeer::WriteLock::release() const {
  return with_latch([this](const std::string& latch) {
    return run(scripts::redisson_write_release, {name_, channel(), latch},
               {owner(), java_text(JavaPeer::default_lease), java_text(latch_ttl)});
  });
}

Value JavaPeer::WriteLock::force() const {
  return run(scripts::redisson_rw_force, {name_, channel()}, {"write", "1"});
}

}  // namespace sluice::test
