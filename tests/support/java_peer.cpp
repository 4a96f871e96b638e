#include "support/java_peer.hpp"

#include <algorithm>

#include "base/random.hpp"
#include "redisson/fair_acquire.lua.hpp"
#include "redisson/fair_force.lua.hpp"
#include "redisson/fair_give_up.lua.hpp"
#include "redisson/fair_release.lua.hpp"
#include "redisson/fenced_acquire.lua.hpp"
#include "redisson/latch_count_down.lua.hpp"
#include "redisson/latch_delete.lua.hpp"
#include "redisson/latch_set.lua.hpp"
#include "redisson/limiter_acquire.lua.hpp"
#include "redisson/limiter_set_rate.lua.hpp"
#include "redisson/lock_acquire.lua.hpp"
#include "redisson/lock_force.lua.hpp"
#include "redisson/lock_release.lua.hpp"
#include "redisson/lock_renew.lua.hpp"
#include "redisson/permit_acquire.lua.hpp"
#include "redisson/permit_release.lua.hpp"
#include "redisson/read_acquire.lua.hpp"
#include "redisson/read_release.lua.hpp"
#include "redisson/read_renew.lua.hpp"
#include "redisson/rw_force.lua.hpp"
#include "redisson/semaphore_acquire.lua.hpp"
#include "redisson/semaphore_release.lua.hpp"
#include "redisson/semaphore_set.lua.hpp"
#include "redisson/write_acquire.lua.hpp"
#include "redisson/write_release.lua.hpp"
#include "store/key_name.hpp"

namespace sluice::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::string text_of(milliseconds time) { return std::to_string(time.count()); }
std::string text_of(std::int64_t number) { return std::to_string(number); }

/// 16 random bytes: the id of a permit.
std::string new_permit_id() {
  const std::string hex = random_hex_128();
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

}  // namespace

Ear::Ear(std::uint16_t port, std::string_view channel) : line_(port) {
  line_.command({"SUBSCRIBE", channel});
}

std::optional<std::string> Ear::hear(milliseconds patience) {
  const auto message = line_.read_for(std::max(patience, milliseconds{0}));
  if (!message) return std::nullopt;
  return message->as_items().at(2).as_text();
}

bool Ear::hears(std::string_view payload, milliseconds patience) {
  const auto until = steady_clock::now() + patience;
  while (const auto heard = hear(std::chrono::ceil<milliseconds>(until - steady_clock::now())))
    if (*heard == payload) return true;
  return false;
}

JavaPeer::JavaPeer(std::uint16_t port, std::uint64_t thread, std::string uuid)
    : port_(port),
      thread_(thread),
      uuid_(uuid.empty() ? random_uuid() : std::move(uuid)),
      line_(port) {}

milliseconds JavaPeer::now() const {
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::floor<milliseconds>(wall) + clock_skew;
}

Value JavaPeer::Object::run(const Script& script, Strings keys, Strings args) const {
  Strings words{"EVAL", std::string{script.text}, std::to_string(keys.size())};
  std::ranges::move(keys, std::back_inserter(words));
  std::ranges::move(args, std::back_inserter(words));
  return peer_.line().command(words);
}

Value JavaPeer::Object::with_latch(
    const std::function<Value(const std::string& latch)>& release) const {
  const auto latch = key_with_prefix("redisson_unlock_latch", name_) + ':' + random_hex_128();
  Value reply = release(latch);
  peer_.line().command({"DEL", latch});
  return reply;
}

bool JavaPeer::Object::wait_in(
    const std::string& channel, Milliseconds patience,
    const std::function<bool(std::optional<Milliseconds>& sleep)>& attempt) const {
  const auto until = steady_clock::now() + patience;
  std::optional<Milliseconds> sleep;
  if (attempt(sleep)) return true;
  Ear ear{peer_.port(), channel};
  while (!attempt(sleep)) {
    const auto left = std::chrono::ceil<Milliseconds>(until - steady_clock::now());
    if (left <= Milliseconds{0}) return false;
    ear.hear(sleep ? std::min(left, *sleep) : left);
    sleep.reset();
  }
  return true;
}

bool JavaPeer::Object::wait_for_null(const std::string& channel, Milliseconds patience,
                                     const std::function<Value()>& acquire) const {
  return wait_in(channel, patience, [&](std::optional<Milliseconds>& sleep) {
    const Value reply = acquire();
    if (reply.is_null()) return true;
    if (reply.as_integer() >= 0) sleep = Milliseconds{reply.as_integer()};
    return false;
  });
}

// RLock

