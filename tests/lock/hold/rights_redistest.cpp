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

}  // namespace
}  // namespace sluice
