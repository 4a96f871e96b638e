// What a visitor and an owner of a waiting room see.
#include "room/virtual_room.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::Crowd;

class Room : public test::VirtualRoom {};

TEST_F(Room, WhoComesToAnEmptyRoomIsInside) {
  auto room = make({.name = "shop", .rate = 10, .inside = 2, .hold = 1min});
  const auto ann = room.enter("ann").get();
  EXPECT_EQ(ann.place.state, PlaceState::inside);
  EXPECT_EQ(ann.place.number, 1);
  EXPECT_EQ(ann.place.inside_until, clock_.wall() + 1min);
  EXPECT_EQ(room.enter("bob").get().place.state, PlaceState::inside);
  const auto cid = room.enter("cid").get();
  EXPECT_EQ(cid.place.state, PlaceState::waiting);
  EXPECT_EQ(cid.place.position, 3);
  EXPECT_EQ(cid.place.before, 0);
  EXPECT_EQ(room.enter("dan").get().place.before, 1);
  EXPECT_EQ(room.leave(ann.ticket, "ann").get().value(), PlaceState::inside);
  EXPECT_EQ(room.state(cid.ticket, "cid").get()->state, PlaceState::inside);
  const auto status = room.status().get();
  EXPECT_EQ(status.inside, 2);
  EXPECT_EQ(status.waiting, 1);
  EXPECT_EQ(status.let_in, 3);
}

TEST_F(Room, V35_TicketsOfOthersAreRefused) {
  auto room = make({.name = "shop"});
  auto other = make({.name = "shop2"});
  const auto ann = room.enter("ann").get().ticket;
  const auto refusal = [](auto& asked, const std::string& ticket, const std::string& visitor) {
    const auto place = asked.state(ticket, visitor).get();
    const auto left = asked.leave(ticket, visitor).get();
    EXPECT_FALSE(place);
    EXPECT_FALSE(left);
    EXPECT_EQ(place.error(), left.error());
    return place.error();
  };
  EXPECT_EQ(refusal(room, ann, "bob"), TokenRefusal::other_subject);
  EXPECT_EQ(refusal(other, ann, "ann"), TokenRefusal::other_audience);
  auto forged = ann;
  forged.back() = forged.back() == 'A' ? 'Q' : 'A';
  EXPECT_NE(refusal(room, forged, "ann"), TokenRefusal::expired);
  const auto by_another_key = TokenKeys{{{"k1", std::string(32, 'x')}}}.sign(
      {.subject = "ann", .audience = "room:shop", .expires = clock_.wall() + 1h});
  EXPECT_EQ(refusal(room, by_another_key, "ann"), TokenRefusal::forged);
  EXPECT_EQ(refusal(room, "", "ann"), TokenRefusal::malformed);
  const auto of_a_sale = test::room_keys().sign(
      {.subject = "ann", .audience = "sale:shop", .expires = clock_.wall() + 1h});
  EXPECT_EQ(refusal(room, of_a_sale, "ann"), TokenRefusal::other_audience);
  clock_.advance(24h);
  EXPECT_EQ(refusal(room, ann, "ann"), TokenRefusal::expired);
}

TEST_F(Room, V36_ReloadKeepsThePlaceAndTwoTabsAreOne) {
  auto room = make({.name = "shop", .inside = 1});
  room.enter("first").get();
  const auto tab = room.enter("ann").get();
  room.enter("bob").get();
  const auto other_tab = room.enter("ann").get();
  EXPECT_EQ(other_tab.place.number, tab.place.number);
  EXPECT_EQ(other_tab.place.before, 0);
  EXPECT_NE(other_tab.ticket, tab.ticket);
  EXPECT_EQ(room.status().get().waiting, 2);
  EXPECT_EQ(room.leave(other_tab.ticket, "ann").get().value(), PlaceState::waiting);
  EXPECT_EQ(room.state(tab.ticket, "ann").get()->state, PlaceState::left);
  EXPECT_EQ(room.enter("ann").get().place.number, 4) << "who has left is the last";
}

TEST_F(Room, V36_ATicketThatIsOverKeepsThePlace) {
  auto room =
      WaitingRoom::create(line_, test::room_keys(), {.name = "shop", .inside = 1, .hold = 1h},
                          {.ticket_lifetime = 1min})
          .get();
  room.enter("first").get();
  const auto before = room.enter("ann").get();
  clock_.advance(1min);
  EXPECT_EQ(room.state(before.ticket, "ann").get().error(), TokenRefusal::expired);
  const auto again = room.enter("ann").get();
  EXPECT_EQ(again.place.number, before.place.number);
  EXPECT_TRUE(room.state(again.ticket, "ann").get());
}