std::string JavaPeer::Lock::channel() const {
  return key_with_prefix("redisson_lock__channel", name_);
}

Value JavaPeer::Lock::acquire(Milliseconds lease) const {
  return run(scripts::redisson_lock_acquire, {name_}, {text_of(lease), peer_.owner()});
}

bool JavaPeer::Lock::acquire_within(Milliseconds patience) const {
  return wait_for_null(channel(), patience, [this] { return acquire(); });
}

Value JavaPeer::Lock::renew() const {
  return run(scripts::redisson_lock_renew, {name_}, {text_of(JavaPeer::lease), peer_.owner()})
      .as_items()
      .at(0);
}

Value JavaPeer::Lock::release_with(const std::string& latch) const {
  return run(scripts::redisson_lock_release, {name_, channel(), latch},
             {peer_.owner(), text_of(JavaPeer::lease), text_of(latch_ttl)});
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
      run(scripts::redisson_fenced_acquire, {name_, counter()}, {text_of(lease), peer_.owner()});
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
  return run(
      scripts::redisson_fair_acquire, {name_, queue(), deadlines()},
      {text_of(lease), peer_.owner(), text_of(fair_wait), text_of(peer_.now()), std::string{how}});
}

Value JavaPeer::FairLock::acquire(Milliseconds lease) const { return ask("queue", lease); }
Value JavaPeer::FairLock::try_acquire() const { return ask("once", JavaPeer::lease); }

bool JavaPeer::FairLock::acquire_within(Milliseconds patience) const {
  const bool in = wait_for_null(channel(), patience, [this] { return acquire(); });
  if (!in) give_up();
  return in;
}

Value JavaPeer::FairLock::give_up() const {
  return run(scripts::redisson_fair_give_up, {queue(), deadlines()},
             {peer_.owner(), text_of(fair_wait)});
}

Value JavaPeer::FairLock::release() const {
  return with_latch([this](const std::string& latch) {
    return run(scripts::redisson_fair_release, {name_, queue(), deadlines(), channels(), latch},
               {peer_.owner(), text_of(JavaPeer::lease), text_of(latch_ttl), text_of(peer_.now())});
  });
}

Value JavaPeer::FairLock::force() const {
  return run(scripts::redisson_fair_force, {name_, queue(), deadlines(), channels()},
             {text_of(peer_.now())});
}

// RReadWriteLock

std::string JavaPeer::ReadLock::channel() const {
  return key_with_prefix("redisson_rwlock", name_);
}
std::string JavaPeer::ReadLock::hold_keys() const {
  return key_with_suffix(name_, peer_.owner() + ":rwlock_timeout");
}

Value JavaPeer::ReadLock::acquire(Milliseconds lease) const {
  return run(scripts::redisson_read_acquire, {name_, hold_keys()}, {text_of(lease), peer_.owner()});
}

bool JavaPeer::ReadLock::acquire_within(Milliseconds patience) const {
  return wait_for_null(channel(), patience, [this] { return acquire(); });
}

Value JavaPeer::ReadLock::renew() const {
  return run(scripts::redisson_read_renew, {name_, hold_keys()},
             {text_of(JavaPeer::lease), peer_.owner()});
}

Value JavaPeer::ReadLock::release() const {
  std::string prefix = key_with_suffix(name_, "");
  prefix.pop_back();  // the colon
  return with_latch([&](const std::string& latch) {
    return run(scripts::redisson_read_release, {name_, channel(), latch, prefix},
               {peer_.owner(), text_of(latch_ttl)});
  });
}

Value JavaPeer::ReadLock::force() const {
  return run(scripts::redisson_rw_force, {name_, channel()}, {"read", "0"});
}

std::string JavaPeer::WriteLock::channel() const {
  return key_with_prefix("redisson_rwlock", name_);
}

Value JavaPeer::WriteLock::acquire(Milliseconds lease) const {
  return run(scripts::redisson_write_acquire, {name_}, {text_of(lease), owner()});
}

bool JavaPeer::WriteLock::acquire_within(Milliseconds patience) const {
  return wait_for_null(channel(), patience, [this] { return acquire(); });
}

Value JavaPeer::WriteLock::renew() const {
  return run(scripts::redisson_lock_renew, {name_}, {text_of(JavaPeer::lease), owner()})
      .as_items()
      .at(0);
}

Value JavaPeer::WriteLock::release() const {
  return with_latch([this](const std::string& latch) {
    return run(scripts::redisson_write_release, {name_, channel(), latch},
               {owner(), text_of(JavaPeer::lease), text_of(latch_ttl)});
  });
}

