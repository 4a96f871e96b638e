// Crowds: how fair, how fast, and how spread.
#include <cmath>

#include "base/random.hpp"
#include "room/virtual_room.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::Crowd;
using test::fullest_window;

/// Kendall's tau of a sequence: 1 where it rises, -1 where it falls.
double kendall_tau(const std::vector<std::int64_t>& sequence) {
  std::int64_t score = 0;
  for (std::size_t i = 0; i < sequence.size(); ++i)
    for (std::size_t j = i + 1; j < sequence.size(); ++j)
      score += sequence[i] < sequence[j] ? 1 : -1;
  const auto count = static_cast<double>(sequence.size());
  return static_cast<double>(score) / (count * (count - 1) / 2);
}

class RoomCrowd : public test::VirtualRoom {
 protected:
  /// The numbers of arrival, or positions, in the order in which they were let in.
  static std::vector<std::int64_t> order(const Crowd& crowd, std::int64_t RoomPlace::*number) {
    std::vector<std::int64_t> numbers;
    for (const auto* visitor : crowd.in_order()) numbers.push_back(visitor->place.*number);
    return numbers;
  }
};

TEST_F(RoomCrowd, V33_FirstComeFirstServed) {
  auto room = make({.name = "shop", .rate = 50, .inside = 100, .hold = 1min});
  Crowd crowd{clock_, room};
  for (int i = 0; i < 100; ++i) {
    crowd.come(50);
    crowd.pass(100ms);
  }
  crowd.pass(3min);
  ASSERT_EQ(crowd.in_order().size(), 5000U);
  const auto tau = kendall_tau(order(crowd, &RoomPlace::number));
  EXPECT_GE(tau, 0.99);
  RecordProperty("tau", std::to_string(tau));
}

TEST_F(RoomCrowd, V33_TheDrawnComeInTheOrderOfTheDraw) {
  auto room = make(
      {.name = "shop", .rate = 50, .inside = 100, .hold = 1min, .opens_at = clock_.wall() + 1min});
  Crowd crowd{clock_, room};
  crowd.come(4000);
  crowd.pass(1min);
  crowd.come(200);  // behind all who were drawn
  crowd.pass(4min);
  ASSERT_EQ(crowd.in_order().size(), 4200U);
  EXPECT_GE(kendall_tau(order(crowd, &RoomPlace::position)), 0.99);
  // The order says nothing of who came first: it is as near to 0 as chance lets it be.
  auto drawn = order(crowd, &RoomPlace::number);
  std::erase_if(drawn, [](std::int64_t number) { return number > 4000; });
  EXPECT_LT(std::abs(kendall_tau(drawn)), 0.1);
  EXPECT_TRUE(room.verify().get().is_right());
  EXPECT_EQ(room.verify().get().checked, 0) << "all have left";
}

TEST_F(RoomCrowd, V37_NeverAboveTheRateInAnyWindow) {
  auto room = make({.name = "shop", .rate = 7, .interval = 1s, .inside = 1000, .hold = 1min});
  Crowd crowd{clock_, room};
  crowd.come(200);
  crowd.pass(60s);
  const auto entries = crowd.entries();
  ASSERT_EQ(entries.size(), 200U) << "and it is used: 200 need 29 s";
  EXPECT_LE(fullest_window(entries, 1s), 7U);
  EXPECT_LT(entries.back() - entries.front(), 40s);
}