TEST_F(Room, ALateCopyOfALeaveTakesNoLaterPlace) {
  auto room = make({.name = "shop", .inside = 1});
  room.enter("first").get();
  const auto ann = room.enter("ann").get();
  line_.plan = [](std::string_view call) {
    return call == "room/leave" ? test::Fault::stranded : test::Fault::none;
  };
  EXPECT_EQ(room.leave(ann.ticket, "ann").get().value(), PlaceState::waiting);
  const auto again = room.enter("ann").get();
  line_.let_go();
  EXPECT_EQ(room.state(again.ticket, "ann").get()->state, PlaceState::waiting);
}

TEST_F(Room, V34_ThoseWhoAreNotHeardOfFreeTheirSlotWithinTheHold) {
  auto room = make({.name = "shop", .rate = 100, .inside = 3, .hold = 1min});
  for (const char* const name : {"a", "b", "c"}) room.enter(name).get();
  const auto gone = room.enter("gone").get();  // closes the page while waiting
  const auto ann = room.enter("ann").get();
  for (int i = 0; i < 3; ++i) {
    clock_.advance(19s);
    EXPECT_EQ(room.state(ann.ticket, "ann").get()->state, PlaceState::waiting);
  }
  clock_.advance(3s + 100ms);  // a, b, c and gone were not heard of for a minute
  EXPECT_EQ(room.state(ann.ticket, "ann").get()->state, PlaceState::inside);
  const auto status = room.status().get();
  EXPECT_EQ(status.inside, 1);
  EXPECT_EQ(status.called, 0) << "nothing is kept for the one who has gone";
  EXPECT_EQ(status.gone, 4);
  EXPECT_EQ(room.state(gone.ticket, "gone").get()->state, PlaceState::left);
  const auto back = room.enter("gone").get();
  EXPECT_EQ(back.place.number, 6);
  EXPECT_EQ(back.place.state, PlaceState::inside);
}

TEST_F(Room, V34_WhoIsCalledAndDoesNotComeHoldsASlotNoLongerThanTheHold) {
  auto room = make({.name = "shop", .rate = 100, .inside = 1, .hold = 1min});
  const auto first = room.enter("first").get();
  room.enter("gone").get();
  const auto ann = room.enter("ann").get();
  clock_.advance(10s);
  EXPECT_TRUE(room.leave(first.ticket, "first").get());  // calls "gone", heard of 10 s ago
  EXPECT_EQ(room.status().get().called, 1);
  EXPECT_EQ(room.state(ann.ticket, "ann").get()->state, PlaceState::waiting);
  clock_.advance(50s + 100ms);
  EXPECT_EQ(room.state(ann.ticket, "ann").get()->state, PlaceState::inside);
}

TEST_F(Room, WhoIsHeardOfStaysInside) {
  auto room = make({.name = "shop", .inside = 1, .hold = 1min, .stay = 24h});
  const auto ann = room.enter("ann").get();
  for (int i = 0; i < 100; ++i) {
    clock_.advance(59s);
    EXPECT_EQ(room.state(ann.ticket, "ann").get()->inside_until, clock_.wall() + 1min);
  }
  clock_.advance(1min);
  EXPECT_EQ(room.state(ann.ticket, "ann").get()->state, PlaceState::left);
}

TEST_F(Room, SV08_AStayEndsWhenTheVisitorWasTold) {
  auto room = make({.name = "shop", .rate = 10, .inside = 1, .hold = 1min, .stay = 90s});
  const auto ann = room.enter("ann").get();
  const auto bob = room.enter("bob").get();
  ASSERT_TRUE(ann.place.stay_until);
  EXPECT_GE(*ann.place.stay_until, clock_.wall() + 90s);
  EXPECT_LE(*ann.place.stay_until, clock_.wall() + 90s + 100ms);
  EXPECT_FALSE(bob.place.stay_until);
  clock_.advance(50s);
  const auto asked = *room.state(ann.ticket, "ann").get();
  EXPECT_EQ(asked.stay_until, ann.place.stay_until);
  EXPECT_EQ(asked.inside_until, ann.place.stay_until) << "and not a minute from now";
  EXPECT_EQ(room.status().get().stay, 90s);
  EXPECT_EQ(room.state(bob.ticket, "bob").get()->state, PlaceState::waiting);
  clock_.advance(*ann.place.stay_until - clock_.wall() - 1us);
  EXPECT_EQ(room.state(ann.ticket, "ann").get()->state, PlaceState::inside);
  clock_.advance(1us);
  EXPECT_EQ(room.state(ann.ticket, "ann").get()->state, PlaceState::left);
  const auto again = room.enter("ann").get();
  EXPECT_EQ(again.place.number, 3) << "behind those who wait";
  EXPECT_EQ(again.place.state, PlaceState::waiting);
}

