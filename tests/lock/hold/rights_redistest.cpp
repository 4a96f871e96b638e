/// A user of the server who may not look at a key is told so, and not that it is something else.
#include "lock/server_lock.hpp"

namespace sluice {
namespace {

using Rights = ServerLock;

TEST_F(Rights, WhatIsForbiddenIsNamed) {
  const auto forbid = [&](std::string_view verb) {
    const std::string right = '-' + std::string{verb};
    side_.command({"ACL", "SETUSER", "app", "reset", "on", ">word", "~*", "&*", "+@all", right});
  };
  const auto failure = [&](std::string_view verb, const auto& work) {
    forbid(verb);
    const auto store =
        open_patiently("redis://app:word@127.0.0.1:" + std::to_string(server_.port()));
    try {
      work(*store);
    } catch (const Error& error) {
      return error;
    }
    return Error{Errc::server, "nothing was thrown"};
  };
  const auto is_named = [&](std::string_view verb, const auto& work) {
    const Error error = failure(verb, work);
    EXPECT_EQ(error.errc(), Errc::authentication) << error.what();
    EXPECT_NE(error.message().find("of 'stock': NOPERM " + std::string{verb}), std::string::npos)
        << error.what();
  };

  Semaphore{*store_, "stock"}.ensure_permits(1).get();
  is_named("GET", [](Store& store) { Semaphore{store, "stock"}.available().get(); });
  is_named("GET", [](Store& store) { (void)Semaphore{store, "stock"}.try_acquire().get(); });
  is_named("GET", [](Store& store) { Latch{store, "stock"}.count().get(); });
  is_named("GET", [](Store& store) { Latch{store, "stock"}.count_down().get(); });
  side_.command({"DEL", "stock"});

  const RateLimiterOptions rate{.rate = 5};
  is_named("HMGET", [&](Store& store) { RateLimiter{store, "stock", rate}.try_acquire().get(); });
  EXPECT_EQ(side_.command({"EXISTS", "stock"}).as_integer(), 0) << "it is not defined either";
  RateLimiter{*store_, "stock", rate}.try_acquire().get();
  is_named("HMGET", [&](Store& store) { RateLimiter{store, "stock", rate}.try_acquire().get(); });
  is_named("HGET", [&](Store& store) { RateLimiter{store, "stock", rate}.set_rate(6, 1s).get(); });
  side_.command({"DEL", "stock"});

  Mutex mutex{*store_, "stock"};
  const auto held = mutex.acquire().get();
  is_named("HGET", [](Store& store) { (void)Mutex{store, "stock"}.try_acquire().get(); });
  is_named("HEXISTS", [](Store& store) { Mutex{store, "stock"}.force_release().get(); });
  is_named("HGET", [](Store& store) { (void)FairMutex{store, "stock"}.try_acquire().get(); });
  is_named("HGET", [](Store& store) { (void)SharedMutex{store, "stock"}.try_acquire().get(); });
  is_named("HGET", [](Store& store) { (void)MultiLock{store, {"stock"}}.try_acquire().get(); });
}

/// A user who may do all but one thing: whatever a verb has done until it is refused, nothing stays
/// for ever, and no permit is lost or made.
class AMissingRight : public ServerLock {
 protected:
  static constexpr auto brief = 400ms;
  /// What the scripts of locks call.
  static constexpr std::string_view verbs[] = {
      "DECRBY",        "DEL",    "EXISTS",    "GET",   "HDEL",   "HEXISTS", "HGET",    "HGETALL",
      "HINCRBY",       "HKEYS",  "HLEN",      "HMGET", "HSET",   "HSETNX",  "INCRBY",  "LINDEX",
      "LLEN",          "LPOP",   "LPOS",      "LPUSH", "LRANGE", "LREM",    "PEXPIRE", "PTTL",
      "PUBLISH",       "PUBSUB", "RPUSH",     "SET",   "TIME",   "ZADD",    "ZCARD",   "ZRANGE",
      "ZRANGEBYSCORE", "ZREM",   "ZREVRANGE", "ZSCORE"};

