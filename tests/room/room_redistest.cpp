// A waiting room asked by many processes at once, and one whose server loses what it had.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "room/virtual_room.hpp"
#include "sluice/open.hpp"
#include "support/cluster_rig.hpp"
#include "support/process.hpp"
#include "support/redis_server.hpp"
#include "support/temp_dir.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

TEST(RoomInACluster, OutlivesAFailover) {
  test::ClusterRig rig;
  const auto store = open(rig.url());
  auto room = WaitingRoom::create(*store, test::room_keys(), {.name = "shop", .inside = 1}).get();
  const auto first = room.enter("first").get();
  const auto ann = room.enter("ann").get();
  rig.fail_over(rig.master_of("{shop}:room"));
  EXPECT_EQ(room.state(ann.ticket, "ann").get()->position, 2);
  EXPECT_EQ(room.state(first.ticket, "first").get()->state, PlaceState::inside);
}

TEST(RoomOfManyProcesses, V37_IsOneRoom) {
  test::RedisServer server;
  const test::TempDir folder;
  constexpr int processes = 4;
  constexpr int each = 50;
  constexpr auto rate = 20;
  {
    const auto store = open(server.url());
    WaitingRoom::create(*store, test::room_keys(),
                        {.name = "shop", .rate = rate, .interval = 100ms, .inside = 10, .hold = 1h})
        .get();
  }
  std::vector<test::Process> crew;
  for (int i = 0; i < processes; ++i)
    crew.emplace_back([&server, &folder, i] {
      const auto store = open(server.url());
      auto room = *WaitingRoom::load(*store, test::room_keys(), "shop").get();
      std::vector<std::pair<std::string, std::string>> waiting;
      for (int n = 0; n < each; ++n) {
        const auto name = fmt::format("v{}", n);  // each process is a tab of the same visitors
        waiting.emplace_back(name, room.enter(name).get().ticket);
      }
      std::ofstream file{folder / std::to_string(i)};
      while (!waiting.empty())
        std::erase_if(waiting, [&](const auto& visitor) {
          const auto place = room.state(visitor.second, visitor.first).get();
          if (place->state != PlaceState::inside && place->state != PlaceState::left) return false;
          file << visitor.first << '\n';
          return room.leave(visitor.second, visitor.first).get().has_value();
        });
      return file.good() ? 0 : 1;
    });
  for (auto& process : crew) ASSERT_EQ(process.wait(), 0);
  const auto store = open(server.url());
  auto room = *WaitingRoom::load(*store, test::room_keys(), "shop").get();
  const auto status = room.status().get();
  EXPECT_EQ(status.inside, 0);
  EXPECT_EQ(status.waiting, 0);
  EXPECT_EQ(status.gone, 0);
  EXPECT_GE(status.let_in, each);
  // When each went in, as the room itself has noted it: never more than the rate.
  const auto ring = store->run({"GET", "{shop}:entries"}).get().as_text();
  std::vector<WallTime> moments;
  for (std::size_t at = 0; at + 8 <= ring.size(); at += 8) {
    double time = 0;
    std::memcpy(&time, ring.data() + at, sizeof time);
    moments.push_back(WallTime{std::chrono::microseconds{static_cast<std::int64_t>(time)}});
  }
  EXPECT_EQ(moments.size(), static_cast<std::size_t>(status.let_in));
  EXPECT_LE(test::fullest_window(moments, 100ms), std::size_t{rate});
}

TEST(RoomThatIsLost, IsToldAndCanBeMadeAgain) {
  test::RedisServer server;
  const auto store = open(server.url());
  auto room = WaitingRoom::create(*store, test::room_keys(), {.name = "shop"}).get();
  const auto ann = room.enter("ann").get();
  store->run({"FLUSHALL"}).get();
  EXPECT_THROW((void)room.state(ann.ticket, "ann").get(), Error);
  auto again = WaitingRoom::create(*store, test::room_keys(), {.name = "shop"}).get();
  EXPECT_EQ(again.state(ann.ticket, "ann").get()->state, PlaceState::left);
  EXPECT_EQ(again.enter("ann").get().place.state, PlaceState::inside);
}

/// A replica that takes over without the last moments: what the header says of it.
TEST(RoomAfterALossyFailover, KeepsPlacesThatWereThereBefore) {
  test::RedisServer server;
  const auto store = open(server.url());
  auto room =
      WaitingRoom::create(*store, test::room_keys(), {.name = "shop", .inside = 1, .hold = 1h})
          .get();
  room.enter("first").get();
  const auto ann = room.enter("ann").get();
  std::vector<std::pair<std::string, std::string>> saved;
  for (const char* const key : {"{shop}:room", "{shop}:visitors", "{shop}:called", "{shop}:inside",
                                "{shop}:heard", "{shop}:entries"}) {
    const Value dump = store->run({"DUMP", key}).get();
    if (!dump.is_null()) saved.emplace_back(key, dump.as_text());
  }
  const auto bob = room.enter("bob").get();  // in the second that is lost
  EXPECT_EQ(bob.place.number, 3);
  for (const auto& [key, dump] : saved) store->run({"RESTORE", key, "0", dump, "REPLACE"}).get();

  EXPECT_EQ(room.state(ann.ticket, "ann").get()->position, 2);
  EXPECT_EQ(room.enter("cid").get().place.number, 3) << "bob's number";
  EXPECT_EQ(room.state(bob.ticket, "bob").get()->state, PlaceState::left);
  EXPECT_EQ(room.leave(bob.ticket, "bob").get().value(), PlaceState::left) << "not cid's place";
  EXPECT_EQ(room.enter("bob").get().place.number, 4);
  EXPECT_EQ(room.status().get().waiting, 3);
}

}  // namespace
}  // namespace sluice
