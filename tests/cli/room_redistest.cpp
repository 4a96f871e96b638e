// `sluice room`: a waiting room as its owner steers it, and as visitors of a program see it.
#include "cli/program.hpp"
#include "sluice/open.hpp"
#include "sluice/waiting_room.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;

class RoomProgram : public Program {
 protected:
  Ran room(std::vector<std::string> words) {
    words.insert(words.begin(), {"--json", "room"});
    return run_on_redis(std::move(words));
  }
  const TokenKeys keys_{{{"k1", std::string(32, 'k')}}};
};

TEST_F(RoomProgram, IsMadeSteeredAndRemoved) {
  const Ran made =
      room({"create", "shop", "--rate", "50", "--inside", "2", "--hold", "1m", "--stay", "5m"});
  ASSERT_EQ(made.status, 0) << made.output;
  EXPECT_EQ(made.json().at("commitment").get<std::string>().size(), 64U);
  EXPECT_EQ(room({"create", "shop", "--rate", "5"}).status, 78) << "made otherwise";
  EXPECT_EQ(room({"status", "shop2"}).status, 64);

  const auto store = open(patient_url());
  auto shop = *WaitingRoom::load(*store, keys_, "shop").get();
  const auto ann = shop.enter("ann").get();
  const auto bob = shop.enter("bob").get();
  const auto cid = shop.enter("cid").get();
  auto now = room({"status", "shop"}).json();
  EXPECT_EQ(now.at("inside"), 2);
  EXPECT_EQ(now.at("waiting"), 1);
  EXPECT_EQ(now.at("open"), true);
  EXPECT_EQ(now.at("stay_ms"), 300'000);

  EXPECT_TRUE(room({"pause", "shop"}).json().at("paused").get<bool>());
  EXPECT_EQ(room({"rate", "shop", "--inside", "3"}).json().at("inside_limit"), 3);
  EXPECT_TRUE(shop.state(cid.ticket, "cid").get()->paused);
  EXPECT_FALSE(room({"resume", "shop"}).json().at("paused").get<bool>());
  wait_until([&](PlainClient&) {
    return shop.state(cid.ticket, "cid").get()->state == PlaceState::inside;
  });

  EXPECT_EQ(room({"rate", "shop", "--rate", "7", "--interval", "1m"}).json().at("rate"), 7);
  EXPECT_EQ(room({"rate", "shop"}).status, 64) << "nothing is said";
  EXPECT_EQ(room({"units", "shop", "0"}).json().at("units_left"), 0);
  EXPECT_EQ(shop.state(ann.ticket, "ann").get()->units_left, 0);
  EXPECT_FALSE(room({"units", "shop", "unknown"}).json().contains("units_left"));
  EXPECT_EQ(room({"units", "shop", "-1"}).status, 64);
  EXPECT_TRUE(room({"close", "shop"}).json().at("closed").get<bool>());
  EXPECT_EQ(room({"remove", "shop"}).status, 0);
  EXPECT_EQ(room({"status", "shop"}).status, 64);
}

TEST_F(RoomProgram, VerifyShowsTheDrawAndFindsWhatIsWrong) {
  const auto store = open(patient_url());
  const Ran made = room({"create", "shop", "--opens", "2199-01-01T00:00Z"});
  ASSERT_EQ(made.status, 0) << made.output;
  auto before = room({"verify", "shop"}).json();
  EXPECT_EQ(before.at("seed"), "");
  EXPECT_EQ(room({"verify", "shop", "1"}).status, 64) << "nothing is drawn yet";
  auto shop = *WaitingRoom::load(*store, keys_, "shop").get();
  const auto ann = shop.enter("ann").get();
  const auto bob = shop.enter("bob").get();
  store->run({"HSET", "{shop}:room", "opens", "1"}).get();  // and it is 2199
  const auto place = shop.state(ann.ticket, "ann").get().value();
  const Ran verified = room({"verify", "shop", "1", "2"});
  EXPECT_EQ(verified.status, 0) << verified.output;
  const auto found = verified.json();
  EXPECT_EQ(found.at("commitment"), made.json().at("commitment"));
  EXPECT_EQ(found.at("seed").get<std::string>().size(), 64U);
  EXPECT_EQ(found.at("checked"), 1);
  EXPECT_EQ(found.at("positions").at("1"), place.position);
  EXPECT_EQ(found.at("positions").at("2"), 3 - place.position);
  store->run({"HSET", "{shop}:visitors", "ann", "1:9"}).get();
  EXPECT_EQ(room({"verify", "shop"}).status, 1);
}

}  // namespace
}  // namespace sluice::test
