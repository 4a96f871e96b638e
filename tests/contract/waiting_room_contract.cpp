// What WaitingRoom promises on every Store, in real time.
#include "contract/stores.hpp"
#include "sluice/waiting_room.hpp"
#include "support/comes_true.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

class WaitingRoomContract : public test::StoreContract {
 protected:
  /// Names of rooms have no braces.
  static std::string room_name() {
    auto text = name("room");
    std::erase_if(text, [](char c) { return c == '{' || c == '}'; });
    return text;
  }
  WaitingRoom make(WaitingRoomDefinition definition) {
    return WaitingRoom::create(store(), keys_, std::move(definition)).get();
  }

  const TokenKeys keys_{{{"k1", std::string(32, 'k')}}};
};
SLUICE_EVERY_STORE(WaitingRoomContract);
SLUICE_SHARDED_STORE(WaitingRoomContract);

TEST_P(WaitingRoomContract, ServesInTheOrderOfArrival) {
  auto room = make({.name = room_name(), .rate = 1000, .inside = 1, .hold = 1h});
  const auto ann = room.enter("ann").get();
  const auto bob = room.enter("bob").get();
  const auto cid = room.enter("cid").get();
  EXPECT_EQ(ann.place.state, PlaceState::inside);
  EXPECT_EQ(bob.place.before, 0);
  EXPECT_EQ(cid.place.before, 1);
  EXPECT_EQ(room.enter("cid").get().place.number, 3);
  EXPECT_EQ(room.leave(ann.ticket, "ann").get().value(), PlaceState::inside);
  EXPECT_EQ(room.leave(ann.ticket, "ann").get().value(), PlaceState::left);
  const auto state = [&](const RoomEntry& entry, const char* visitor) {
    return room.state(entry.ticket, visitor).get()->state;
  };
  EXPECT_TRUE(test::comes_true([&] { return state(bob, "bob") == PlaceState::inside; }));
  EXPECT_EQ(state(cid, "cid"), PlaceState::waiting);
  EXPECT_EQ(room.leave(bob.ticket, "bob").get().value(), PlaceState::inside);
  EXPECT_TRUE(test::comes_true([&] { return state(cid, "cid") == PlaceState::inside; }));
  EXPECT_EQ(room.status().get().let_in, 3);
  EXPECT_TRUE(room.remove().get());
  EXPECT_THROW((void)room.status().get(), Error);
}

TEST_P(WaitingRoomContract, DrawsAtTheOpening) {
  const auto room_of_both = room_name();
  std::optional<WaitingRoom> room;
  RoomEntry ann;
  RoomEntry bob;
  for (auto until = 200ms; bob.place.state != PlaceState::enrolled; until *= 2) {  // a slow machine
    if (room) room->remove().get();
    room = make({.name = room_of_both,
                 .rate = 1000,
                 .inside = 1,
                 .hold = 1h,
                 .opens_at = store().time().get() + until});
    ann = room->enter("ann").get();
    bob = room->enter("bob").get();
  }
  const auto state = [&](const RoomEntry& entry, const char* visitor) {
    return room->state(entry.ticket, visitor).get().value();
  };
  EXPECT_TRUE(test::comes_true([&] { return room->status().get().open; }));
  const auto draw = room->draw().get();
  EXPECT_TRUE(draw.keeps_promise());
  EXPECT_EQ(state(ann, "ann").position, draw.position_of(1));
  EXPECT_EQ(state(bob, "bob").position, draw.position_of(2));
  EXPECT_TRUE(test::comes_true([&] {
    return state(ann, "ann").state == PlaceState::inside ||
           state(bob, "bob").state == PlaceState::inside;
  }));
  const bool ann_is_first = draw.position_of(1) == 1;
  EXPECT_EQ(state(ann, "ann").state, ann_is_first ? PlaceState::inside : PlaceState::waiting);
  EXPECT_EQ(state(bob, "bob").state, ann_is_first ? PlaceState::waiting : PlaceState::inside);
  const auto audit = room->verify().get();
  EXPECT_EQ(audit.checked, 2);
  EXPECT_TRUE(audit.is_right());
}

}  // namespace
}  // namespace sluice