  /// By itself, beside a hold of a user who may do all, and at its hand-over.
  template <class Acquire>
  void use(Acquire acquire) {
    const auto quietly = [](auto work) {
      try {
        work();
      } catch (const Error&) {  // of some verbs there is need, and of others not
      }
    };
    decltype(acquire(*app_, 0ms)) own, right;
    quietly([&] { own = acquire(*app_, 0ms); });
    quietly([&] {
      if (own) (void)own->release().get();
    });
    own.reset();
    quietly([&] { right = acquire(*store_, 0ms); });
    auto waits = std::thread{[&] { quietly([&] { own = acquire(*app_, 40ms); }); }};
    quietly([&] {
      if (right) (void)right->release().get();
    });
    waits.join();
    quietly([&] {
      if (own) (void)own->release().get();
    });
    own.reset();
    right.reset();
    quietly([&] { own = acquire(*app_, 0ms); });
    waits = std::thread{[&] { quietly([&] { right = acquire(*store_, 5s); }); }};
    std::this_thread::sleep_for(20ms);
    quietly([&] {
      if (own) (void)own->release().get();
    });
    waits.join();
    EXPECT_TRUE(right) << "whatever the release did, the lease has ended";
  }
  void forbid(std::string_view verb) {
    const std::string right = '-' + std::string{verb};
    side_.command({"ACL", "SETUSER", "app", "reset", "on", ">word", "~*", "&*", "+@all", right});
    app_ = open_patiently("redis://app:word@127.0.0.1:" + std::to_string(server_.port()));
  }
  /// Keys without a time to live, but for those that a number of permits has.
  std::vector<std::string> kept() {
    std::vector<std::string> keys;
    for (const auto& key : side_.command({"KEYS", "*"}).as_items())
      if (side_.command({"PTTL", key.as_text()}).as_integer() == -1) keys.push_back(key.as_text());
    return keys;
  }

  std::unique_ptr<Store> app_;
};

TEST_F(AMissingRight, LeavesNoLockForEver) {
  for (const auto verb : verbs) {
    SCOPED_TRACE(verb);
    forbid(verb);
    const auto use_both = [&](auto acquire) {
      use(acquire);
      app_.reset();
      EXPECT_EQ(kept(), std::vector<std::string>{});
      side_.command({"FLUSHALL"});
      forbid(verb);
    };
    use_both([](Store& store, auto wait) {
      return Mutex{store, "stock", {.lease = brief}}.try_acquire(wait).get();
    });
    use_both([](Store& store, auto wait) {
      return FairMutex{store, "stock", {.lease = brief}}.try_acquire(wait).get();
    });
    use_both([](Store& store, auto wait) {
      return SharedMutex{store, "stock", {.lease = brief}}.try_acquire(wait).get();
    });
    use_both([](Store& store, auto wait) {
      return SharedMutex{store, "stock", {.lease = brief}}.try_acquire_shared(wait).get();
    });
  }
}

TEST_F(AMissingRight, LosesAndMakesNoPermit) {
  for (const auto verb : verbs) {
    SCOPED_TRACE(verb);
    const auto use_one = [&](auto make, auto acquire) {
      make(*store_).try_set_permits(1).get();
      forbid(verb);
      use([&](Store& store, auto wait) { return acquire(make(store), wait).get(); });
      app_.reset();
      const auto info = make(*store_).info().get();
      auto permits = info.free;
      for (const auto& holder : info.holders) permits += holder.permits;
      EXPECT_EQ(permits, 1);
      side_.command({"FLUSHALL"});
    };
    use_one(
        [](Store& store) {
          return Semaphore{store, "stock", {.lease = brief}};
        },
        [](auto desks, auto wait) { return desks.try_acquire(1, wait); });
    use_one(
        [](Store& store) {
          return PermitSemaphore{store, "stock", {.lease = brief}};
        },
        [](auto desks, auto wait) { return desks.try_acquire(wait); });
  }
}

}  // namespace
}  // namespace sluice
