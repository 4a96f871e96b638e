#include "room/answer.hpp"

#include <algorithm>

#include "base/random.hpp"
#include "sluice/error.hpp"

namespace sluice::room {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

/// Nobody who waits sleeps for longer, so that a page shows what is.
constexpr milliseconds longest_poll = 20s;
/// Of those who are nearly there.
constexpr milliseconds shortest_poll = 500ms;
/// Before an opening that is far away the page looks whether it still is.
constexpr milliseconds look_before_opening = 1min;
/// Questions a second that a room's store answers with ease: those who are drawn come back over as
/// long as that takes them.
constexpr std::int64_t questions_a_second = 2'000;
/// A speed is none before that time.
constexpr microseconds least_measure = 1s;

PlaceState state_in(std::string_view text) {
  for (const auto state : {PlaceState::enrolled, PlaceState::waiting, PlaceState::inside})
    if (text == to_string(state)) return state;
  return PlaceState::left;
}

using Milliseconds = std::chrono::duration<double, std::milli>;

/// He waits, and nothing but time holds him up.
bool can_go_in(const RoomPlace& place) noexcept {
  return place.state == PlaceState::waiting && !place.paused && !place.closed &&
         place.units_left != 0;
}

double turns_before(const Answer& answer) noexcept {
  return static_cast<double>(answer.place.before + 1);
}

/// When his turn comes, if the rate alone holds up those before him.
Milliseconds by_rate(const Answer& answer) noexcept {
  return turns_before(answer) / static_cast<double>(answer.rate) * Milliseconds{answer.interval};
}

/// Empty beyond a month: nobody can tell.
std::optional<milliseconds> whole(Milliseconds time) noexcept {
  if (time > std::chrono::days{30}) return std::nullopt;
  return std::chrono::ceil<milliseconds>(time);
}

}  // namespace

Answer answer_of(const Value& reply) {
  const auto& parts = reply.as_items();
  const auto number = [&parts](std::size_t at) { return parts.at(at).as_integer(); };
  Answer answer;
  auto& place = answer.place;
  place.state = state_in(parts.at(0).as_text());
  place.number = number(1);
  place.position = number(2);
  answer.front = number(3);
  answer.places = number(4);
  if (place.state == PlaceState::waiting)
    place.before = std::max<std::int64_t>(0, place.position - answer.front - 1);
  if (number(5) > 0) place.inside_until = WallTime{microseconds{number(5)}};
  answer.rate_wait = microseconds{number(6)};
  if (place.state == PlaceState::enrolled)
    answer.to_opening = microseconds{std::max<std::int64_t>(0, number(8) - number(7))};
  if (number(9) >= 0) place.units_left = number(9);
  place.paused = number(10) == 1;
  place.closed = number(11) == 1;
  answer.measured_for = microseconds{number(12)};
  answer.measured = number(13);
  answer.rate = std::max<std::int64_t>(1, number(14));
  answer.interval = milliseconds{number(15)};
  answer.hold = milliseconds{number(16)};
  if (number(17) > 0) place.stay_until = WallTime{microseconds{number(17)}};
  return answer;
}

std::optional<milliseconds> eta_of(const Answer& answer) {
  const auto& place = answer.place;
  if (place.state == PlaceState::enrolled)
    return std::chrono::ceil<milliseconds>(answer.to_opening);
  if (!can_go_in(place)) return std::nullopt;
  if (place.position <= answer.front) return std::chrono::ceil<milliseconds>(answer.rate_wait);
  if (answer.measured_for < least_measure) return whole(by_rate(answer));
  if (answer.measured <= 0) return std::nullopt;
  return whole(turns_before(answer) / static_cast<double>(answer.measured) *
               Milliseconds{answer.measured_for});
}

PollWindow poll_window(const Answer& answer) {
  const auto longest = std::min<milliseconds>(longest_poll, answer.hold / 2);
  const auto shortest = std::min<milliseconds>(shortest_poll, longest / 2);
  const auto& place = answer.place;
  if (place.state == PlaceState::enrolled) {
    const auto opens = std::chrono::ceil<milliseconds>(answer.to_opening);
    if (opens > look_before_opening) return {look_before_opening / 2, look_before_opening / 2};
    const milliseconds spread{answer.places * 1000 / questions_a_second};
    return {opens, std::clamp(spread, shortest, longest)};
  }
  auto most = longest;
  if (can_go_in(place)) {
    if (place.position <= answer.front)  // the rate alone holds him up
      return {std::min(std::chrono::ceil<milliseconds>(answer.rate_wait), longest / 2),
              shortest / 2};
    // By the rate, though the room may be slower: who is near the front is there when a slot is
    // free, and these questions are no more than some ten for each who is let in.
    most = std::clamp(std::chrono::duration_cast<milliseconds>(
                          std::min<Milliseconds>(by_rate(answer) / 2, longest)),
                      shortest, longest);
  }
  return {most - most / 3, most / 3};
}

RoomPlace told(const Answer& answer) {
  auto place = answer.place;
  place.eta = eta_of(answer);
  const auto window = poll_window(answer);
  const auto length = static_cast<std::uint64_t>(std::max<std::int64_t>(0, window.length.count()));
  place.poll_after =
      window.from + milliseconds{static_cast<std::int64_t>(random_below(length + 1))};
  return place;
}

}  // namespace sluice::room
