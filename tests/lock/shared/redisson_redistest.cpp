/// Java programs and ours on one read-write lock: they keep each other out and wake each other.
/// (P06)
#include <future>

#include "lock/shared/server_shared.hpp"
#include "sluice/lock_info.hpp"

namespace sluice {
namespace {

using test::JavaPeer;

class SharedRedisson : public ServerShared {
 protected:
  std::future<bool> java_waits_to_read() {
    return std::async(std::launch::async, [&] {
      JavaPeer peer{server_.port(), 7};
      const JavaPeer::ReadLock lock{peer, "stock"};
      return lock.acquire_within(60s) && lock.release() == Value::integer(1);
    });
  }
  std::future<bool> java_waits_to_write() {
    return std::async(std::launch::async, [&] {
      JavaPeer peer{server_.port(), 8};
      const JavaPeer::WriteLock lock{peer, "stock"};
      return lock.acquire_within(60s) && lock.release() == Value::integer(1);
    });
  }
  std::future<bool> we_wait(bool shared) {
    return std::async(std::launch::async, [this, shared] {
      auto held = (shared ? mutex_.try_acquire_shared(60s) : mutex_.try_acquire(60s)).get();
      return held && held->release().get().kind == Kind::released;
    });
  }
  static void expect_woken(std::future<bool>& waiting) {
    ASSERT_EQ(waiting.wait_for(20s), std::future_status::ready) << "it sleeps until the lease ends";
    EXPECT_TRUE(waiting.get());
  }

  JavaPeer peer_{server_.port(), 42};
  JavaPeer::ReadLock java_reads_{peer_, "stock"};
  JavaPeer::WriteLock java_writes_{peer_, "stock"};
};

TEST_F(SharedRedisson, P06_OurWriterWakesJavaReadersAndWriters) {
  auto held = mutex_.acquire().get();
  auto reader = java_waits_to_read();
  auto writer = java_waits_to_write();
  await_subscribers(rw_channel_, 2);
  held.release().get();
  expect_woken(reader);
  expect_woken(writer);
}

TEST_F(SharedRedisson, P06_OurReaderWakesAJavaWriter) {
  auto held = mutex_.acquire_shared().get();
  auto writer = java_waits_to_write();
  await_subscribers(rw_channel_, 1);
  held.release().get();
  expect_woken(writer);
}

TEST_F(SharedRedisson, P06_OurDowngradeWakesJavaReaders) {
  const Owner owner;
  auto writing = mutex_.acquire(owner).get();
  const auto reading = mutex_.acquire_shared(owner).get();
  auto reader = std::async(std::launch::async, [&] {
    JavaPeer peer{server_.port(), 7};
    return JavaPeer::ReadLock{peer, "stock"}.acquire_within(60s);
  });
  await_subscribers(rw_channel_, 1);
  writing.release().get();
  expect_woken(reader);
}

TEST_F(SharedRedisson, P06_JavaWakesOurReadersAndWriters) {
  for (const bool shared : {true, false}) {
    EXPECT_TRUE(java_writes_.acquire().is_null());
    auto waiting = we_wait(shared);
    await_subscribers(rw_channel_, 1);
    EXPECT_EQ(java_writes_.release(), Value::integer(1));
    expect_woken(waiting);
    await_subscribers(rw_channel_, 0);
  }
  EXPECT_TRUE(java_reads_.acquire().is_null());
  auto writer = we_wait(false);
  await_subscribers(rw_channel_, 1);
  EXPECT_EQ(java_reads_.release(), Value::integer(1));
  expect_woken(writer);
}

TEST_F(SharedRedisson, P06_JavaReaderThatCameAfterOurWriterWakesIt) {
  auto held = mutex_.acquire_shared().get();
  auto writer = we_wait(false);
  await_queue(1);
  EXPECT_TRUE(java_reads_.acquire().is_null()) << "it knows no queue";
  held.release().get();  // the writer is told that a stranger is in now
  await_subscribers(rw_channel_, 1);
  EXPECT_EQ(java_reads_.release(), Value::integer(1));
  expect_woken(writer);
}

TEST_F(SharedRedisson, P06_BothKeepEachOtherOut) {
  {
    const auto writing = mutex_.acquire().get();
    EXPECT_GT(java_reads_.acquire().as_integer(), 15'000);
    EXPECT_GT(java_writes_.acquire().as_integer(), 15'000);
    EXPECT_TRUE(java_writes_.release().is_null()) << "it may not release ours";
    EXPECT_EQ(java_writes_.renew(), Value::integer(0));
  }
  {
    const auto reading = mutex_.acquire_shared().get();
    EXPECT_TRUE(java_reads_.acquire().is_null());
    EXPECT_GT(java_writes_.acquire().as_integer(), 15'000);
    EXPECT_FALSE(mutex_.try_acquire().get());
  }
  EXPECT_FALSE(mutex_.try_acquire().get()) << "Redisson still reads";
  EXPECT_EQ(java_reads_.release(), Value::integer(1));
  EXPECT_TRUE(java_writes_.acquire().is_null());
  EXPECT_FALSE(mutex_.try_acquire_shared().get());
  const LockInfo info = mutex_.info().get();
  ASSERT_EQ(info.holders.size(), 1U);
  EXPECT_EQ(info.holders[0].owner.text, peer_.owner());
  EXPECT_TRUE(info.holders[0].exclusive);
  EXPECT_EQ(java_writes_.release(), Value::integer(1));
}

TEST_F(SharedRedisson, K33_JavaSeesReadersOnlyWhereWeRead) {
  auto first = mutex_.acquire().get();
  EXPECT_FALSE(java_reads_.is_locked());
  const Owner owner;
  auto second = std::async(std::launch::async, [&] { return mutex_.acquire(owner).get(); });
  await_queue(1);
  first.release().get();
  auto handed_over = second.get();
  EXPECT_FALSE(java_reads_.is_locked());
  auto reading = mutex_.acquire_shared(owner).get();
  EXPECT_TRUE(java_reads_.is_locked());
  handed_over.release().get();
  EXPECT_TRUE(java_reads_.is_locked());
  reading.release().get();
  EXPECT_FALSE(java_reads_.is_locked());
  EXPECT_EQ(side_.command({"KEYS", "*_rw_*"}), Value::array({})) << "nothing stays";
}

TEST_F(SharedRedisson, K33_AWriterThatWasEndedFromOutsideEndsNoOther) {
  const Owner owner;
  auto first = mutex_.acquire(owner).get();
  side_.command({"DEL", "stock"});
  EXPECT_TRUE(java_reads_.acquire().is_null());
  EXPECT_EQ(first.release().get().kind, Kind::not_held);
  EXPECT_TRUE(java_reads_.is_locked());
  java_reads_.release();

  auto second = mutex_.acquire(owner).get();
  side_.command({"DEL", "stock"});
  auto third = mutex_.acquire(owner).get();
  EXPECT_EQ(second.release().get().kind, Kind::not_held);
  EXPECT_FALSE(mutex_.try_acquire().get()) << "the third writes still";
  EXPECT_EQ(third.release().get().kind, Kind::released);
}

TEST_F(SharedRedisson, LastOneOutIsJavaAndNothingStays) {
  auto ours = mutex_.acquire_shared().get();
  EXPECT_TRUE(java_reads_.acquire().is_null());
  ours.release().get();
  EXPECT_EQ(java_reads_.release(), Value::integer(1));
  EXPECT_EQ(side_.command({"EXISTS", "stock"}), Value::integer(0));
}

}  // namespace
}  // namespace sluice