/// What an older version leaves: no field of the stay, and nothing noted of those it has let in.
TEST_F(Room, SV08_ARoomOfAnOlderVersionIsGivenALongestStay) {
  const WaitingRoomDefinition definition{
      .name = "shop", .rate = 10, .inside = 2, .hold = 1min, .stay = 3min};
  auto room = make(definition);
  const auto ann = room.enter("ann").get();
  store_->run({"HDEL", "{shop}:room", "stay", "stays_since"}).get();
  store_->run({"SETRANGE", "{shop}:heard", "0", std::string(4, '\0')}).get();
  const auto asks = [&] { return *room.state(ann.ticket, "ann").get(); };
  for (int i = 0; i < 20; ++i) {
    clock_.advance(30s);
    EXPECT_EQ(asks().state, PlaceState::inside) << "as long as she likes";
  }
  EXPECT_FALSE(asks().stay_until);
  EXPECT_FALSE(room.status().get().stay);
  make(definition);
  EXPECT_EQ(asks().stay_until, clock_.wall() + 3min) << "from now on";
  const auto bob = room.enter("bob").get();
  for (int i = 0; i < 5; ++i) {
    clock_.advance(30s);
    EXPECT_EQ(asks().state, PlaceState::inside);
    room.state(bob.ticket, "bob").get();
  }
  clock_.advance(30s);
  // A process of the older version has renewed her place meanwhile.
  store_->run({"ZADD", "{shop}:inside", "9e15", "1"}).get();
  EXPECT_EQ(asks().state, PlaceState::left);
  EXPECT_EQ(room.status().get().inside, 1) << "bob, who has a tenth of a second more";
}

TEST_F(Room, BeforeTheOpeningAllAreEnrolledAndThenDrawn) {
  const auto opens = clock_.wall() + 1h;
  auto room = make({.name = "shop", .rate = 2, .inside = 100, .opens_at = opens});
  std::vector<RoomEntry> entries;
  for (int i = 0; i < 20; ++i) {
    entries.push_back(room.enter(fmt::format("v{}", i)).get());
    const auto& place = entries.back().place;
    EXPECT_EQ(place.state, PlaceState::enrolled);
    EXPECT_EQ(place.number, i + 1);
    EXPECT_EQ(place.position, 0);
    EXPECT_EQ(place.eta, 1h);
  }
  const auto promised = room.draw().get();
  EXPECT_EQ(promised.seed, "");
  EXPECT_EQ(promised.commitment.size(), 64U);
  EXPECT_EQ(room.status().get().enrolled, 20);
  clock_.advance(1h - 1us);
  EXPECT_EQ(room.state(entries[0].ticket, "v0").get()->state, PlaceState::enrolled);
  clock_.advance(1us);
  const auto late = room.enter("late").get();
  EXPECT_EQ(late.place.position, 21) << "who comes at the opening is behind";
  const auto draw = room.draw().get();
  EXPECT_EQ(draw.commitment, promised.commitment);
  EXPECT_TRUE(draw.keeps_promise());
  EXPECT_EQ(draw.places, 20);
  EXPECT_EQ(draw.position_of(21), 21);
  std::vector<std::int64_t> positions;
  for (int i = 0; i < 20; ++i) {
    const auto place =
        *room.state(entries[static_cast<std::size_t>(i)].ticket, fmt::format("v{}", i)).get();
    EXPECT_EQ(place.position, draw.position_of(i + 1));
    positions.push_back(place.position);
  }
  std::ranges::sort(positions);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(positions[static_cast<std::size_t>(i)], i + 1);
  const auto audit = room.verify().get();
  EXPECT_EQ(audit.checked, 20);
  EXPECT_TRUE(audit.is_right());
}

TEST_F(Room, VerifyFindsAPositionThatWasNotDrawn) {
  auto room = make({.name = "shop", .opens_at = clock_.wall() + 1s});
  const auto ann = room.enter("ann").get();
  const auto bob = room.enter("bob").get();
  clock_.advance(1s);
  room.state(ann.ticket, "ann").get();
  const auto right = room.draw().get().position_of(1);
  EXPECT_TRUE(room.verify().get().is_right());
  store_->run({"HSET", "{shop}:visitors", "ann", right == 1 ? "1:2" : "1:1"}).get();
  const auto audit = room.verify().get();
  EXPECT_EQ(audit.wrong, 1);
  EXPECT_FALSE(audit.is_right());
}

