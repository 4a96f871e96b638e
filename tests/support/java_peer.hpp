/// Redisson 4 as it is seen on the wire: what the objects of a Java client do to the server, step
/// by step, so that a test plays the other side without a Java machine. Names, fields, payloads and
/// replies are Redisson's; the scripts in redisson/ are our own words for its steps.
///
///     JavaPeer java{server.port()};
///     JavaPeer::Lock lock{java, "stock"};
///     EXPECT_TRUE(lock.acquire().is_null());          // null: granted
///     EXPECT_TRUE(lock.acquire_within(5s));           // waits as Redisson waits
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/store.hpp"
#include "support/plain_client.hpp"

namespace sluice::test {

/// A subscription of one channel, on a connection of its own; subscribed when the constructor
/// returns.
class Ear {
 public:
  Ear(std::uint16_t port, std::string_view channel);

  /// The next payload; empty: none came within `patience`.
  std::optional<std::string> hear(std::chrono::milliseconds patience);
  /// Whether `payload` comes within `patience`; what comes before it is passed over.
  bool hears(std::string_view payload, std::chrono::milliseconds patience);

 private:
  PlainClient line_;
};

/// A thread of a Redisson client: the owner of what it acquires. Each of its objects below is used
/// by one thread at a time, and so is the peer.
class JavaPeer {
 public:
  using Milliseconds = std::chrono::milliseconds;
  static constexpr Milliseconds default_lease{30'000};  ///< lockWatchdogTimeout
  static constexpr Milliseconds fair_wait{300'000};     ///< fairLockWaitTimeout
  static constexpr Milliseconds latch_ttl{18'000};      ///< of the latch of a release: 16 to 20 s

  /// `uuid`: the client; empty: a new one.
  explicit JavaPeer(std::uint16_t port, std::uint64_t thread = 1, std::string uuid = {});

  const std::string& uuid() const noexcept { return uuid_; }
  std::string owner() const { return uuid_ + ':' + std::to_string(thread_); }
  std::uint16_t port() const noexcept { return port_; }
  PlainClient& line() noexcept { return line_; }
  /// Milliseconds of its wall clock, which the fair lock, the permits and the limiter go by. A test
  /// may set it wrong.
  Milliseconds now() const;
  Milliseconds clock_skew{0};
  /// How long after a message it asks: 1 to 3 ms where a Java machine has other things to do.
  Milliseconds reaction{0};

  class Lock;
  class FencedLock;
  class FairLock;
  class ReadLock;
  class WriteLock;
  class Semaphore;
  class PermitSemaphore;
  class Latch;
  class RateLimiter;
  class BloomFilter;

 private:
  class Object;

  std::uint16_t port_;
  std::uint64_t thread_;
  std::string uuid_;
  PlainClient line_;
};

/// What the objects share: a name, and how Redisson runs a script and waits.
class JavaPeer::Object {
 public:
  const std::string& name() const noexcept { return name_; }

 protected:
  using Strings = std::vector<std::string>;

  Object(JavaPeer& peer, std::string name) : peer_(peer), name_(std::move(name)) {}

  Value run(const Script& script, Strings keys, Strings args) const;
  /// Runs `release` with the key of a fresh latch, and deletes the latch as Redisson does.
  Value with_latch(const std::function<Value(const std::string& latch)>& release) const;
  /// Tries; then subscribes, tries again, and tries whenever something is heard or the time is over
  /// that a refusal told (null: none). False: not in within `patience`.
  bool wait_in(const std::string& channel, Milliseconds patience,
               const std::function<bool(std::optional<Milliseconds>& sleep)>& attempt) const;
  /// An attempt whose reply is null when granted, else the time to sleep.
  bool wait_for_null(const std::string& channel, Milliseconds patience,
                     const std::function<Value()>& acquire) const;

  JavaPeer& peer_;
  std::string name_;
};

/// RLock.
class JavaPeer::Lock : public Object {
 public:
  Lock(JavaPeer& peer, std::string name) : Object(peer, std::move(name)) {}

  Value acquire(Milliseconds lease = JavaPeer::default_lease) const;  ///< null: in; else ms left
  bool acquire_within(Milliseconds patience) const;
  Value renew() const;    ///< 1 prolonged, 0 not held
  Value release() const;  ///< null: not the owner; 0 still in; 1 free
  /// A release that is sent once more under the same request id: both replies.
  std::pair<Value, Value> release_twice() const;
  Value force() const;  ///< 1 freed, 0 it was free
  std::string channel() const;

 private:
  Value release_with(const std::string& latch) const;
};

/// RFencedLock: the rest of its verbs are RLock's.
class JavaPeer::FencedLock : public Lock {
 public:
  using Lock::Lock;

  /// The token; empty: refused.
  std::optional<std::uint64_t> acquire(Milliseconds lease = JavaPeer::default_lease) const;
  std::string counter() const;
};

/// RFairLock.
class JavaPeer::FairLock : public Object {
 public:
  FairLock(JavaPeer& peer, std::string name) : Object(peer, std::move(name)) {}

  /// Null: in; else it stands in the queue, and sleeps so many ms.
  Value acquire(Milliseconds lease = JavaPeer::default_lease) const;
  Value try_acquire() const;  ///< null: in; 1: refused, and not in the queue
  /// Gives up its place when it is not in within `patience`.
  bool acquire_within(Milliseconds patience) const;
  Value give_up() const;
  Value release() const;
  Value force() const;
  std::string channel() const;  ///< its own, where it is told that its turn has come
  std::string queue() const;
  std::string deadlines() const;

 private:
  Value ask(std::string_view how, Milliseconds lease) const;
  std::string channels() const;
};

/// RReadWriteLock.readLock().
class JavaPeer::ReadLock : public Object {
 public:
  ReadLock(JavaPeer& peer, std::string name) : Object(peer, std::move(name)) {}

  Value acquire(Milliseconds lease = JavaPeer::default_lease) const;
  bool acquire_within(Milliseconds patience) const;
  Value renew() const;
  Value release() const;
  bool is_locked() const;
  Value force() const;
  std::string channel() const;

 private:
  std::string hold_keys() const;
};

/// RReadWriteLock.writeLock().
class JavaPeer::WriteLock : public Object {
 public:
  WriteLock(JavaPeer& peer, std::string name) : Object(peer, std::move(name)) {}

  Value acquire(Milliseconds lease = JavaPeer::default_lease) const;
  bool acquire_within(Milliseconds patience) const;
  Value renew() const;
  Value release() const;
  Value force() const;
  std::string channel() const;

 private:
  std::string owner() const { return peer_.owner() + ":write"; }
};

/// RSemaphore.
class JavaPeer::Semaphore : public Object {
 public:
  Semaphore(JavaPeer& peer, std::string name) : Object(peer, std::move(name)) {}

  Value try_set_permits(std::int64_t permits) const;  ///< 1 set, 0 it was there
  Value acquire(std::int64_t permits = 1) const;      ///< 1 taken, 0 refused
  bool acquire_within(Milliseconds patience, std::int64_t permits = 1) const;
  Value release(std::int64_t permits = 1) const;  ///< the free permits; addPermits is the same
  std::string channel() const;
};

/// RPermitExpirableSemaphore.
class JavaPeer::PermitSemaphore : public Object {
 public:
  PermitSemaphore(JavaPeer& peer, std::string name) : Object(peer, std::move(name)) {}

  Value try_set_permits(std::int64_t permits) const;
  /// The id of a permit, 16 raw bytes; empty: refused. No lease: it never ends.
  std::optional<std::string> acquire(std::optional<Milliseconds> lease = {}) const;
  std::optional<std::string> acquire_within(Milliseconds patience,
                                            std::optional<Milliseconds> lease = {}) const;
  Value release(const std::string& id) const;  ///< 1, or 0 for one that ended or is unknown
  std::string channel() const;
  std::string ends() const;

 private:
  struct Answer {
    std::optional<std::string> id;
    std::optional<Milliseconds> sleep;
  };
  Answer ask(std::optional<Milliseconds> lease) const;
};

/// RCountDownLatch.
class JavaPeer::Latch : public Object {
 public:
  Latch(JavaPeer& peer, std::string name) : Object(peer, std::move(name)) {}

  Value try_set_count(std::int64_t count) const;  ///< 1 set, 0 it was there
  Value count_down() const;
  Value remove() const;
  bool await(Milliseconds patience) const;  ///< false: not at zero within it
  std::string channel() const;
};

/// RRateLimiter.
class JavaPeer::RateLimiter : public Object {
 public:
  enum class Type { overall, per_client };
  RateLimiter(JavaPeer& peer, std::string name) : Object(peer, std::move(name)) {}

  Value try_set_rate(Type type, std::int64_t rate, Milliseconds interval) const;
  Value acquire(std::int64_t permits = 1) const;  ///< null: granted; else ms to sleep
};

/// RBloomFilter. It keeps the definition that it has seen, as Redisson's object does, for ever.
class JavaPeer::BloomFilter : public Object {
 public:
  using Indexes = std::vector<std::uint32_t>;  ///< of one element or more, as the codec made them

  BloomFilter(JavaPeer& peer, std::string name) : Object(peer, std::move(name)) {}

  Value try_init(std::string size, std::string hashes, std::string expected,
                 std::string error_rate);  ///< 1 defined, 0 it was
  void read_config();
  Value add(const Indexes& indexes) const;  ///< how many are new; an error where it has changed
  Value contains(const Indexes& indexes) const;  ///< how many are there
  std::string config() const;

 private:
  Strings words(const Indexes& indexes) const;

  std::string size_ = "0";
  std::string hashes_ = "0";
};

}  // namespace sluice::test
