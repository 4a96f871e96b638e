/// A crowd waits in front of a sale, fairly.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/expected.hpp"
#include "sluice/store.hpp"
#include "sluice/token.hpp"

namespace sluice {

struct WaitingRoomDefinition {
  /// 1 to 128 bytes without braces.
  std::string name;
  /// How many are let in in any window of `interval`, 1 to 50,000.
  std::int64_t rate = 1;
  /// 1 ms to 1 day.
  std::chrono::milliseconds interval = std::chrono::seconds{1};
  /// How many are inside at a time, 1 to 1,000,000.
  std::int64_t inside = 100;
  /// A visitor who is inside, or whose turn it is, and of whom nothing is heard for so long, has
  /// left. Longer is kinder to a phone in a tunnel, shorter fills the shop sooner. 1 s to 1 day.
  std::chrono::milliseconds hold = std::chrono::minutes{2};
  /// How long a visitor is inside at most, however often he asks: then he has left, and enter()
  /// gives him a place at the end. Longer lets slow buyers finish, shorter lets more of those who
  /// wait have a turn. 1 s to 30 days.
  std::chrono::milliseconds stay = std::chrono::minutes{10};
  /// Until then all who come are enrolled, and at that moment of the store's clock drawn. Empty:
  /// there is no draw, first come, first served.
  std::optional<WallTime> opens_at = {};

  friend bool operator==(const WaitingRoomDefinition&, const WaitingRoomDefinition&) = default;
};

/// Each visitor is in exactly one of these.
enum class PlaceState {
  enrolled,  ///< came before the opening, and will be drawn
  waiting,   ///< has a position
  inside,
  left,  ///< has no place: left, was not heard of, was inside for the longest stay; enter() again
};
std::string_view to_string(PlaceState state) noexcept;

/// How a visitor stands.
struct RoomPlace {
  PlaceState state = PlaceState::left;
  /// The number of his arrival, from 1; it stands in his ticket.
  std::int64_t number = 0;
  /// Where he stands since the opening, from 1; 0 while he is enrolled. It never changes.
  std::int64_t position = 0;
  /// Places before him that are not done: no fewer than there are people, since it shows only in
  /// its turn that a visitor has gone without a word.
  std::int64_t before = 0;
  /// When his turn comes, by how fast the room went in the last half minute. While enrolled, the
  /// time to the opening. Empty: nobody can tell (paused, sold out, or nobody goes in).
  std::optional<std::chrono::milliseconds> eta = {};
  /// Ask again then, not before. It has jitter, so that a crowd does not come back in step; it is
  /// brief near the front, and half of `hold` at most, but before the opening.
  std::chrono::milliseconds poll_after{};
  /// While inside: by the store's clock he has left then, unless he is heard of before. Never
  /// after `stay_until`.
  std::optional<WallTime> inside_until = {};
  /// While inside: by the store's clock he has left then, though he is heard of. Empty: an older
  /// version has made the room, and no create() has given it a longest stay since.
  std::optional<WallTime> stay_until = {};
  /// What is left to sell, if the room was told. With 0 nobody is let in.
  std::optional<std::int64_t> units_left = {};
  bool paused = false;
  bool closed = false;

  friend bool operator==(const RoomPlace&, const RoomPlace&) = default;
};

/// A place, and the ticket that proves whose it is.
struct RoomEntry {
  RoomPlace place;
  std::string ticket;
};

/// What is published of the draw. Before the opening that is `commitment` alone; the seed is shown
/// from then on, and with it everybody can reckon every position.
struct RoomDraw {
  std::string commitment;   ///< SHA-256 of the seed, in hex
  std::string seed = {};    ///< 32 bytes in hex; empty before the opening
  std::int64_t places = 0;  ///< how many were drawn: the places 1 to `places`

  /// The seed is the one that was promised.
  bool keeps_promise() const;
  /// Where the draw puts a place. Places above `places` came later and are where they are.
  /// Throws Error (bad_argument): no such place, or before the opening.
  std::int64_t position_of(std::int64_t place) const;