TEST_F(RoomCrowd, V37_NorWhereTheStringOfEntriesBeginsAnew) {
  auto room = make({.name = "shop", .rate = 7, .interval = 1s, .inside = 1000, .hold = 1min});
  store_->run({"HSET", "{shop}:room", "entered", "65500"}).get();
  Crowd crowd{clock_, room};
  crowd.come(100);
  crowd.pass(30s);
  ASSERT_EQ(crowd.entries().size(), 100U);
  EXPECT_LE(fullest_window(crowd.entries(), 1s), 7U);
  EXPECT_EQ(store_->run({"STRLEN", "{shop}:entries"}).get().as_integer(), 65'536 * 8);
}

TEST_F(RoomCrowd, V37_NorWhenTheRateChangesOrTheRoomWasPaused) {
  auto room = make({.name = "shop", .rate = 20, .inside = 1000, .hold = 1min});
  Crowd crowd{clock_, room};
  crowd.come(1000);
  std::vector<std::pair<WallTime, std::size_t>> rates{{clock_.wall(), 20}};
  for (const std::int64_t rate : {3, 40, 1, 10, 5}) {
    crowd.pass(5s + 130ms);
    if (rate == 10) {
      room.pause().get();
      crowd.pass(10s);
      room.resume().get();
    }
    room.set_rate(rate, 1s).get();
    rates.emplace_back(clock_.wall(), static_cast<std::size_t>(rate));
  }
  crowd.pass(5s);
  const auto entries = crowd.entries();
  EXPECT_GT(entries.size(), 200U);
  // A window that ends under a rate has no more than that; who came in at the instant of a change
  // came before it.
  for (std::size_t last = 0; last < entries.size(); ++last) {
    std::size_t rate = rates.front().second;
    for (const auto& [from, value] : rates)
      if (from < entries[last]) rate = value;
    if (last >= rate) {
      EXPECT_GE(entries[last] - entries[last - rate], 1s) << last;
    }
  }
}

TEST_F(RoomCrowd, V37_ACrowdThatComesBackAtOnceIsHeldToTheRate) {
  auto room = make(
      {.name = "shop", .rate = 30, .inside = 1000, .hold = 1h, .opens_at = clock_.wall() + 1s});
  std::vector<RoomEntry> entries;
  for (int i = 0; i < 500; ++i) entries.push_back(room.enter(fmt::format("v{}", i)).get());
  clock_.advance(1s);
  std::vector<WallTime> moments;
  std::vector<bool> in(entries.size());
  for (int round = 0; round < 100; ++round) {  // all ask again and again, whatever they are told
    for (std::size_t i = 0; i < entries.size(); ++i)
      if (!in[i] &&
          room.state(entries[i].ticket, fmt::format("v{}", i)).get()->state == PlaceState::inside) {
        in[i] = true;
        moments.push_back(clock_.wall());
      }
    clock_.advance(37ms);
  }
  EXPECT_LE(fullest_window(moments, 1s), 30U);
  EXPECT_GE(moments.size(), 100U) << "in 3.7 s";
}

TEST_F(RoomCrowd, NoMoreInsideThanThereIsRoom) {
  auto room = make({.name = "shop", .rate = 1000, .inside = 25, .hold = 30s});
  Crowd crowd{clock_, room};
  for (int i = 0; i < 300; ++i) {
    crowd.come(fmt::format("v{}", i), true,
               clock_.wall() + std::chrono::seconds{5 + random_below(100)});
  }
  std::int64_t most = 0;
  for (int second = 0; second < 600; ++second) {
    crowd.pass(1s);
    const auto status = room.status().get();
    most = std::max(most, status.inside + status.called);
  }
  EXPECT_EQ(most, 25);
  EXPECT_EQ(room.status().get().waiting, 0);
  EXPECT_EQ(room.status().get().inside, 0);
}

TEST_F(RoomCrowd, SV08_TheTurnGoesRoundThoughAllWhoAreInKeepAsking) {
  for (const std::int64_t inside : {1, 2, 5}) {
    const auto all = 3 * inside;
    auto room = make({.name = fmt::format("shop{}", inside), .interval = 20s, .inside = inside});
    Crowd crowd{clock_, room};
    for (int i = 0; i < all; ++i) crowd.come(fmt::format("v{}", i), true);
    crowd.pass(2h);
    for (const auto& visitor : crowd.visitors())  // 12 stays of ten minutes, for a third of them
      EXPECT_NEAR(visitor->turns, 4, 1) << visitor->id << " of " << all;
  }
}

TEST_F(RoomCrowd, V34_AQueueOfThoseWhoHaveGoneIsPassedOver) {
  auto room = make({.name = "shop", .rate = 10, .inside = 10, .hold = 30s});
  Crowd crowd{clock_, room};
  for (int i = 0; i < 5000; ++i) crowd.come(fmt::format("gone-{}", i), true, clock_.wall());
  clock_.advance(10s);
  auto& ann = crowd.come("ann");
  EXPECT_EQ(ann.place.before, 5000 - 10);
  crowd.pass(3min);
  ASSERT_TRUE(ann.let_in);
  EXPECT_LE(*ann.let_in - ann.came, 120s) << "and not after 500 s, as the rate alone would have it";
}

TEST_F(RoomCrowd, V34_HalfOfTheDrawnHaveGone) {
  auto room = make(
      {.name = "shop", .rate = 50, .inside = 50, .hold = 30s, .opens_at = clock_.wall() + 10s});
  Crowd crowd{clock_, room};
  for (int i = 0; i < 2000; ++i) {
    if (i % 2 == 0)
      crowd.come(fmt::format("v{}", i), true, clock_.wall());
    else
      crowd.come(fmt::format("v{}", i));
  }
  crowd.pass(10s + 30s + 30s);
  EXPECT_GE(crowd.in_order().size(), 950U) << "30 s for those who have gone, 20 s for the others";
}

TEST_F(RoomCrowd, V38_TenThousandWhoAreToldToComeBackComeSpread) {
  auto room = make(
      {.name = "shop", .rate = 10, .inside = 10, .hold = 2min, .opens_at = clock_.wall() + 30s});
  std::vector<std::int64_t> moments;
  for (int i = 0; i < 10'000; ++i)
    moments.push_back(room.enter(fmt::format("v{}", i)).get().place.poll_after.count());
  // Of the last thousand, who all know how many there are: evenly over five seconds.
  const std::vector<std::int64_t> last(moments.end() - 1000, moments.end());
  const auto [least, most] = std::ranges::minmax(last);
  EXPECT_GE(least, 30'000) << "before the opening nobody has to ask";
  EXPECT_GE(most - least, 4'000);
  std::vector<int> buckets(10);
  for (const auto moment : last)
    ++buckets[static_cast<std::size_t>(std::min<std::int64_t>(9, (moment - 30'000) / 500))];
  for (const int count : buckets)
    EXPECT_LT(count, 200) << "a tenth of the time has a tenth of them";
}

TEST_F(RoomCrowd, V38_AnOutageBringsNobodyIntoStep) {
  auto room = make({.name = "shop", .rate = 10, .inside = 10, .hold = 2min});
  std::vector<std::int64_t> moments;
  for (int i = 0; i < 10'000; ++i) {  // all at one moment, as when the store is back
    const auto place = room.enter(fmt::format("v{}", i)).get().place;
    if (place.before > 1000) moments.push_back(place.poll_after.count());
  }
  const auto [least, most] = std::ranges::minmax(moments);
  EXPECT_GE(most - least, 6'000);
  EXPECT_LE(most, 20'000);
  std::vector<int> seconds(21);
  for (const auto moment : moments) ++seconds[static_cast<std::size_t>(moment / 1000)];
  EXPECT_LT(std::ranges::max(seconds), 2'000) << "of 9,000 over seven seconds";
}

TEST_F(RoomCrowd, AWaiterAsksSeldomFarFromTheFrontAndOftenNearIt) {
  auto room = make({.name = "shop", .rate = 1, .inside = 10, .hold = 2min});
  Crowd crowd{clock_, room};
  crowd.come(301);
  EXPECT_GE(crowd.visitors().back()->place.poll_after, 13s);
  crowd.pass(10min);
  ASSERT_EQ(crowd.in_order().size(), 301U);
  EXPECT_LT(crowd.questions(), 301U * 40) << "five minutes of waiting: forty questions at most";
  EXPECT_LT(crowd.entries().back() - crowd.visitors().back()->came, 400s);
}

}  // namespace
}  // namespace sluice
