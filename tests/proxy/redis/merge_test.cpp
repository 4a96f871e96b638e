#include <gtest/gtest.h>

#include "proxy/redis/redis_protocol.hpp"
#include "proxy/support/planning.hpp"

namespace sluice::proxy {
namespace {

using Places = std::vector<std::uint32_t>;

std::string merged(std::string_view line, const std::vector<FragmentReply>& replies,
                   bool partial = false, Compat compat = Compat::relaxed) {
  auto settings = redis_settings();
  settings.compat = compat;
  settings.allow = {"randomkey"};
  const auto protocol = make_redis_protocol(settings);
  const auto words = words_of(line);
  const auto plan = protocol->plan(words);
  std::string out;
  protocol->append_merged(out, words, plan, replies, partial);
  return out;
}

TEST(RedisMerge, PutsElementsInTheOrderOfTheKeys) {
  const Places even{0, 2}, odd{1};
  EXPECT_EQ(merged("MGET a b c", {{"*2\r\n$1\r\nA\r\n$-1\r\n", even}, {"*1\r\n$1\r\nB\r\n", odd}}),
            "*3\r\n$1\r\nA\r\n$1\r\nB\r\n$-1\r\n");
  EXPECT_EQ(merged("PUBSUB NUMSUB a b",
                   {{"*2\r\n$1\r\nb\r\n:2\r\n", odd}, {"*2\r\n$1\r\na\r\n:1\r\n", Places{0}}}),
            "*4\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n:2\r\n");
}

TEST(RedisMerge, Sums) {
  EXPECT_EQ(merged("DEL a b c", {{":2\r\n", {}}, {":1\r\n", {}}}), ":3\r\n");
  EXPECT_EQ(merged("DBSIZE", {{":2\r\n", {}}, {":-1\r\n", {}}}), ":1\r\n");
}

TEST(RedisMerge, OneErrorIsTheErrorOfAll) {
  EXPECT_EQ(merged("MSET a 1 b 2", {{"+OK\r\n", {}}, {"+OK\r\n", {}}}), "+OK\r\n");
  EXPECT_EQ(merged("MSET a 1 b 2", {{"+OK\r\n", {}}, {"-OOM x\r\n", {}}, {"-ERR y\r\n", {}}}),
            "-OOM x\r\n");
  EXPECT_EQ(merged("DEL a b", {{":1\r\n", {}}, {"-ERR Connection refused\r\n", {}, true}}),
            "-ERR Connection refused\r\n");
}

TEST(RedisMerge, TwemproxyHidesAServersError) {
  EXPECT_EQ(merged("DEL a b", {{":1\r\n", {}}, {"-WRONGTYPE x\r\n", {}}}, false, Compat::strict),
            "-ERR Invalid argument\r\n");
  EXPECT_EQ(merged("DEL a b", {{":1\r\n", {}}, {"-ERR Connection refused\r\n", {}, true}}, false,
                   Compat::strict),
            "-ERR Connection refused\r\n");
}

TEST(RedisMerge, PartialPutsTheErrorInThePlaceOfEachKey) {
  const Places even{0, 2}, odd{1};
  const std::vector<FragmentReply> replies{{"-ERR Connection refused\r\n", even, true},
                                           {"*1\r\n$1\r\nB\r\n", odd}};
  EXPECT_EQ(merged("MGET a b c", replies, true),
            "*3\r\n-ERR Connection refused\r\n$1\r\nB\r\n-ERR Connection refused\r\n");
  EXPECT_EQ(merged("MGET a b c", replies, false), "-ERR Connection refused\r\n");
}

TEST(RedisMerge, OfAllServers) {
  EXPECT_EQ(merged("KEYS *", {{"*1\r\n+a\r\n", {}}, {"*0\r\n", {}}, {"*2\r\n+b\r\n+c\r\n", {}}}),
            "*3\r\n+a\r\n+b\r\n+c\r\n");
  EXPECT_EQ(merged("SCRIPT EXISTS a b", {{"*2\r\n:1\r\n:1\r\n", {}}, {"*2\r\n:0\r\n:1\r\n", {}}}),
            "*2\r\n:0\r\n:1\r\n");
  EXPECT_EQ(merged("RANDOMKEY", {{"$-1\r\n", {}}, {"$1\r\nk\r\n", {}}}), "$1\r\nk\r\n");
  EXPECT_EQ(merged("RANDOMKEY", {{"_\r\n", {}}, {"_\r\n", {}}}), "_\r\n");
}

TEST(RedisMerge, RefusesWhatDoesNotFit) {
  const Places both{0, 1};
  for (const auto* const reply : {"*1\r\n$1\r\nA\r\n", "$1\r\nA\r\n", "*-1\r\n"})
    EXPECT_TRUE(merged("MGET a b", {{reply, both}}).starts_with("-ERR ")) << reply;
  EXPECT_TRUE(merged("DEL a b", {{"+OK\r\n", {}}}).starts_with("-ERR "));
}

TEST(RedisMerge, StepsOverAttributes) {
  const Places both{0, 1};
  EXPECT_EQ(merged("MGET a b", {{"|1\r\n+x\r\n:1\r\n*2\r\n_\r\n$1\r\nB\r\n", both}}),
            "*2\r\n_\r\n$1\r\nB\r\n");
}

}  // namespace
}  // namespace sluice::proxy
