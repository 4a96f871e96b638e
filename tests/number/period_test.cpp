#include "number/period.hpp"

#include <gtest/gtest.h>

#include <ctime>

#include "sluice/error.hpp"

namespace sluice {
namespace {

/// "2024-04-25T22:00:00Z"
WallTime utc(const char* text) {
  std::tm parts{};
  EXPECT_NE(::strptime(text, "%Y-%m-%dT%H:%M:%SZ", &parts), nullptr) << text;
  return WallTime{std::chrono::seconds{::timegm(&parts)}};
}

constexpr std::chrono::microseconds tick{1};

struct DayStart {
  const char* zone;
  const char* instant;  ///< the first of the day
  const char* day;
  const char* day_before;
};

class DayStarts : public testing::TestWithParam<DayStart> {};

TEST_P(DayStarts, BeginAtTheFirstInstantOfTheDate) {
  const auto& [zone, instant, day, day_before] = GetParam();
  const Calendar calendar{zone};
  const WallTime start = utc(instant);
  // Whatever instant the table was built around, the boundary is the same.
  for (const auto seen_from :
       {start - tick, start, start + std::chrono::hours{20}, start - std::chrono::hours{20}}) {
    const PeriodTable table = calendar.around(seen_from);
    ASSERT_TRUE(table.covers(start));
    ASSERT_TRUE(table.covers(start - tick));
    EXPECT_EQ(table.at(start).label, day);
    EXPECT_EQ(table.at(start).start, start);
    EXPECT_EQ(table.at(start - tick).label, day_before);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Zones, DayStarts,
    testing::Values(DayStart{"Asia/Shanghai", "2026-01-01T16:00:00Z", "20260102", "20260101"},
                    DayStart{"UTC", "2026-01-02T00:00:00Z", "20260102", "20260101"},
                    DayStart{"Africa/Cairo", "2024-04-25T22:00:00Z", "20240426", "20240425"},
                    DayStart{"Africa/Cairo", "2024-10-31T22:00:00Z", "20241101", "20241031"},
                    DayStart{"America/Sao_Paulo", "2018-11-04T03:00:00Z", "20181104", "20181103"},
                    DayStart{"America/Sao_Paulo", "2018-02-18T03:00:00Z", "20180218", "20180217"},
                    DayStart{"America/Havana", "2024-11-03T04:00:00Z", "20241103", "20241102"},
                    DayStart{"America/Havana", "2024-11-04T05:00:00Z", "20241104", "20241103"},
                    DayStart{"America/St_Johns", "2010-11-07T02:30:00Z", "20101107", "20101106"},
                    DayStart{"Pacific/Apia", "2011-12-30T10:00:00Z", "20111231", "20111229"}));

TEST(Calendar, KeepsADayThatTheClocksWouldLeave) {
  // At 02:31Z the local date goes back from the 7th to the 6th; the 7th has begun and stays.
  const Calendar calendar{"America/St_Johns"};
  const auto table = calendar.around(utc("2010-11-07T02:45:00Z"));
  EXPECT_EQ(table.at(utc("2010-11-07T02:45:00Z")).label, "20101107");
}

TEST(Calendar, PeriodsFollowEachOther) {
  for (const char* const zone :
       {"Asia/Shanghai", "Europe/Berlin", "America/Havana", "Pacific/Apia"}) {
    const Calendar calendar{zone};
    auto instant = utc("2011-12-20T00:00:00Z");
    for (int hour = 0; hour < 24 * 20; ++hour, instant += std::chrono::hours{1}) {
      const auto table = calendar.around(instant);
      ASSERT_TRUE(table.covers(instant)) << zone;
      for (std::size_t i = 1; i < table.periods.size(); ++i) {
        ASSERT_LT(table.periods[i - 1].start, table.periods[i].start) << zone;
        ASSERT_LT(table.periods[i - 1].label, table.periods[i].label) << zone;
      }
      ASSERT_LT(table.periods.back().start, table.end) << zone;
    }
  }
}

TEST(Calendar, AnUnknownZoneIsAnErrorNotUtc) {
  try {
    const Calendar calendar{"Asia/Shangai"};
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::bad_argument);
    EXPECT_NE(error.message().find("Asia/Shangai"), std::string::npos);
  }
}

}  // namespace
}  // namespace sluice
