#include "base/duration.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

using namespace std::chrono_literals;

TEST(Frictions, U23_OneParserKnowsAllUnitsAndIsToldWhatABareNumberIs) {
  for (const auto& [text, time] :
       std::initializer_list<std::pair<const char*, std::chrono::microseconds>>{
           {"50us", 50us},
           {"20ms", 20ms},
           {"3s", 3s},
           {"1m", 1min},
           {"1h", 1h},
           {"2d", 48h},
           {"1.5s", 1500ms},
           {"0.25ms", 250us},
           {"3S", 3s},
           {"0", 0s},
           {"3650d", 3650 * 24h}})
    EXPECT_EQ(parse_duration(text, 1s), time) << text;
  EXPECT_EQ(parse_duration("250", 1ms), 250ms);
  EXPECT_EQ(parse_duration("250", 1s), 250s);
  for (const auto* const text : {"", "s", "-1s", "+1s", "1 s", "1x", "1hs", "99999999999s", "3651d",
                                 "nan", "inf", "0x10s", "1e3s", ".5s"})
    EXPECT_EQ(parse_duration(text, 1ms), std::nullopt) << text;
}

TEST(Duration, IsWrittenInTheLargestUnitThatDividesIt) {
  EXPECT_EQ(duration_text(0us), "0ms");
  EXPECT_EQ(duration_text(50us), "50us");
  EXPECT_EQ(duration_text(1500ms), "1500ms");
  EXPECT_EQ(duration_text(90s), "90s");
  EXPECT_EQ(duration_text(48h), "2d");
  for (const auto time : {1us, 999us, 1001us, 61'000'000us, 7'200'000'000us})
    EXPECT_EQ(parse_duration(duration_text(time), 1h), time);
}

}  // namespace
}  // namespace sluice
