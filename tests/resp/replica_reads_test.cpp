#include "resp/replica_reads.hpp"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace sluice::resp {
namespace {

bool may(const std::vector<std::string_view>& words, bool is_sharded) {
  return may_read_from_replica(words, is_sharded);
}

TEST(ReplicaReads, AreOfCommandsThatMeanTheSameThere) {
  for (const bool is_sharded : {false, true}) {
    EXPECT_TRUE(may({"GET", "k"}, is_sharded));
    EXPECT_TRUE(may({"XREAD", "STREAMS", "s", "0"}, is_sharded));
    EXPECT_FALSE(may({"XREAD", "BLOCK", "1", "STREAMS", "s", "0"}, is_sharded));
    EXPECT_FALSE(may({"SET", "k", "v"}, is_sharded));
    EXPECT_FALSE(may({"HSCAN", "k", "0"}, is_sharded));
    EXPECT_FALSE(may({"TOUCH", "k"}, is_sharded));
    EXPECT_FALSE(may({"DBSIZE"}, is_sharded));
    EXPECT_FALSE(may({"NO.SUCH", "k"}, is_sharded));
  }
  EXPECT_TRUE(may({"MGET", "a", "b"}, false));
  EXPECT_FALSE(may({"MGET", "a", "b"}, true));
  EXPECT_TRUE(may({"EVAL_RO", "return 1", "1", "k"}, false));
  EXPECT_FALSE(may({"EVAL_RO", "return 1", "1", "k"}, true));
  EXPECT_TRUE(may({"SORT_RO", "k", "GET", "x*"}, false));
  EXPECT_FALSE(may({"SORT_RO", "k", "GET", "x*"}, true)) << "it reads other keys";
}

TEST(ReplicaReads, ProvePresenceByWhatAnAbsentKeyHasNot) {
  for (const std::string_view reply :
       {"$1\r\na\r\n", "$10\r\n0123456789\r\n", "+string\r\n", ":1\r\n", "#t\r\n", ",0.5\r\n",
        "*2\r\n$-1\r\n$1\r\na\r\n", "*1\r\n*2\r\n:0\r\n:2\r\n", "%1\r\n$1\r\na\r\n:0\r\n",
        "~1\r\n+a\r\n"})
    EXPECT_TRUE(proves_presence(reply)) << reply;
  for (const std::string_view reply :
       {"$-1\r\n", "*-1\r\n", "_\r\n", "$0\r\n\r\n", "+none\r\n", "$4\r\nnone\r\n", ":0\r\n",
        ":-2\r\n", "#f\r\n", ",0\r\n", "*0\r\n", "%0\r\n", "*2\r\n$-1\r\n:0\r\n",
        "*1\r\n*1\r\n*0\r\n", "-ERR no\r\n", "*1\r\n-ERR no\r\n", "*1", "no reply", ""})
    EXPECT_FALSE(proves_presence(reply)) << reply;
}

}  // namespace
}  // namespace sluice::resp