Value JavaPeer::WriteLock::force() const {
  return run(scripts::redisson_rw_force, {name_, channel()}, {"write", "1"});
}

// RSemaphore

std::string JavaPeer::Semaphore::channel() const { return key_with_prefix("redisson_sc", name_); }

Value JavaPeer::Semaphore::try_set_permits(std::int64_t permits) const {
  return run(scripts::redisson_semaphore_set, {name_, channel()}, {text_of(permits)});
}

Value JavaPeer::Semaphore::acquire(std::int64_t permits) const {
  return run(scripts::redisson_semaphore_acquire, {name_}, {text_of(permits)});
}

bool JavaPeer::Semaphore::acquire_within(Milliseconds patience, std::int64_t permits) const {
  return wait_in(channel(), patience,
                 [&](std::optional<Milliseconds>&) { return acquire(permits).as_integer() == 1; });
}

Value JavaPeer::Semaphore::release(std::int64_t permits) const {
  return run(scripts::redisson_semaphore_release, {name_, channel()}, {text_of(permits)});
}

// RPermitExpirableSemaphore

std::string JavaPeer::PermitSemaphore::channel() const {
  return key_with_prefix("redisson_sc", name_);
}
std::string JavaPeer::PermitSemaphore::ends() const { return key_with_suffix(name_, "timeout"); }

Value JavaPeer::PermitSemaphore::try_set_permits(std::int64_t permits) const {
  return run(scripts::redisson_semaphore_set, {name_, channel()}, {text_of(permits)});
}

JavaPeer::PermitSemaphore::Answer JavaPeer::PermitSemaphore::ask(
    std::optional<Milliseconds> lease) const {
  constexpr Milliseconds never{922337203685477};
  const auto now = peer_.now();
  std::string id = new_permit_id();
  const Value reply = run(scripts::redisson_permit_acquire, {name_, ends(), channel()},
                          {"1", text_of(lease ? now + *lease : never), text_of(now), id});
  if (reply.is_null()) return {};
  if (reply.as_text() == "OK") return {.id = std::move(id), .sleep = {}};
  return {.id = {}, .sleep = Milliseconds{std::stoll(reply.as_text().substr(1))} - now};
}

std::optional<std::string> JavaPeer::PermitSemaphore::acquire(
    std::optional<Milliseconds> lease) const {
  return ask(lease).id;
}

std::optional<std::string> JavaPeer::PermitSemaphore::acquire_within(
    Milliseconds patience, std::optional<Milliseconds> lease) const {
  std::optional<std::string> id;
  wait_in(channel(), patience, [&](std::optional<Milliseconds>& sleep) {
    auto answer = ask(lease);
    id = std::move(answer.id);
    sleep = answer.sleep;
    return id.has_value();
  });
  return id;
}

Value JavaPeer::PermitSemaphore::release(const std::string& id) const {
  return run(scripts::redisson_permit_release, {name_, ends(), channel()},
             {id, text_of(peer_.now())});
}

// RCountDownLatch

/// Braces whatever the name brings, and no colon: the one channel of its kind.
std::string JavaPeer::Latch::channel() const {
  return "redisson_countdownlatch__channel__{" + name_ + '}';
}

Value JavaPeer::Latch::try_set_count(std::int64_t count) const {
  return run(scripts::redisson_latch_set, {name_, channel()}, {text_of(count)});
}

Value JavaPeer::Latch::count_down() const {
  return run(scripts::redisson_latch_count_down, {name_, channel()}, {});
}

Value JavaPeer::Latch::remove() const {
  return run(scripts::redisson_latch_delete, {name_, channel()}, {});
}

bool JavaPeer::Latch::await(Milliseconds patience) const {
  return wait_in(channel(), patience, [this](std::optional<Milliseconds>&) {
    const Value count = peer_.line().command({"GET", name_});
    return count.is_null() || count.as_integer() == 0;
  });
}

// RRateLimiter

Value JavaPeer::RateLimiter::try_set_rate(Type type, std::int64_t rate,
                                          Milliseconds interval) const {
  return run(scripts::redisson_limiter_set_rate, {name_},
             {text_of(rate), text_of(interval), type == Type::overall ? "0" : "1"});
}

Value JavaPeer::RateLimiter::acquire(std::int64_t permits) const {
  const auto value = key_with_suffix(name_, "value");
  const auto given = key_with_suffix(name_, "permits");
  const auto own = ':' + peer_.uuid();
  return run(scripts::redisson_limiter_acquire, {name_, value, given, value + own, given + own},
             {text_of(permits), text_of(peer_.now()), new_permit_id()});
}

}  // namespace sluice::test
