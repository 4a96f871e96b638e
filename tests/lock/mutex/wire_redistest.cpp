/// The wire of a plain lock, step by step, as a golden text: what Redisson's RLock and RFencedLock
/// leave on the server is what we leave there, but for what begins with "sluice".
#include <functional>
#include <regex>

#include "lock/server_lock.hpp"
#include "support/java_peer.hpp"
#include "support/wire_dump.hpp"

namespace sluice {
namespace {

using test::JavaPeer;
using test::WireDump;

struct Deed {
  std::string_view what;
  std::string_view golden;  ///< the server afterwards
};

/// Without the fencing counter, which RLock has not and every hold of ours has.
std::string without_counter(const std::string& text) {
  std::string rest;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = text.find('\n', begin) + 1;
    const auto line = text.substr(begin, end - begin);
    if (!line.starts_with("redisson_lock_token:")) rest += line;
    begin = end;
  }
  return rest;
}

class Wire : public ServerLock {
 protected:
  using Doings = std::vector<std::function<void()>>;

  /// Does each step and compares the server afterwards with its golden text.
  void expect(std::string_view side, std::span<const Deed> steps, const Doings& doings,
              const std::function<std::string(const std::string&)>& seen) {
    ASSERT_EQ(steps.size(), doings.size());
    side_.command({"FLUSHALL"});
    WireDump dump{server_.port(), WireDump::Show::redisson};
    for (std::size_t i = 0; i < steps.size(); ++i) {
      doings[i]();
      EXPECT_EQ(seen(dump.step()), steps[i].golden) << side << ", " << steps[i].what;
    }
  }
  /// Our counters end, a day after their last hold, and rise with the time; Redisson's do neither.
  static std::string as_it_is(const std::string& text) {
    static const std::regex ours{"(counter [0-9]+)?, ttl 90000s"};
    static const std::regex later{"counter [0-9]{2,}"};
    return std::regex_replace(std::regex_replace(text, ours, "$1"), later, "counter 2");
  }

  JavaPeer peer_{server_.port(), 42};
};

TEST_F(Wire, C01_PlainLock) {
  static constexpr Deed steps[] = {
      {"enter", "stock hash, ttl 30s\n  A = 1\n"},
      {"enter again", "stock hash, ttl 30s\n  A = 2\n"},
      {"another is refused", "stock hash, ttl 30s\n  A = 2\n"},
      {"leave once", "stock hash, ttl 30s\n  A = 1\n"},
      {"leave", "> redisson_lock__channel:{stock} 0\n"},
      {"another enters", "stock hash, ttl 30s\n  B = 1\n"},
      {"force", "> redisson_lock__channel:{stock} 0\n"},
      {"force a free lock", ""},
  };

  JavaPeer other_peer{server_.port(), 43};
  const JavaPeer::Lock lock{peer_, "stock"};
  const JavaPeer::Lock other{other_peer, "stock"};
  expect("Redisson", steps,
         {[&] { lock.acquire(); }, [&] { lock.acquire(); }, [&] { other.acquire(); },
          [&] { lock.release(); }, [&] { lock.release(); }, [&] { other.acquire(); },
          [&] { lock.force(); }, [&] { lock.force(); }},
         as_it_is);

  Mutex mutex{*store_, "stock"};
  const Owner owner;
  const Owner another;
  std::vector<Held> held;
  const auto enter = [&](const Owner& who) {
    if (auto got = mutex.try_acquire(who).get()) held.push_back(std::move(*got));
  };
  const auto leave = [&] {
    held.back().release().get();
    held.pop_back();
  };
  expect("sluice", steps,
         {[&] { enter(owner); }, [&] { enter(owner); }, [&] { enter(another); }, leave, leave,
          [&] { enter(another); }, [&] { mutex.force_release().get(); },
          [&] { mutex.force_release().get(); }},
         without_counter);
}

TEST_F(Wire, C01_FencedLock) {
  static constexpr Deed steps[] = {
      {"enter", "redisson_lock_token:{stock} = counter 1\nstock hash, ttl 30s\n  A = 1\n"},
      {"leave", "redisson_lock_token:{stock} = counter 1\n> redisson_lock__channel:{stock} 0\n"},
      {"another enters", "redisson_lock_token:{stock} = counter 2\nstock hash, ttl 30s\n  B = 1\n"},
      {"force", "redisson_lock_token:{stock} = counter 2\n> redisson_lock__channel:{stock} 0\n"},
  };

  JavaPeer other_peer{server_.port(), 43};
  const JavaPeer::FencedLock lock{peer_, "stock"};
  const JavaPeer::FencedLock other{other_peer, "stock"};
  expect("Redisson", steps,
         {[&] { lock.acquire(); }, [&] { lock.release(); }, [&] { other.acquire(); },
          [&] { lock.force(); }},
         as_it_is);

  Mutex mutex{*store_, "stock"};
  Held held;
  const auto enter = [&] { held = mutex.acquire().get(); };
  expect("sluice", steps,
         {enter, [&] { held.release().get(); }, enter, [&] { mutex.force_release().get(); }},
         as_it_is);
}

TEST_F(Wire, C01_NamesWithBraces) {
  static constexpr Deed steps[] = {
      {"enter", "redisson_lock_token:{tag}stock = counter 1\n{tag}stock hash, ttl 30s\n  A = 1\n"},
      {"leave",
       "redisson_lock_token:{tag}stock = counter 1\n> redisson_lock__channel:{tag}stock 0\n"},
  };
  const JavaPeer::FencedLock lock{peer_, "{tag}stock"};
  expect("Redisson", steps, {[&] { lock.acquire(); }, [&] { lock.release(); }}, as_it_is);

  Mutex mutex{*store_, "{tag}stock"};
  Held held;
  expect("sluice", steps, {[&] { held = mutex.acquire().get(); }, [&] { held.release().get(); }},
         as_it_is);
}

/// The steps of one side after those of the other, on one lock.
TEST_F(Wire, P06_PlainLockOfBothSides) {
  static constexpr Deed steps[] = {
      {"we enter", "stock hash, ttl 30s\n  A = 1\n"},
      {"Redisson is refused", "stock hash, ttl 30s\n  A = 1\n"},
      {"Redisson may not release it", "stock hash, ttl 30s\n  A = 1\n"},
      {"we leave", "> redisson_lock__channel:{stock} 0\n"},
      {"Redisson enters", "stock hash, ttl 30s\n  B = 1\n"},
      {"we are refused", "stock hash, ttl 30s\n  B = 1\n"},
      {"Redisson enters again", "stock hash, ttl 30s\n  B = 2\n"},
      {"Redisson leaves once", "stock hash, ttl 30s\n  B = 1\n"},
      {"Redisson leaves", "> redisson_lock__channel:{stock} 0\n"},
  };
  const JavaPeer::Lock java{peer_, "stock"};
  Mutex mutex{*store_, "stock"};
  Held held;
  expect("both", steps,
         {[&] { held = mutex.acquire().get(); }, [&] { java.acquire(); }, [&] { java.release(); },
          [&] { held.release().get(); }, [&] { java.acquire(); },
          [&] { EXPECT_FALSE(mutex.try_acquire().get()); }, [&] { java.acquire(); },
          [&] { java.release(); }, [&] { java.release(); }},
         without_counter);
}

}  // namespace
}  // namespace sluice
