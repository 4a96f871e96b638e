#include "server/shop_fixture.hpp"

namespace sluice::server {
namespace {

class Queue : public ShopTest {
 protected:
  void begin_with_room(std::int64_t stock, WaitingRoomDefinition room, std::int64_t limit = 1) {
    auto how = options();
    room.name = "tea";
    how.rooms = {room};
    begin({tea(stock, limit)}, std::move(how));
  }
  Answer enter(std::string_view buyer) const {
    return ask("POST", "/v1/sales/tea/queue", {{"Sluice-Buyer", buyer}});
  }
  Answer place(std::string_view buyer, std::string_view ticket) const {
    return ask("GET", "/v1/sales/tea/queue", {{"Sluice-Buyer", buyer}, {"Sluice-Ticket", ticket}});
  }
  Answer buy_with(std::string_view buyer, std::string_view ticket, std::string_view key) const {
    return ask("POST", "/v1/sales/tea/orders",
               {{"Sluice-Buyer", buyer}, {"Sluice-Ticket", ticket}, {"Idempotency-Key", key}});
  }
};

TEST_F(Queue, WhoIsInsideBuysAndMakesRoomForTheNext) {
  begin_with_room(5, {.rate = 1000, .inside = 1});
  const auto ann = enter("ann");
  EXPECT_EQ(ann.text("state"), "inside") << ann.body;
  const auto bob = enter("bob");
  EXPECT_EQ(bob.text("state"), "waiting");
  EXPECT_TRUE(bob.has("Retry-After"));
  EXPECT_EQ(buy_with("bob", bob.text("ticket"), "k").problem(), "not-inside");
  EXPECT_EQ(buy("bob", "k").problem(), "not-inside") << "without a ticket";
  EXPECT_EQ(buy_with("ann", ann.text("ticket"), "k").status, 201);
  EXPECT_EQ(place("bob", bob.text("ticket")).text("state"), "inside");
  EXPECT_EQ(buy_with("bob", bob.text("ticket"), "k").status, 201);
}

// His order is his, wherever he stands by now.
TEST_F(Queue, ARepeatOfAPurchaseNeedsNoTurn) {
  begin_with_room(5, {.rate = 1000, .inside = 1});
  const auto ticket = enter("ann").text("ticket");
  const auto bought = buy_with("ann", ticket, "k");
  EXPECT_EQ(bought.status, 201);
  const auto again = buy_with("ann", ticket, "k");
  EXPECT_EQ(again.status, 200) << again.body;
  EXPECT_EQ(again.text("id"), bought.text("id"));
  EXPECT_EQ(buy_with("ann", ticket, "k2").problem(), "not-inside");
}

TEST_F(Queue, V35_AnothersTicketAndAForgedOneAreRefused) {
  begin_with_room(5, {.rate = 1000, .inside = 5});
  const auto ticket = enter("ann").text("ticket");
  EXPECT_EQ(buy_with("bob", ticket, "k").status, 403);
  EXPECT_EQ(buy_with("ann", ticket + "x", "k").status, 403);
  EXPECT_EQ(buy_with("ann", "x", "k").status, 403);
  EXPECT_EQ(place("bob", ticket).status, 403);
}

TEST_F(Queue, V36_AReloadKeepsThePlace) {
  begin_with_room(5, {.rate = 1000, .inside = 1});
  enter("ann");
  const auto first = enter("bob");
  enter("cid");
  const auto again = enter("bob");
  EXPECT_EQ(*again.json().find("position")->as_integer(),
            *first.json().find("position")->as_integer());
}

TEST_F(Queue, WhoLeavesMakesRoom) {
  begin_with_room(5, {.rate = 1000, .inside = 1});
  const auto ann = enter("ann").text("ticket");
  const auto bob = enter("bob").text("ticket");
  EXPECT_EQ(ask("DELETE", "/v1/sales/tea/queue", {{"Sluice-Buyer", "ann"}, {"Sluice-Ticket", ann}})
                .text("was"),
            "inside");
  EXPECT_EQ(place("bob", bob).text("state"), "inside");
}

TEST_F(Queue, NobodyWaitsForWhatIsGone) {
  begin_with_room(1, {.rate = 1000, .inside = 1});
  const auto ann = enter("ann").text("ticket");
  const auto bob = enter("bob").text("ticket");
  EXPECT_EQ(buy_with("ann", ann, "k").status, 201);
  EXPECT_TRUE(test::comes_true([&] {
    const auto now = place("bob", bob).json();
    const auto* const left = now.find("units_left");
    return left && *left->as_integer() == 0;
  }));
}

TEST_F(Queue, TheRoomOfASaleThatIsArchivedIsClosed) {
  begin_with_room(1, {.rate = 1000, .inside = 1});
  const auto orders = open_order_store(options().shop.orders);
  EXPECT_TRUE(Sale::load(*store_, "tea").get()->archive(*orders));
  int visitors = 0;  // one that came in before the service has looked stays
  EXPECT_TRUE(test::comes_true(
      [&] { return enter(fmt::format("v{}", ++visitors)).problem() == "queue-closed"; }));
}

TEST_F(Queue, WithoutARoomThereIsNoQueue) {
  begin({tea(1)});
  EXPECT_EQ(enter("ann").problem(), "no-queue");
  EXPECT_EQ(ask("GET", "/v1/sales/tea/queue/draw").problem(), "no-queue");
}

TEST_F(Queue, TheDrawIsPromisedBeforeItIsShown) {
  begin_with_room(5, {.opens_at = system_clock().wall() + 1h});
  EXPECT_EQ(enter("ann").text("state"), "enrolled");
  const auto draw = ask("GET", "/v1/sales/tea/queue/draw");
  EXPECT_EQ(draw.text("commitment").size(), 64U);
  EXPECT_FALSE(draw.json().find("seed"));
}

TEST_F(Queue, SV09_TheOpeningOfASaleIsThatOfItsRoom) {
  auto later = tea(5);
  later.opens_at = system_clock().wall() + 1h;
  auto with_room = options();
  with_room.rooms = {{.name = "tea", .inside = 2}};
  begin({later}, with_room);
  for (const char* const buyer : {"ann", "bob", "cid"})
    EXPECT_EQ(enter(buyer).text("state"), "enrolled") << buyer;
  begin({later}, with_room);
  EXPECT_EQ(*enter("ann").json().find("number")->as_integer(), 1) << "a new process joins it";
}

TEST_F(Queue, SV09_ARoomThatAnOlderVersionHasMadeIsJoinedAsItIs) {
  auto later = tea(5);
  later.opens_at = system_clock().wall() + 1h;
  const TokenKeys keys{{{"k1", std::string(32, 'k')}}};
  WaitingRoom::create(*store_, keys, {.name = "tea", .inside = 2}).get();
  auto with_room = options();
  with_room.rooms = {{.name = "tea", .inside = 2}};
  begin({later}, with_room);
  EXPECT_EQ(enter("ann").text("state"), "inside");
}

TEST_F(Queue, SV08_ABuyerIsToldWhenHisStayEnds) {
  begin_with_room(5, {.rate = 1000, .inside = 1, .stay = 1s});
  const auto ann = enter("ann");
  EXPECT_NE(ann.text("stay_until"), "") << ann.body;
  EXPECT_TRUE(
      test::comes_true([&] { return place("ann", ann.text("ticket")).text("state") == "left"; }));
  const auto refused = buy_with("ann", ann.text("ticket"), "k");
  EXPECT_EQ(refused.problem(), "not-inside");
  EXPECT_NE(refused.text("detail").find("POST to the queue"), std::string::npos) << refused.body;
}

TEST_F(Queue, ARoomThatTheStoreHasLostIsMadeAgain) {
  begin_with_room(5, {.rate = 1000, .inside = 1});
  enter("ann");
  store_->run({"DEL", "{tea}:room"}).get();
  EXPECT_TRUE(test::comes_true([&] { return enter("bob").text("state") == "inside"; }));
}

}  // namespace
}  // namespace sluice::server
