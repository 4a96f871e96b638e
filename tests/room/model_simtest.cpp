// Random histories against a model that knows no store: each visitor is in exactly one state, and
// goes from one to the next only as he may.
#include <map>

#include "base/random.hpp"
#include "room/virtual_room.hpp"
#include "support/sanitized.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

/// What is known from outside of a room in which everything is asked over a bad line.
class RoomModel {
 public:
  RoomModel(VirtualClock& clock, test::FaultyStore& line, const WaitingRoomDefinition& definition)
      : clock_(clock),
        definition_(definition),
        room_(WaitingRoom::create(line, test::room_keys(), definition).get()) {}

  void enter(const std::string& name) {
    auto entry = room_.enter(name).get();
    auto& visitor = visitors_[name];
    if (closed_ && entry.place.state == PlaceState::left) {
      EXPECT_EQ(entry.ticket, "");
      return;
    }
    ASSERT_NE(entry.place.state, PlaceState::left);
    const bool had_place = visitor.place.state != PlaceState::left;
    if (entry.place.number != visitor.place.number) {
      EXPECT_FALSE(closed_);
      // He had none, or lost it in silence.
      EXPECT_TRUE(!had_place || is_silent(visitor)) << name;
      EXPECT_GT(entry.place.number, last_number_) << "places are given once";
      last_number_ = entry.place.number;
      visitor = {};
    }
    visitor.ticket = entry.ticket;
    see(name, visitor, entry.place);
  }

  void ask(const std::string& name) {
    auto& visitor = visitors_[name];
    if (visitor.ticket.empty()) return;
    const auto place = room_.state(visitor.ticket, name).get();
    ASSERT_TRUE(place);
    see(name, visitor, *place);
  }

  void leave(const std::string& name) {
    auto& visitor = visitors_[name];
    if (visitor.ticket.empty()) return;
    ASSERT_TRUE(room_.leave(visitor.ticket, name).get());
    visitor.place.state = PlaceState::left;
    visitor.seen_inside = false;
    ask(name);
    EXPECT_EQ(visitor.place.state, PlaceState::left);
  }

  void change() {
    switch (random_below(6)) {
      case 0: room_.pause().get(); break;
      case 1:
      case 2: room_.resume().get(); break;
      case 3:
        rate_ = 1 + static_cast<std::int64_t>(random_below(8));
        room_.set_rate(rate_, 1s).get();
        break;
      case 4:
        inside_ = 1 + static_cast<std::int64_t>(random_below(8));
        room_.set_inside(inside_).get();
        break;
      default: room_.set_units_left(random_below(4)).get(); break;
    }
  }
  void close() {
    room_.close().get();
    closed_ = true;
  }

  void check() {
    const auto status = room_.status().get();
    std::int64_t inside = 0;
    for (auto& [name, visitor] : visitors_)
      if (visitor.place.state == PlaceState::inside && !is_silent(visitor)) ++inside;
    EXPECT_EQ(status.inside, inside);
    EXPECT_LE(inside, most_inside_);
    const auto entries = static_cast<std::size_t>(status.let_in);
    EXPECT_EQ(entries, moments_.size());
    EXPECT_EQ(status.stay, definition_.stay);
    EXPECT_LE(test::fullest_window(moments_, 1s), 8U);
  }

  bool opens_soon() const { return definition_.opens_at.has_value(); }

 private:
  struct Visitor {
    std::string ticket = {};
    RoomPlace place = {};
    WallTime heard = {};
    bool seen_inside = false;
    WallTime stay_until = {};
  };

  /// Of those inside also: the stay is over.
  bool is_silent(const Visitor& visitor) const {
    return clock_.wall() >= visitor.heard + definition_.hold ||
           (visitor.seen_inside && clock_.wall() >= visitor.stay_until);
  }

