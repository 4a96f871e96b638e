// Locks whose keys go from one server to another.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "proxy/move/move_rig.hpp"
#include "sluice/lock.hpp"
#include "sluice/open.hpp"

namespace sluice::test {
namespace {

/// Another process.
template <class Lock>
bool gets_in(Store& store, const std::string& name) {
  return Lock{store, name}.try_acquire().get().has_value();
}

TEST(MovedLocks, NoneHasASecondHolderAndNoneLosesItsOwn) {
  MoveRig rig{1, {}, {"hash_tag: \"{}\""}};
  const auto url = fmt::format("redis://127.0.0.1:{}", rig.port(0));
  const auto store = open(url);
  const auto other = open(url);
  constexpr int many = 25;
  constexpr int bystanders = 2000;
  for (int i = 0; i < bystanders; ++i) store->run({"SET", fmt::format("key{}", i), "x"}).get();
  std::vector<Held> holds;
  for (int i = 0; i < many; ++i) {
    holds.push_back(Mutex{*store, fmt::format("mutex{}", i)}.acquire().get());
    holds.push_back(FairMutex{*store, fmt::format("fair{}", i)}.acquire().get());
    holds.push_back(SharedMutex{*store, fmt::format("written{}", i)}.acquire().get());
    holds.push_back(SharedMutex{*store, fmt::format("read{}", i)}.acquire_shared().get());
    holds.push_back(SharedMutex{*store, fmt::format("read{}", i)}.acquire_shared().get());
  }
  for (const bool back : {false, true}) {
    auto mover = rig.start_mover(back);
    ASSERT_TRUE(rig.comes_to_tell("moving")) << rig.told();
    for (bool moves = true; moves;) {
      moves = !rig.told().contains("all keys have moved, but");
      for (int i = 0; i < many; ++i) {
        EXPECT_FALSE(gets_in<Mutex>(*other, fmt::format("mutex{}", i)));
        EXPECT_FALSE(gets_in<FairMutex>(*other, fmt::format("fair{}", i)));
        EXPECT_FALSE(gets_in<SharedMutex>(*other, fmt::format("written{}", i)));
        EXPECT_FALSE(gets_in<SharedMutex>(*other, fmt::format("read{}", i)));
      }
    }
    rig.place_files(!back);
    ASSERT_EQ(mover.wait(), 0) << rig.told();
    rig.forget_told();
  }
  for (auto& held : holds) {
    EXPECT_TRUE(held.valid());
    EXPECT_EQ(held.release().get().kind, ReleaseOutcome::Kind::released);
  }
  for (int i = 0; i < many; ++i)
    EXPECT_TRUE(gets_in<SharedMutex>(*other, fmt::format("read{}", i)));
}

}  // namespace
}  // namespace sluice::test
