#include "proxy/memcached/asking.hpp"

namespace sluice::proxy {
namespace {

TEST(StrictMemcached, TakesWhatTwemproxyTakes) {
  for (const auto* const bytes :
       {"get  k  \r\n", " get k\r\n", "gets k none k\r\n", "cas k 0 0 1 1 noreply\r\nx\r\n",
        "set k 0 0 1 noreply \r\nx\r\n", "set k 01 01 01\r\nx\r\n", "delete k  noreply\r\n",
        "incr k -1\r\n", "touch k -1\r\n", "version \r\n", "get a\x01z\r\n",
        "set k 99999999999 0 1\r\nx\r\n", "set k 0 99999999999 1\r\nx\r\n"}) {
    const auto asked = ask_strictly(bytes);
    ASSERT_EQ(asked.state, RequestReader::State::complete) << bytes;
    EXPECT_NE(asked.plan.route, Route::close) << bytes;
    EXPECT_NE(asked.plan.route, Route::refused) << bytes;
  }
}

TEST(StrictMemcached, ClosesWithoutAWordOnAllElse) {
  for (const std::string bytes :
       {"get\r\n", "get \r\n", "get k\nget z\r\n", "incr k noreply\r\n", "delete k 0\r\n",
        "incr k\r\n", "incr k x\r\n", "touch k 1 2\r\n", "version a\r\n", "gat 0 k\r\n",
        "mg k v\r\n", "mn\r\n", "stats\r\n", "flush_all\r\n", "GET k\r\n", "\r\n", "quit a\r\n"}) {
    const auto asked = ask_strictly(bytes);
    ASSERT_EQ(asked.state, RequestReader::State::complete) << bytes;
    EXPECT_EQ(asked.plan.route, Route::close) << bytes;
    EXPECT_TRUE(asked.plan.drop_pending) << bytes;
    EXPECT_EQ(asked.plan.reply, "");
  }
  for (const std::string bytes :
       {"get k\rx", "cas k 0 0 1\r\nx\r\n", "set k 0 0 1\nget k\r\n", "set k 0 0 1 nop\r\n",
        "set k 0 0 1 noreply noreply\r\n", "set k 0 0 3\r\nabcdef\r\n", "\x80"}) {
    const auto asked = ask_strictly(bytes);
    EXPECT_EQ(asked.state, RequestReader::State::bad) << bytes;
    EXPECT_EQ(asked.error_reply(), "");
  }
  EXPECT_EQ(ask_strictly("get " + std::string(251, 'k') + "\r\n").plan.route, Route::close);
  EXPECT_EQ(ask_strictly("get " + std::string(250, 'k') + "\r\n").plan.route, Route::one);
}

TEST(StrictMemcached, X25_FragmentsHaveAsManyBytesAsTwemproxys) {
  auto asked = ask_strictly("get a b c\r\n");
  std::string wire;
  asked.protocol().append_fragment(wire, asked.words(), asked.plan,
                                   std::vector<std::uint32_t>{0, 2});
  EXPECT_EQ(wire, "get a c \r\n");
}

}  // namespace
}  // namespace sluice::proxy
