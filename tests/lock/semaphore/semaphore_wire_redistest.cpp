/// The wire of both semaphores, step by step, as a golden text: what Redisson's RSemaphore and
/// RPermitExpirableSemaphore leave on the server is what we leave there, but for what begins with
/// "sluice".
#include <functional>

#include "lock/semaphore/server_semaphore.hpp"
#include "support/wire_dump.hpp"

namespace sluice {
namespace {

using test::JavaPeer;
using test::WireDump;

struct WireStep {
  std::string_view what;
  std::string_view golden;  ///< the server afterwards
};

class SemaphoreWire : public ServerSemaphore {
 protected:
  using Doings = std::vector<std::function<void()>>;

  void expect(std::string_view side, std::span<const WireStep> steps, const Doings& doings) {
    ASSERT_EQ(steps.size(), doings.size());
    side_.command({"FLUSHALL"});
    WireDump dump{server_.port(), WireDump::Show::redisson};
    for (std::size_t i = 0; i < steps.size(); ++i) {
      doings[i]();
      EXPECT_EQ(dump.step(), steps[i].golden) << side << ", " << steps[i].what;
    }
  }
};

TEST_F(SemaphoreWire, C01_Semaphore) {
  static constexpr WireStep steps[] = {
      {"set", "desks = 3\n> redisson_sc:{desks} 3\n"},
      {"set again", "desks = 3\n"},
      {"acquire", "desks = 1\n"},
      {"refused", "desks = 1\n"},
      {"release", "desks = 3\n> redisson_sc:{desks} 3\n"},
      {"add", "desks = 5\n> redisson_sc:{desks} 5\n"},
  };

  const JavaPeer::Semaphore java{peer_, "desks"};
  expect(
      "Redisson", steps,
      {[&] { java.try_set_permits(3); }, [&] { java.try_set_permits(9); }, [&] { java.acquire(2); },
       [&] { java.acquire(2); }, [&] { java.release(2); }, [&] { java.release(2); }});

  Semaphore ours{*store_, "desks"};
  std::optional<Held> held;
  expect("ours", steps,
         {[&] { ours.try_set_permits(3).get(); }, [&] { ours.try_set_permits(9).get(); },
          [&] { held = ours.try_acquire(2).get(); }, [&] { (void)ours.try_acquire(2).get(); },
          [&] { held->release().get(); }, [&] { ours.add_permits(2).get(); }});
}

TEST_F(SemaphoreWire, C01_PermitSemaphore) {
  static constexpr WireStep steps[] = {
      {"set", "keys = 2\n> redisson_sc:{keys} 2\n"},
      {"acquire for a minute", "keys = 1\n{keys}:timeout zset\n  P1 at now+60s\n"},
      {"acquire for ever", "keys = 0\n{keys}:timeout zset\n  P1 at now+60s\n  P2 at never\n"},
      {"refused", "keys = 0\n{keys}:timeout zset\n  P1 at now+60s\n  P2 at never\n"},
      {"release", "keys = 1\n{keys}:timeout zset\n  P2 at never\n> redisson_sc:{keys} 1\n"},
      {"release again", "keys = 1\n{keys}:timeout zset\n  P2 at never\n"},
      {"release the other", "keys = 2\n> redisson_sc:{keys} 2\n"},
  };

  const JavaPeer::PermitSemaphore java{peer_, "keys"};
  std::optional<std::string> first;
  std::optional<std::string> second;
  expect("Redisson", steps,
         {[&] { java.try_set_permits(2); }, [&] { first = java.acquire(60s); },
          [&] { second = java.acquire(); }, [&] { (void)java.acquire(); },
          [&] { java.release(*first); }, [&] { java.release(*first); },
          [&] { java.release(*second); }});

  PermitSemaphore ours{*store_, "keys"};
  std::optional<PermitId> one;
  std::optional<PermitId> other;
  expect("ours", steps,
         {[&] { ours.try_set_permits(2).get(); }, [&] { one = ours.take(60s).get(); },
          [&] { other = ours.take(unlimited_lease).get(); }, [&] { (void)ours.take(60s).get(); },
          [&] { ours.release(*one).get(); }, [&] { ours.release(*one).get(); },
          [&] { ours.release(*other).get(); }});
}

TEST_F(SemaphoreWire, C01_TtlOfTheSemaphoreIsThatOfItsPermits) {
  PermitSemaphore ours{*store_, "keys"};
  ours.try_set_permits(2).get();
  side_.command({"PEXPIRE", "keys", "60000"});
  (void)ours.take(10s).get();
  const auto left = side_.command({"PTTL", "{keys}:timeout"}).as_integer();
  EXPECT_GT(left, 50'000);
  EXPECT_LE(left, 60'000);
}

TEST_F(SemaphoreWire, C01_WhatIsOursBeginsWithSluiceAndEnds) {
  {
    Semaphore desks{*store_, "{tag}desks"};
    PermitSemaphore keys{*store_, "{tag}keys"};
    desks.try_set_permits(1).get();
    keys.try_set_permits(1).get();
    const auto desk = desks.acquire().get();
    const auto key = keys.acquire().get();
    EXPECT_FALSE(desks.try_acquire(1, 1ms).get());
    EXPECT_FALSE(keys.try_acquire(1ms).get());
  }
  store_->run({"PING"}).get();  // after what was released without waiting
  const Value keys = side_.command({"KEYS", "*"});
  for (const Value& key : keys.as_items()) {
    const std::string& name = key.as_text();
    const bool is_redissons = name == "{tag}desks" || name == "{tag}keys";
    EXPECT_TRUE(is_redissons || name.starts_with("sluice_")) << name;
    const auto ttl = side_.command({"PTTL", name}).as_integer();
    if (is_redissons) {
      EXPECT_EQ(ttl, -1) << name;
    } else {
      EXPECT_GT(ttl, 0) << name;
    }
    EXPECT_NE(name.find("{tag}"), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace sluice