TEST_F(Room, PauseLetsNobodyInUntilResume) {
  auto room = make({.name = "shop", .rate = 100, .inside = 1});
  const auto first = room.enter("first").get();
  const auto ann = room.enter("ann").get();
  room.pause().get();
  room.leave(first.ticket, "first").get();
  const auto place = *room.state(ann.ticket, "ann").get();
  EXPECT_EQ(place.state, PlaceState::waiting);
  EXPECT_TRUE(place.paused);
  EXPECT_FALSE(place.eta);
  EXPECT_EQ(room.enter("bob").get().place.state, PlaceState::waiting);
  room.resume().get();
  EXPECT_EQ(room.state(ann.ticket, "ann").get()->state, PlaceState::inside);
}

TEST_F(Room, PauseHoldsWhoHasHisTurn) {
  auto room = make({.name = "shop", .rate = 100, .inside = 1});
  const auto first = room.enter("first").get();
  const auto ann = room.enter("ann").get();
  room.leave(first.ticket, "first").get();  // ann is called
  room.pause().get();
  EXPECT_EQ(room.state(ann.ticket, "ann").get()->state, PlaceState::waiting);
  room.resume().get();
  EXPECT_EQ(room.state(ann.ticket, "ann").get()->state, PlaceState::inside);
}

TEST_F(Room, NobodyIsLetInForWhatIsGone) {
  auto room = make({.name = "shop", .rate = 100, .inside = 1});
  const auto first = room.enter("first").get();
  const auto ann = room.enter("ann").get();
  EXPECT_FALSE(ann.place.units_left);
  room.set_units_left(7).get();
  EXPECT_EQ(room.state(ann.ticket, "ann").get()->units_left, 7);
  room.set_units_left(0).get();
  room.leave(first.ticket, "first").get();
  const auto place = *room.state(ann.ticket, "ann").get();
  EXPECT_EQ(place.state, PlaceState::waiting);
  EXPECT_EQ(place.units_left, 0);
  EXPECT_FALSE(place.eta);
  room.set_units_left(1).get();  // one came back: the next of the queue gets it
  EXPECT_EQ(room.enter("bob").get().place.state, PlaceState::waiting);
  EXPECT_EQ(room.state(ann.ticket, "ann").get()->state, PlaceState::inside);
  room.set_units_left(std::nullopt).get();
  EXPECT_FALSE(room.state(ann.ticket, "ann").get()->units_left);
}

TEST_F(Room, ClosedNobodyComesOrIsLetInAndThoseInsideStay) {
  auto room = make({.name = "shop", .rate = 100, .inside = 1});
  const auto first = room.enter("first").get();
  const auto ann = room.enter("ann").get();
  room.close().get();
  EXPECT_EQ(room.state(first.ticket, "first").get()->state, PlaceState::inside);
  room.leave(first.ticket, "first").get();
  const auto place = *room.state(ann.ticket, "ann").get();
  EXPECT_EQ(place.state, PlaceState::waiting);
  EXPECT_TRUE(place.closed);
  const auto late = room.enter("late").get();
  EXPECT_EQ(late.place.state, PlaceState::left);
  EXPECT_TRUE(late.place.closed);
  EXPECT_EQ(late.ticket, "");
}

TEST_F(Room, MoreInsideIsThereAtOnceAndFewerSendNobodyOut) {
  auto room = make({.name = "shop", .rate = 100, .inside = 1});
  const auto ann = room.enter("ann").get();
  const auto bob = room.enter("bob").get();
  room.set_inside(2).get();
  EXPECT_EQ(room.state(bob.ticket, "bob").get()->state, PlaceState::inside);
  room.set_inside(1).get();
  EXPECT_EQ(room.status().get().inside, 2);
  const auto cid = room.enter("cid").get();
  room.leave(ann.ticket, "ann").get();
  EXPECT_EQ(room.state(cid.ticket, "cid").get()->state, PlaceState::waiting);
  room.leave(bob.ticket, "bob").get();
  EXPECT_EQ(room.state(cid.ticket, "cid").get()->state, PlaceState::inside);
}