  void see(const std::string& name, Visitor& visitor, const RoomPlace& now) {
    const auto was = visitor.place;
    const bool silent = is_silent(visitor);
    if (was.number != 0 && now.state != PlaceState::left) {
      EXPECT_EQ(now.number, was.number) << name;
      EXPECT_TRUE(was.position == 0 || now.position == was.position) << name;
    }
    switch (now.state) {
      case PlaceState::enrolled:
        EXPECT_LT(clock_.wall(), *definition_.opens_at);
        EXPECT_TRUE(was.state == PlaceState::enrolled || was.number == 0) << name;
        break;
      case PlaceState::waiting:
        EXPECT_NE(was.state, PlaceState::inside) << name << " was put back";
        EXPECT_TRUE(now.position > 0 && now.before >= 0);
        EXPECT_TRUE(was.state != PlaceState::waiting || now.before <= was.before) << name;
        break;
      case PlaceState::inside:
        ASSERT_TRUE(now.stay_until) << name;
        EXPECT_EQ(*now.inside_until, std::min(clock_.wall() + definition_.hold, *now.stay_until));
        if (!visitor.seen_inside) {
          EXPECT_GE(*now.stay_until, clock_.wall() + definition_.stay) << name;
          EXPECT_LE(*now.stay_until, clock_.wall() + definition_.stay + 100ms) << name;
          visitor.stay_until = *now.stay_until;
          EXPECT_FALSE(now.paused || closed_ || now.units_left == 0) << name;
          moments_.push_back(clock_.wall());
        } else {
          EXPECT_FALSE(silent) << name << " was inside, and silent";
        }
        EXPECT_EQ(*now.stay_until, visitor.stay_until) << name;
        visitor.seen_inside = true;
        break;
      case PlaceState::left:
        EXPECT_TRUE(was.state == PlaceState::left || silent) << name << " lost his place";
        visitor.seen_inside = false;
        break;
    }
    most_inside_ = std::max(most_inside_, inside_);
    visitor.place = now;
    visitor.heard = clock_.wall();
  }

  VirtualClock& clock_;
  const WaitingRoomDefinition definition_;
  WaitingRoom room_;
  std::map<std::string, Visitor> visitors_;
  std::vector<WallTime> moments_;
  std::int64_t last_number_ = 0;
  std::int64_t rate_ = 3;
  std::int64_t inside_ = 4;
  std::int64_t most_inside_ = 8;
  bool closed_ = false;
};

class RoomHistory : public test::VirtualRoom {
 protected:
  void play(const WaitingRoomDefinition& definition, int steps) {
    RoomModel model{clock_, line_, definition};
    for (int step = 0; step < steps && !HasFailure(); ++step) {
      const auto name = fmt::format("v{}", random_below(30));
      switch (random_below(20)) {
        case 0:
        case 1: model.leave(name); break;
        case 2: model.change(); break;
        case 3:
        case 4:
        case 5: model.enter(name); break;
        case 6: model.check(); break;
        case 7: clock_.advance(std::chrono::milliseconds{random_below(4000)}); break;
        default: model.ask(name); clock_.advance(std::chrono::milliseconds{random_below(150)});
      }
    }
    model.close();
    for (int i = 0; i < 30; ++i) model.enter(fmt::format("v{}", i));
    model.check();
  }
};

constexpr int histories = test::rounds(20);

TEST_F(RoomHistory, EachVisitorIsInOneStateAndGoesOnAsHeMay) {
  for (int i = 0; i < histories && !HasFailure(); ++i)
    play({.name = fmt::format("shop{}", i), .rate = 3, .inside = 4, .hold = 5s, .stay = 7s}, 400);
}

TEST_F(RoomHistory, TheSameWithAnOpening) {
  for (int i = 0; i < histories && !HasFailure(); ++i)
    play({.name = fmt::format("shop{}", i),
          .rate = 3,
          .inside = 4,
          .hold = 5s,
          .stay = 7s,
          .opens_at = clock_.wall() + 10s},
         400);
}

TEST_F(RoomHistory, TheSameWhereRepliesAreLostAndRequestsDoubled) {
  line_.plan = [](std::string_view call) {
    // The room's owner is told of a lost reply, and asks again himself.
    if (call == "room/create" || call == "room/change") return test::Fault::none;
    switch (random_below(8)) {
      case 0: return test::Fault::reply_lost;
      case 1: return test::Fault::request_lost;
      case 2: return test::Fault::doubled;
      default: return test::Fault::none;
    }
  };
  for (int i = 0; i < histories && !HasFailure(); ++i)
    play({.name = fmt::format("shop{}", i),
          .rate = 3,
          .inside = 4,
          .hold = 5s,
          .stay = 7s,
          .opens_at = clock_.wall() + 10s},
         400);
}

}  // namespace
}  // namespace sluice
