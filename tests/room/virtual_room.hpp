/// A waiting room on virtual time, and visitors who ask when they are told to.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <queue>
#include <string>
#include <vector>

#include "engine/embedded_store.hpp"
#include "sluice/error.hpp"
#include "sluice/waiting_room.hpp"
#include "support/faulty_store.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

inline TokenKeys room_keys() { return TokenKeys{{{"k1", std::string(32, 'k')}}}; }

/// The most moments in any half-open window of the length of `interval`.
inline std::size_t fullest_window(const std::vector<WallTime>& moments,
                                  std::chrono::microseconds interval) {
  std::size_t most = 0;
  for (std::size_t first = 0, last = 0; last < moments.size(); ++last) {
    while (moments[last] - moments[first] >= interval) ++first;
    most = std::max(most, last - first + 1);
  }
  return most;
}

class VirtualRoom : public testing::Test {
 protected:
  WaitingRoom make(WaitingRoomDefinition definition) {
    return WaitingRoom::create(line_, room_keys(), std::move(definition)).get();
  }

  VirtualClock clock_;
  std::unique_ptr<Store> store_ = engine::open_embedded({.clock = &clock_});
  FaultyStore line_{*store_};
};

/// Visitors of one room, each with a page that asks when it is told to.
class Crowd {
 public:
  struct Visitor {
    std::string id;
    std::string ticket = {};
    RoomPlace place = {};
    WallTime came = {};
    std::optional<WallTime> let_in = {};
    std::optional<WallTime> gone = {};  ///< closes the page without a word at that time
    bool stays =
        false;      ///< goes on asking inside, and comes again; else leaves as soon as he is in
    int turns = 0;  ///< how often he was let in
  };

  Crowd(VirtualClock& clock, WaitingRoom& room) : clock_(clock), room_(room) {}

  Visitor& come(std::string id, bool stays = false, std::optional<WallTime> gone = {}) {
    auto& visitor = *visitors_.emplace_back(std::make_unique<Visitor>());
    visitor.id = std::move(id);
    visitor.stays = stays;
    visitor.gone = gone;
    visitor.came = clock_.wall();
    auto entry = room_.enter(visitor.id).get();
    visitor.ticket = entry.ticket;
    take(visitor, entry.place);
    return visitor;
  }
  void come(int many) {
    for (int i = 0; i < many; ++i) come(fmt::format("visitor-{}", visitors_.size()));
  }
  /// Lets time pass; they ask when it is time.
  void pass(std::chrono::microseconds time) {
    const auto end = clock_.wall() + time;
    while (!questions_.empty() && questions_.top().when <= end) {
      const auto next = questions_.top();
      questions_.pop();
      if (next.when > clock_.wall()) clock_.advance(next.when - clock_.wall());
      ask(*next.visitor);
    }
    if (end > clock_.wall()) clock_.advance(end - clock_.wall());
  }

  const std::vector<std::unique_ptr<Visitor>>& visitors() const { return visitors_; }
  std::size_t questions() const { return asked_; }
  /// When visitors were let in, in that order.
  std::vector<WallTime> entries() const {
    std::vector<WallTime> moments;
    for (const auto* visitor : in_order()) moments.push_back(*visitor->let_in);
    return moments;
  }
  /// Those who were let in, in the order of that.
  const std::vector<Visitor*>& in_order() const { return let_in_; }

 private:
  struct Question {
    WallTime when;
    std::size_t number;
    Visitor* visitor;
    bool operator<(const Question& other) const {
      return std::pair{other.when, other.number} < std::pair{when, number};
    }
  };

  void ask(Visitor& visitor) {
    if (visitor.gone && *visitor.gone <= clock_.wall()) return;
    ++asked_;
    const auto place = room_.state(visitor.ticket, visitor.id).get();
    ASSERT_TRUE(place);
    take(visitor, *place);
  }
  void take(Visitor& visitor, const RoomPlace& place) {
    if (place.state == PlaceState::left && visitor.stays) {
      auto entry = room_.enter(visitor.id).get();
      visitor.ticket = entry.ticket;
      visitor.place = {};
      return take(visitor, entry.place);
    }
    if (place.state == PlaceState::inside && visitor.place.state != PlaceState::inside)
      ++visitor.turns;
    visitor.place = place;
    if (place.state == PlaceState::inside && !visitor.let_in) {
      visitor.let_in = clock_.wall();
      let_in_.push_back(&visitor);
      if (!visitor.stays) {
        EXPECT_EQ(room_.leave(visitor.ticket, visitor.id).get().value(), PlaceState::inside);
        return;
      }
    }
    if (place.state != PlaceState::left)
      questions_.push({clock_.wall() + place.poll_after, number_++, &visitor});
  }

  VirtualClock& clock_;
  WaitingRoom& room_;
  std::vector<std::unique_ptr<Visitor>> visitors_;
  std::vector<Visitor*> let_in_;
  std::priority_queue<Question> questions_;
  std::size_t number_ = 0;
  std::size_t asked_ = 0;
};

}  // namespace sluice::test
