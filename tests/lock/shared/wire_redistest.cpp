/// The wire of a read-write lock, step by step, as golden texts: what Redisson's RReadWriteLock leaves
/// on the server is what we leave there, but for what begins with "sluice" and for the counter.
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
      {"one reads", ""},
      {"again", ""},
      {"another reads", ""},
      {"a writer is refused", ""},
      {"one leaves once", ""},
      {"the other leaves", ""},
      {"one leaves", ""},
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
      {"one writes", ""},
      {"again", ""},
      {"a reader is refused", ""},
      {"one leaves once", ""},
      {"one leaves", ""},
      {"another writes", ""},
      {"force", ""},
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
  expect("sluice", steps,
         {[&] { first = mutex_.acquire(owner_).get(); },
          [&] { again = mutex_.acquire(owner_).get(); },
          [&] { EXPECT_FALSE(mutex_.try_acquire_shared(another_).get()); },
          [&] { again.release().get(); }, [&] { first.release().get(); },
          [&] { other = mutex_.acquire(another_).get(); }, [&] { mutex_.force_release().get(); },
          [&] { mutex_.force_release().get(); }});
}

TEST_F(SharedWireTest, C01_Downgrade) {
  static constexpr Step steps[] = {
      {"one writes", ""},          {"and reads", ""}, {"writes no more", ""},
      {"another reads too", ""}, {"one leaves", ""},  {"the other leaves", ""},
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
          [&] { reading = mutex_.acquire_shared(owner_).get(); },
          [&] { writing.release().get(); }, [&] { other = mutex_.acquire_shared(another_).get(); },
          [&] { reading.release().get(); }, [&] { other.release().get(); }});
}

TEST_F(SharedWireTest, C01_NamesWithBraces) {
  static constexpr Step steps[] = {{"one reads", ""}, {"and leaves", ""}};
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
      {"we read", ""},          {"Redisson reads", ""},      {"we write: refused", ""},
      {"we leave", ""},         {"Redisson writes: refused", ""}, {"Redisson leaves", ""},
      {"Redisson writes", ""},  {"we read: refused", ""},    {"Redisson reads too", ""},
      {"it writes no more", ""}, {"we read", ""},            {"Redisson leaves", ""},
      {"we leave", ""},
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
