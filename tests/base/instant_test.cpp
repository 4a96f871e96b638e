#include "base/instant.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

using namespace std::chrono_literals;

constexpr WallTime noon = std::chrono::sys_days{std::chrono::November / 11 / 2026} + 12h;

TEST(Instant, HasADateATimeAndAZone) {
  for (const auto& [text, instant] : std::initializer_list<std::pair<const char*, WallTime>>{
           {"2026-11-11T12:00:00Z", noon},
           {"2026-11-11T12:00Z", noon},
           {"2026-11-11 12:00Z", noon},
           {"2026-11-11T20:00:00+08:00", noon},
           {"2026-11-11T20:00+0800", noon},
           {"2026-11-11T02:15:00-09:45", noon},
           {"2026-11-11T12:00:00.5Z", noon + 500ms},
           {"2026-11-11T12:00:00.000001Z", noon + 1us},
           {"2028-02-29T00:00Z", std::chrono::sys_days{std::chrono::February / 29 / 2028}}})
    EXPECT_EQ(parse_instant(text), instant) << text;
  for (const auto* const text : {"",
                                 "2026-11-11",
                                 "2026-11-11T12:00:00",
                                 "2026-11-11T12:00",
                                 "2026-11-31T12:00Z",
                                 "2027-02-29T00:00Z",
                                 "2026-13-01T00:00Z",
                                 "2026-11-11T24:00Z",
                                 "2026-11-11T12:60Z",
                                 "2026-11-11T12:00:60Z",
                                 "2026-11-11T12:00:00.Z",
                                 "2026-11-11T12:00:00.1234567Z",
                                 "2026-11-11T12:00+15:00",
                                 "2026-11-11T12:00+08:60",
                                 "2026-11-11T12:00+8",
                                 "26-11-11T12:00Z",
                                 "2026-11-11T12:00Zx",
                                 " 2026-11-11T12:00Z",
                                 "2026-11-11T12:00 Asia/Shanghai",
                                 "+026-11-11T12:00Z",
                                 "now"})
    EXPECT_EQ(parse_instant(text), std::nullopt) << text;
}

TEST(Instant, IsWrittenInUtc) {
  EXPECT_EQ(to_text(noon), "2026-11-11T12:00:00Z");
  EXPECT_EQ(to_text(noon + 1us), "2026-11-11T12:00:00.000001Z");
  for (const auto instant : {noon, noon + 1us, noon + 999'999us, WallTime{}})
    EXPECT_EQ(parse_instant(to_text(instant)), instant);
}

}  // namespace
}  // namespace sluice
