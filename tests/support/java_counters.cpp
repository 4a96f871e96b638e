#include "base/random.hpp"
#include "redisson/bloom_add.lua.hpp"
#include "redisson/bloom_contains.lua.hpp"
#include "redisson/bloom_init.lua.hpp"
#include "redisson/latch_count_down.lua.hpp"
#include "redisson/latch_delete.lua.hpp"
#include "redisson/latch_set.lua.hpp"
#include "redisson/limiter_acquire.lua.hpp"
#include "redisson/limiter_set_rate.lua.hpp"
#include "redisson/permit_acquire.lua.hpp"
#include "redisson/permit_release.lua.hpp"
#include "redisson/semaphore_acquire.lua.hpp"
#include "redisson/semaphore_release.lua.hpp"
#include "redisson/semaphore_set.lua.hpp"
#include "store/key_name.hpp"
#include "support/java_peer.hpp"

namespace sluice::test {
namespace {

std::string text_of(std::chrono::milliseconds time) { return std::to_string(time.count()); }
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

// RBloomFilter

std::string JavaPeer::BloomFilter::config() const { return key_with_suffix(name_, "config"); }

Value JavaPeer::BloomFilter::try_init(std::string size, std::string hashes, std::string expected,
                                      std::string error_rate) {
  Value reply = run(scripts::redisson_bloom_init, {config()}, {size, hashes, expected, error_rate});
  if (reply.as_integer() == 0) {
    read_config();
  } else {
    size_ = std::move(size);
    hashes_ = std::move(hashes);
  }
  return reply;
}

void JavaPeer::BloomFilter::read_config() {
  const Value fields = peer_.line().command({"HMGET", config(), "size", "hashIterations"});
  size_ = fields.as_items().at(0).as_text();
  hashes_ = fields.as_items().at(1).as_text();
}

std::vector<std::string> JavaPeer::BloomFilter::words(const Indexes& indexes) const {
  Strings words{size_, hashes_};
  for (const auto index : indexes) words.push_back(text_of(std::int64_t{index}));
  return words;
}

Value JavaPeer::BloomFilter::add(const Indexes& indexes) const {
  return run(scripts::redisson_bloom_add, {config(), name_}, words(indexes));
}

Value JavaPeer::BloomFilter::contains(const Indexes& indexes) const {
  return run(scripts::redisson_bloom_contains, {config(), name_}, words(indexes));
}

}  // namespace sluice::test