TEST_F(Room, EtaIsWhatTheRoomDoes) {
  auto room = make({.name = "shop", .rate = 10, .inside = 10, .hold = 1min});
  Crowd crowd{clock_, room};
  crowd.come(600);  // who is in leaves at once, so the rate is what holds them up: a minute
  crowd.pass(20s);
  const auto asked = clock_.wall();
  const auto place =
      *room.state(crowd.visitors().back()->ticket, crowd.visitors().back()->id).get();
  ASSERT_TRUE(place.eta);
  crowd.pass(3min);
  const auto took = *crowd.visitors().back()->let_in - asked;
  EXPECT_GT(*place.eta, took / 2);
  EXPECT_LT(*place.eta, took * 2);
}

// A replica that takes over may be behind by its clock, too.
TEST_F(Room, GoesOnFromItsOwnTimeWhereTheServersGoesBack) {
  auto room = make({.name = "shop", .rate = 1, .inside = 2, .hold = 1min});
  const auto ann = room.enter("ann").get();
  const auto an_hour_ahead = std::chrono::microseconds{clock_.wall().time_since_epoch() + 1h};
  store_->run({"HSET", "{shop}:room", "last", std::to_string(an_hour_ahead.count())}).get();
  const auto bob = room.enter("bob").get();
  EXPECT_EQ(bob.place.inside_until, clock_.wall() + 1min);
  EXPECT_EQ(room.state(ann.ticket, "ann").get()->state, PlaceState::left) << "the hour has passed";
  clock_.advance(59s);
  EXPECT_EQ(room.state(bob.ticket, "bob").get()->state, PlaceState::inside);
  clock_.advance(1min);
  EXPECT_EQ(room.state(bob.ticket, "bob").get()->state, PlaceState::left);
}

TEST_F(Room, IsMadeOnceAndFoundByName) {
  const WaitingRoomDefinition definition{.name = "shop", .rate = 5};
  auto room = make(definition);
  const auto draw = room.draw().get();
  room.set_rate(8, 1s).get();
  room.set_inside(9).get();
  EXPECT_EQ(make(definition).draw().get(), draw) << "the seed of the first, and as it was made";
  EXPECT_EQ(room.status().get().rate, 8);
  EXPECT_TRUE(WaitingRoom::load(line_, test::room_keys(), "shop").get());
  EXPECT_FALSE(WaitingRoom::load(line_, test::room_keys(), "shop2").get());
  try {
    auto other = definition;
    other.rate = 6;
    make(other);
    FAIL() << "another rate";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::config_mismatch);
    EXPECT_NE(error.message().find("rate is '5' there and '6' here"), std::string::npos)
        << error.message();
  }
  EXPECT_TRUE(room.remove().get());
  EXPECT_FALSE(room.remove().get());
  EXPECT_THROW(room.enter("ann").get(), Error);
  EXPECT_EQ(store_->run({"DBSIZE"}).get().as_integer(), 0);
}

TEST_F(Room, RefusesWhatIsOutOfRange) {
  for (const auto& definition :
       std::vector<WaitingRoomDefinition>{{.name = ""},
                                          {.name = std::string(129, 'x')},
                                          {.name = "a{b}"},
                                          {.name = "shop", .rate = 0},
                                          {.name = "shop", .rate = 50'001},
                                          {.name = "shop", .interval = 0ms},
                                          {.name = "shop", .inside = 0},
                                          {.name = "shop", .hold = 999ms},
                                          {.name = "shop", .stay = 999ms},
                                          {.name = "shop", .stay = 24h * 30 + 1ms},
                                          {.name = "shop", .opens_at = WallTime{-1s}}})
    EXPECT_THROW(make(definition), Error);
  auto room = make({.name = "shop"});
  EXPECT_THROW(room.enter("").get(), Error);
  EXPECT_THROW(room.enter(std::string(129, 'x')).get(), Error);
  EXPECT_THROW((void)room.set_rate(0, 1s), Error);
  EXPECT_THROW((void)room.set_inside(0), Error);
  EXPECT_THROW((void)room.set_units_left(-1), Error);
}

TEST_F(Room, DamageIsToldByItsField) {
  auto room = make({.name = "shop"});
  store_->run({"HSET", "{shop}:room", "front", "x"}).get();
  try {
    room.enter("ann").get();
    FAIL() << "reckoned with it";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::corrupt);
    EXPECT_NE(error.message().find("front"), std::string::npos);
  }
  for (const char* const damaged : {"x", "1 2 3", "1 2 3 4 x", ""}) {
    store_->run({"HSET", "{shop}:room", "definition", damaged}).get();
    EXPECT_THROW(make({.name = "shop"}), Error) << damaged;
  }
}

}  // namespace
}  // namespace sluice