  friend bool operator==(const RoomDraw&, const RoomDraw&) = default;
};

struct WaitingRoomStatus {
  std::int64_t rate = 0;
  std::chrono::milliseconds interval{};
  std::int64_t inside_limit = 0;
  std::chrono::milliseconds hold{};
  std::optional<std::chrono::milliseconds> stay = {};  ///< empty: there is no longest stay
  std::optional<WallTime> opens_at = {};
  std::int64_t enrolled = 0;  ///< places before the opening; 0 after it
  std::int64_t waiting = 0;   ///< places behind the front; of some the visitors have gone
  std::int64_t called = 0;    ///< have their turn, and have not come yet
  std::int64_t inside = 0;
  std::int64_t let_in = 0;  ///< since the room was made
  /// Lost their place, inside or before: nothing was heard of them, or their stay was over.
  std::int64_t gone = 0;
  std::optional<std::int64_t> units_left = {};
  bool open = false;  ///< the opening has passed
  bool paused = false;
  bool closed = false;
};

/// What verify() found.
struct RoomDrawAudit {
  RoomDraw draw;
  std::int64_t checked = 0;  ///< visitors whose position was compared with the draw
  std::int64_t wrong = 0;    ///< of these, have another position than they were drawn
  bool is_right() const { return wrong == 0 && (draw.seed.empty() || draw.keeps_promise()); }
};

struct WaitingRoomOptions {
  /// How long a ticket is good. A visitor whose ticket is over asks for another by enter(), and has
  /// his place still. 1 min to 30 days.
  std::chrono::milliseconds ticket_lifetime = std::chrono::days{1};
};

/// A waiting room: before the opening all who come are enrolled, then drawn at random, then it is
/// first come, first served; so many are let in a second, and so many are inside. The room drives
/// itself by the questions of those who wait: there is no process that must live.
///
/// Guarantee: by the store's clock at most `rate` are let in in any window of `interval`,
///   wherever it begins, also when the rate changes; let in is who is told so for the first
///   time. At most `inside` are inside or have their turn. A visitor has one place, however
///   often, from however many windows he comes, and a repeat after a lost reply changes
///   nothing. Turns come in the order of the positions; a place of which nothing was heard for
///   `hold` holds up nobody longer than that, and a visitor who is inside nobody longer than
///   `stay`. The draw follows from the seed that was promised and the number of those who were
///   drawn: nobody has a better place by coming earlier, or by another name. A question costs
///   the same with a million waiting as with ten, and a waiter some 100 bytes. The tests that
///   hold it: docs/waiting_room.md#guarantee.
/// Not guaranteed: that one person is one visitor: whose id it is, the caller must know. That the
///   visitors come in exactly in the order of their turns: who has his turn comes with his next
///   question. That nobody knows the draw: who may read the store finds the seed, and learns where
///   he will be once nobody else comes. After a failover that lost the last second: those who came
///   in it have no place there (`left`), and get one at the end; visitors that were let in may be
///   let in once more, so that up to twice the rate comes within one interval; pauses and changes
///   of that second are undone. Who had his place before keeps it. A lost opening is drawn again,
///   and its positions are others where the number of places is. That a clock of the
///   server which jumps ahead ends no hold.
/// Threads: any. The Store must outlive the room, the room its Tasks.
/// In Redis: hash {NAME}:room (definition, counters), hash {NAME}:visitors (visitor: place and
///   position), sorted sets {NAME}:called and {NAME}:inside (position: until when), strings
///   {NAME}:heard (4 bytes a position) and {NAME}:entries (8 bytes for each of the last entries, up
///   to 512 KB). No TTL; remove() deletes them. Each verb is one round trip, the first question
///   after the draw two.
///
///     auto room = WaitingRoom::create(*store, keys, {.name = "maotai", .rate = 50}).get();
///     auto entry = room.enter("ann").get();                  // at her first request
///     auto place = room.state(entry.ticket, "ann").get();    // at each poll
///     if (place && place->state == PlaceState::inside) sell();
class WaitingRoom {
 public:
  static constexpr std::int64_t most_rate = 50'000;
  static constexpr std::int64_t most_inside = 1'000'000;

  /// Makes the room, or joins it where it was made with the same definition, whatever set_rate()
  /// and set_inside() have changed since. A room that an older version has made is given `stay`;
  /// for those inside it begins then. Throws Error: bad_argument (a field out of range; says
  /// which), config_mismatch (made otherwise; says how), wrong_type (one of its keys is of another
  /// type; keys of these types are taken for what a room left that was lost, and are deleted).
  static Task<WaitingRoom> create(Store& store, TokenKeys keys, WaitingRoomDefinition definition,
                                  WaitingRoomOptions options = {});
  /// Empty: the store knows no such room.
  static Task<std::optional<WaitingRoom>> load(Store& store, TokenKeys keys, std::string name,
                                               WaitingRoomOptions options = {});

  ~WaitingRoom();
  WaitingRoom(WaitingRoom&&) noexcept;
  WaitingRoom& operator=(WaitingRoom&&) noexcept;

  const std::string& name() const noexcept;

  // Of visitors. Each throws Error: server (the room was removed, or the store has lost it),
  // corrupt (what no room writes), and what the store throws; after any of them ask again.

  /// A place for a visitor, at the end, unless he has one; and a ticket for it. Where nobody waits
  /// he is inside at once. In a closed room there are no new places (`left`, no ticket). Throws
  /// Error (bad_argument): an id that is not 1 to 128 bytes.
  Task<RoomEntry> enter(std::string visitor);
  /// How the holder of a ticket stands, and that he is still there; lets him in when it is his
  /// turn. `visitor` is who asks: another's ticket is refused. A ticket ends by the clock of this
  /// machine, and is looked at before the store is asked.
  Task<Expected<RoomPlace, TokenRefusal>> state(std::string ticket, std::string visitor);
  /// Gives the place up. Value: how he stood. A late copy takes no later place from him.
  Task<Expected<PlaceState, TokenRefusal>> leave(std::string ticket, std::string visitor);

  // Of the owner. They throw as those of visitors. After an effect that is unknown a change may
  // come late, over one that was made since: look at status().

  Task<WaitingRoomStatus> status();
  /// Throws Error (bad_argument) out of the ranges of WaitingRoomDefinition. A lower rate holds for
  /// the window that has begun, too; of a lower number inside nobody is sent out.
  Task<void> set_rate(std::int64_t rate, std::chrono::milliseconds interval);
  Task<void> set_inside(std::int64_t inside);
  /// Nobody is let in until resume(). Who waits goes on asking, and keeps his place.
  Task<void> pause();
  Task<void> resume();
  /// What is left to sell. With 0 nobody is let in, and those who wait see it, until it is more
  /// again; empty: not told any more. Throws Error (bad_argument): negative.
  Task<void> set_units_left(std::optional<std::int64_t> units);
  /// Nobody comes or is let in any more; those inside stay. There is no way back.
  Task<void> close();
  /// Deletes the room. False: there was none.
  Task<bool> remove();

  /// What is published of the draw.
  Task<RoomDraw> draw();
  /// Compares the positions of all visitors with the draw, a thousand at a time. O(visitors).
  Task<RoomDrawAudit> verify();

 private:
  class Impl;
  explicit WaitingRoom(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
