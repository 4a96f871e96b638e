#include "proxy/memcached/asking.hpp"

namespace sluice::proxy {
namespace {

using Places = std::vector<std::uint32_t>;

std::string merged(const std::string& bytes, const std::vector<FragmentReply>& replies,
                   bool partial = false) {
  auto settings = memcached_settings();
  settings.allow = {"stats", "flush_all"};
  Asked asked{settings, bytes};
  std::string out;
  asked.protocol().append_merged(out, asked.words(), asked.plan, replies, partial);
  return out;
}

TEST(MemcachedMerge, PutsValuesInTheOrderOfTheKeys) {
  const Places even{0, 2, 3}, odd{1};
  EXPECT_EQ(merged("get a b c a\r\n", {{"VALUE a 0 1\r\nA\r\nVALUE a 0 1\r\nA\r\nEND\r\n", even},
                                       {"VALUE b 5 3\r\nEND\r\nEND\r\n", odd}}),
            "VALUE a 0 1\r\nA\r\nVALUE b 5 3\r\nEND\r\nVALUE a 0 1\r\nA\r\nEND\r\n");
  EXPECT_EQ(merged("get a b\r\n", {{"END\r\n", Places{0}}, {"END\r\n", odd}}), "END\r\n");
}

TEST(MemcachedMerge, AFailureIsTheReplyOrAMiss) {
  const Places first{0}, second{1};
  const std::string_view down = "SERVER_ERROR Connection refused\r\n";
  const std::vector<FragmentReply> half{{down, first, true},
                                        {"VALUE b 0 1\r\nB\r\nEND\r\n", second}};
  EXPECT_EQ(merged("get a b\r\n", half), down);
  EXPECT_EQ(merged("get a b\r\n", half, true), "VALUE b 0 1\r\nB\r\nEND\r\n");
  EXPECT_EQ(merged("get a b\r\n", {{down, first, true}, {down, second, true}}, true), down);
}

TEST(MemcachedMerge, RefusesWhatDoesNotFit) {
  const Places first{0}, second{1};
  EXPECT_TRUE(merged("get a b\r\n", {{"VALUE b 0 1\r\nB\r\nEND\r\n", first}, {"END\r\n", second}})
                  .starts_with("SERVER_ERROR "));
  EXPECT_TRUE(merged("get a b\r\n", {{"STORED\r\n", first}, {"END\r\n", second}})
                  .starts_with("SERVER_ERROR "));
}

TEST(MemcachedMerge, OfAllServers) {
  EXPECT_EQ(merged("stats\r\n", {{"STAT a 1\r\nEND\r\n", {}}, {"STAT a 2\r\nEND\r\n", {}}}),
            "STAT a 1\r\nSTAT a 2\r\nEND\r\n");
  EXPECT_EQ(merged("stats reset\r\n", {{"RESET\r\n", {}}, {"RESET\r\n", {}}}), "RESET\r\n");
  EXPECT_EQ(merged("flush_all\r\n", {{"OK\r\n", {}}, {"SERVER_ERROR x\r\n", {}}}),
            "SERVER_ERROR x\r\n");
  EXPECT_EQ(merged("flush_all\r\n", {{"OK\r\n", {}}, {"OK\r\n", {}}}), "OK\r\n");
}

}  // namespace
}  // namespace sluice::proxy
