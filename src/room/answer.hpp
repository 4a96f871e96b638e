/// What the scripts of a room reply about a visitor, and what he is told: how long it takes, and
/// when to ask again. No I/O.
#pragma once

#include "sluice/waiting_room.hpp"

namespace sluice::room {

/// A reply of enter and state.
struct Answer {
  RoomPlace place;
  std::chrono::microseconds rate_wait{};  ///< his turn has come; until the rate lets him in
  std::chrono::microseconds to_opening{};
  std::int64_t front = 0;
  std::int64_t places = 0;
  /// How far the front has gone in how long.
  std::chrono::microseconds measured_for{};
  std::int64_t measured = 0;
  std::int64_t rate = 1;
  std::chrono::milliseconds interval{};
  std::chrono::milliseconds hold{};
};

Answer answer_of(const Value& reply);

/// When the turn of one who waits comes; empty: nobody can tell.
std::optional<std::chrono::milliseconds> eta_of(const Answer& answer);

/// Between what times he should ask again; any moment of it is right.
struct PollWindow {
  std::chrono::milliseconds from{};
  std::chrono::milliseconds length{};
};
PollWindow poll_window(const Answer& answer);

/// The place, with the time to come and a moment of that window by chance.
RoomPlace told(const Answer& answer);

}  // namespace sluice::room
