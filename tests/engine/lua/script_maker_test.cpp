// Random scripts; lua_script_fuzz looks for more of them.
#include "engine/lua/script_maker.hpp"

#include <gtest/gtest.h>

#include <random>

#include "support/sanitized.hpp"

namespace sluice::test {
namespace {

class RandomScripts : public testing::TestWithParam<std::uint64_t> {};

TEST_P(RandomScripts, NoneIsSeenByTheNextAndAnEndedOneHasDoneNothing) {
  std::mt19937_64 random{GetParam()};
  ScriptStage stage;
  for (int i = 0; i < rounds(150); ++i) {
    std::vector<std::uint8_t> bytes(random() % 120);
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
    const auto script = script_of(bytes);
    ASSERT_EQ(stage.run(script), "") << "seed " << GetParam() << ", script " << i << ":\n"
                                     << script;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomScripts, testing::Range<std::uint64_t>(1, 9));

}  // namespace
}  // namespace sluice::test
