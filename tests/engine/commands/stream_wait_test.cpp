// Readers of a stream that wait: what they wait for, and what they are to be asked again.
#include <gtest/gtest.h>

#include "engine/engine_session.hpp"

namespace sluice::engine {
namespace {

TEST(StreamWait, DollarMeansTheEndAsItWasAtFirst) {
  EngineSession session;
  session.run("XADD s 1-1 a b");
  session.run("XREAD BLOCK 500 STREAMS s none $ $");
  ASSERT_EQ(session.blocks.size(), 1U);
  EXPECT_EQ(session.blocks[0].keys, (Line{"s", "none"}));
  EXPECT_EQ(session.blocks[0].timeout_ms, 500);
  const auto again = session.blocks[0].words;
  EXPECT_EQ(text_of(again), "XREAD BLOCK 500 STREAMS s none 1-1 0-0");

  session.run("XADD s 1-2 c d");
  EXPECT_EQ(session.signalled, Line{"s"});
  EXPECT_EQ(to_string(session.run(again)), R"(map["s", [["1-2", ["c", "d"]]]])");
}

TEST(StreamWait, AGroupReadsWhatComesAndTheLogTellsWhoGotIt) {
  EngineSession session;
  session.run("XGROUP CREATE s g $ MKSTREAM");
  session.run("XREADGROUP GROUP g c BLOCK 0 STREAMS s >");
  ASSERT_EQ(session.blocks.size(), 1U);
  EXPECT_EQ(session.effects_text(), "XGROUP CREATECONSUMER s g c");
  const auto again = session.blocks[0].words;
  session.run("XADD s 5-1 a b");
  EXPECT_EQ(to_string(session.run(again)), R"(map["s", [["5-1", ["a", "b"]]]])");
  EXPECT_EQ(session.effects_text(),
            "XCLAIM s g c 0 5-1 TIME 1700000000000 RETRYCOUNT 1 FORCE JUSTID LASTID 5-1; XGROUP "
            "SETID s g 5-1 ENTRIESREAD 1");
}

TEST(StreamWait, WhoWaitsForAGroupThatIsDestroyedIsTold) {
  EngineSession session;
  session.run("XGROUP CREATE s g $ MKSTREAM");
  session.run("XREADGROUP GROUP g c BLOCK 0 STREAMS s >");
  const auto again = session.blocks.at(0).words;
  session.run("XGROUP DESTROY s g");
  EXPECT_EQ(session.signalled, Line{"s"});
  EXPECT_EQ(to_string(session.run(again)).substr(0, 15), "(error) NOGROUP");
}

TEST(StreamWait, AScriptDoesNotWait) {
  EngineSession session;
  EXPECT_NE(
      to_string(session.run(Line{
                    "EVAL", "return redis.call('xread', 'BLOCK', 0, 'STREAMS', 's', '$')", "0"}))
          .find("not allowed with BLOCK option from scripts"),
      std::string::npos);
  EXPECT_TRUE(session.blocks.empty());
}

}  // namespace
}  // namespace sluice::engine
