/// The wire of a read-write lock, step by step, as golden texts: what Redisson's RReadWriteLock
/// leaves on the server is what we leave there, but for what begins with "sluice" and for the
/// counter.
#include <functional>

#include "lock/shared/server_shared.hpp"
#include "support/wire_dump.hpp"

namespace sluice {
namespace {

using test::JavaPeer;
using test::WireDump;

struct Step {
  std::string_view what;
  std::string_view golden;     ///< the server afterwards
  std::string_view ours = {};  ///< where we do better on purpose
};

// The server with one or two readers or a writer; "> " is what was published.
constexpr std::string_view a_reads =
    "stock hash, ttl 30s\n  A = 1\n  mode = read\n"
    "{stock}:A:rwlock_timeout:1 = 1, ttl 30s\n";
constexpr std::string_view b_reads =
    "stock hash, ttl 30s\n  B = 1\n  mode = read\n"
    "{stock}:B:rwlock_timeout:1 = 1, ttl 30s\n";
constexpr std::string_view both_read =
    "stock hash, ttl 30s\n  A = 1\n  B = 1\n  mode = read\n"
    "{stock}:A:rwlock_timeout:1 = 1, ttl 30s\n"
    "{stock}:B:rwlock_timeout:1 = 1, ttl 30s\n";
constexpr std::string_view a_reads_twice =
    "stock hash, ttl 30s\n  A = 2\n  mode = read\n"
    "{stock}:A:rwlock_timeout:1 = 1, ttl 30s\n"
    "{stock}:A:rwlock_timeout:2 = 1, ttl 30s\n";
constexpr std::string_view a_reads_twice_b_once =
    "stock hash, ttl 30s\n  A = 2\n  B = 1\n  mode = read\n"
    "{stock}:A:rwlock_timeout:1 = 1, ttl 30s\n"
    "{stock}:A:rwlock_timeout:2 = 1, ttl 30s\n"
    "{stock}:B:rwlock_timeout:1 = 1, ttl 30s\n";
constexpr std::string_view a_writes = "stock hash, ttl 30s\n  A:write = 1\n  mode = write\n";
constexpr std::string_view b_writes = "stock hash, ttl 30s\n  B:write = 1\n  mode = write\n";
constexpr std::string_view a_writes_and_reads =
    "stock hash, ttl 30s\n  A = 1\n  A:write = 1\n  mode = write\n"
    "{stock}:A:rwlock_timeout:1 = 1, ttl 30s\n";
constexpr std::string_view b_writes_and_reads =
    "stock hash, ttl 30s\n  B = 1\n  B:write = 1\n  mode = write\n"
    "{stock}:B:rwlock_timeout:1 = 1, ttl 30s\n";
constexpr std::string_view free_after_reading = "> redisson_rwlock:{stock} 0\n";
constexpr std::string_view free_after_writing = "> redisson_rwlock:{stock} 1\n";

class SharedWireTest : public ServerShared {
 protected:
  using Doings = std::vector<std::function<void()>>;

  /// Does each step and compares the server afterwards with its golden text.
  void expect(std::string_view side, std::span<const Step> steps, const Doings& doings) {
    ASSERT_EQ(steps.size(), doings.size());
    side_.command({"FLUSHALL"});
    WireDump dump{server_.port(), WireDump::Show::redisson};
    for (std::size_t i = 0; i < steps.size(); ++i) {
      doings[i]();
      const auto& step = steps[i];
      const bool differs = side == "sluice" && !step.ours.empty();
      EXPECT_EQ(without_counter(dump.step()), differs ? step.ours : step.golden)
          << side << ", " << step.what;
    }
  }

  static std::string without_counter(const std::string& text) {
    std::string rest;
    for (std::size_t begin = 0; begin < text.size();) {
      const auto end = text.find('\n', begin) + 1;
      const auto line = text.substr(begin, end - begin);
      if (!line.starts_with("redisson_lock_token:")) rest += line;
      begin = end;
    }
    return rest;
  }

