// What Fence promises on every Store.
#include "contract/stores.hpp"
#include "sluice/fencing.hpp"
#include "sluice/mutex.hpp"

namespace sluice {
namespace {

class FenceContract : public test::StoreContract {};
SLUICE_EVERY_STORE(FenceContract);
SLUICE_SHARDED_STORE(FenceContract);

TEST_P(FenceContract, AdmitsWhatIsNotSmaller) {
  Fence fence{store(), name("fence")};
  const std::uint64_t bound = Fence::largest_token.value;
  for (const std::uint64_t token : {std::uint64_t{1}, std::uint64_t{1}, bound - 1, bound})
    EXPECT_TRUE(fence.admit({token}).get()) << token;
  EXPECT_EQ(fence.admit({bound - 1}).get().error().largest.value, bound);
}

TEST_P(FenceContract, LateWriteIsRefused) {
  Mutex mutex{store(), name("lock")};
  Fence fence{store(), name("fence")};
  const std::string key = name("total");
  const auto write = [&](FencingToken token, std::string_view text) {
    return fence.run(token, {key}, {"SET", key, text}).get();
  };
  auto paused = mutex.acquire().get();
  mutex.force_release().get();
  const auto next = mutex.acquire().get();
  EXPECT_EQ(write(next.token(), "right").value().as_text(), "OK");
  EXPECT_EQ(write(paused.token(), "wrong").error().largest, next.token());
  EXPECT_EQ(store().run({"GET", key}).get().as_text(), "right");
}

TEST_P(FenceContract, LongestCommand) {
  Fence fence{store(), name("fence")};
  const std::string key = name("list");
  std::vector<std::string_view> command{"RPUSH", key};
  command.resize(7000, "a");
  const std::vector<std::string_view> keys{key};
  EXPECT_EQ(fence.run({5}, Words{keys}, Words{command}).get().value(), Value::integer(6998));
}

TEST_P(FenceContract, ErrorOfTheCommandIsThrown) {
  Fence fence{store(), name("fence")};
  const std::string key = name("list");
  store().run({"RPUSH", key, "a"}).get();
  try {
    (void)fence.run({5}, {key}, {"INCR", key}).get();
    FAIL() << "counted a list";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.errc(), Errc::wrong_type);
  }
}

}  // namespace
}  // namespace sluice