  JavaPeer one_{server_.port(), 42};
  JavaPeer two_{server_.port(), 43};
  const Owner owner_;
  const Owner another_;
};

TEST_F(SharedWireTest, C01_Readers) {
  static constexpr Step steps[] = {
      {"one reads", a_reads},
      {"again", a_reads_twice},
      {"another reads", a_reads_twice_b_once},
      {"a writer is refused", a_reads_twice_b_once},
      {"one leaves once", both_read},
      {"the other leaves", a_reads},
      {"one leaves", free_after_reading},
  };
  const JavaPeer::ReadLock read_one{one_, "stock"};
  const JavaPeer::ReadLock read_two{two_, "stock"};
  JavaPeer three{server_.port(), 44};
  const JavaPeer::WriteLock write{three, "stock"};
  expect("Redisson", steps,
         {[&] { read_one.acquire(); }, [&] { read_one.acquire(); }, [&] { read_two.acquire(); },
          [&] { write.acquire(); }, [&] { read_one.release(); }, [&] { read_two.release(); },
          [&] { read_one.release(); }});
  Held first, again, other;
  const auto read = [&](const Owner& who) { return mutex_.acquire_shared(who).get(); };
  expect("sluice", steps,
         {[&] { first = read(owner_); }, [&] { again = read(owner_); },
          [&] { other = read(another_); }, [&] { EXPECT_FALSE(mutex_.try_acquire().get()); },
          [&] { again.release().get(); }, [&] { other.release().get(); },
          [&] { first.release().get(); }});
}

TEST_F(SharedWireTest, C01_Writers) {
  static constexpr Step steps[] = {
      {"one writes", a_writes},
      {"again: there the lease adds up", "stock hash, ttl 60s\n  A:write = 2\n  mode = write\n",
       "stock hash, ttl 30s\n  A:write = 2\n  mode = write\n"},
      {"a reader is refused", "stock hash, ttl 60s\n  A:write = 2\n  mode = write\n",
       "stock hash, ttl 30s\n  A:write = 2\n  mode = write\n"},
      {"one leaves once", a_writes},
      {"one leaves", free_after_writing},
      {"another writes", b_writes},
      {"force", free_after_writing},
      {"force a free lock", ""},
  };
  const JavaPeer::WriteLock write_one{one_, "stock"};
  const JavaPeer::WriteLock write_two{two_, "stock"};
  const JavaPeer::ReadLock read_two{two_, "stock"};
  expect("Redisson", steps,
         {[&] { write_one.acquire(); }, [&] { write_one.acquire(); }, [&] { read_two.acquire(); },
          [&] { write_one.release(); }, [&] { write_one.release(); }, [&] { write_two.acquire(); },
          [&] { write_two.force(); }, [&] { write_two.force(); }});
  Held first, again, other;
  expect(
      "sluice", steps,
      {[&] { first = mutex_.acquire(owner_).get(); }, [&] { again = mutex_.acquire(owner_).get(); },
       [&] { EXPECT_FALSE(mutex_.try_acquire_shared(another_).get()); },
       [&] { again.release().get(); }, [&] { first.release().get(); },
       [&] { other = mutex_.acquire(another_).get(); }, [&] { mutex_.force_release().get(); },
       [&] { mutex_.force_release().get(); }});
}

TEST_F(SharedWireTest, C01_Downgrade) {
  static constexpr Step steps[] = {
      {"one writes", a_writes},
      {"and reads", a_writes_and_reads},
      {"writes no more: here others are told", a_reads,
       "stock hash, ttl 30s\n  A = 1\n  mode = read\n"
       "{stock}:A:rwlock_timeout:1 = 1, ttl 30s\n"
       "> redisson_rwlock:{stock} 1\n"},
      {"another reads too", both_read},
      {"one leaves", b_reads},
      {"the other leaves", free_after_reading},
  };
  const JavaPeer::WriteLock write{one_, "stock"};
  const JavaPeer::ReadLock read{one_, "stock"};
  const JavaPeer::ReadLock other_read{two_, "stock"};
  expect("Redisson", steps,
         {[&] { write.acquire(); }, [&] { read.acquire(); }, [&] { write.release(); },
          [&] { other_read.acquire(); }, [&] { read.release(); }, [&] { other_read.release(); }});
  Held writing, reading, other;
  expect("sluice", steps,
         {[&] { writing = mutex_.acquire(owner_).get(); },
          [&] { reading = mutex_.acquire_shared(owner_).get(); }, [&] { writing.release().get(); },
          [&] { other = mutex_.acquire_shared(another_).get(); }, [&] { reading.release().get(); },
          [&] { other.release().get(); }});
}

TEST_F(SharedWireTest, C01_NamesWithBraces) {
  static constexpr Step steps[] = {{"one reads",
                                    "{tag}stock hash, ttl 30s\n  A = 1\n  mode = read\n"
                                    "{tag}stock:A:rwlock_timeout:1 = 1, ttl 30s\n"},
                                   {"and leaves", "> redisson_rwlock:{tag}stock 0\n"}};
  const JavaPeer::ReadLock read{one_, "{tag}stock"};
  expect("Redisson", steps, {[&] { read.acquire(); }, [&] { read.release(); }});
  SharedMutex mutex{*store_, "{tag}stock"};
  Held held;
  expect("sluice", steps,
         {[&] { held = mutex.acquire_shared().get(); }, [&] { held.release().get(); }});
}

/// The steps of one side after those of the other, on one lock.
TEST_F(SharedWireTest, P06_ReadersOfBothSides) {
  static constexpr Step steps[] = {
      {"we read", a_reads},
      {"Redisson reads", both_read},
      {"we write: refused", both_read},
      {"we leave", b_reads},
      {"Redisson writes: refused", b_reads},
      {"Redisson leaves", free_after_reading},
      {"Redisson writes", b_writes},
      {"we read: refused", b_writes},
      {"Redisson reads too", b_writes_and_reads},
      {"it writes no more", b_reads},
      {"we read", both_read},
      {"Redisson leaves", a_reads},
      {"we leave", free_after_reading},
  };
  const JavaPeer::ReadLock java_reads{one_, "stock"};
  const JavaPeer::WriteLock java_writes{one_, "stock"};
  Held held;
  expect("both", steps,
         {[&] { held = mutex_.acquire_shared(owner_).get(); }, [&] { java_reads.acquire(); },
          [&] { EXPECT_FALSE(mutex_.try_acquire().get()); }, [&] { held.release().get(); },
          [&] { EXPECT_FALSE(java_writes.acquire().is_null()); }, [&] { java_reads.release(); },
          [&] { java_writes.acquire(); }, [&] { EXPECT_FALSE(mutex_.try_acquire_shared().get()); },
          [&] { java_reads.acquire(); }, [&] { java_writes.release(); },
          [&] { held = mutex_.acquire_shared(owner_).get(); }, [&] { java_reads.release(); },
          [&] { held.release().get(); }});
}

}  // namespace
}  // namespace sluice
