#include "sluice/waiting_room.hpp"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "base/base64.hpp"
#include "base/integer.hpp"
#include "base/random.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"
#include "room/answer.hpp"
#include "room/definition.hpp"
#include "room/draw.hpp"
#include "room/room.lua.hpp"
#include "sluice/error.hpp"

namespace sluice {

using room::repeatable;
using std::chrono::milliseconds;

namespace {

constexpr std::string_view place_claim = "place";

/// Empty: it is no hex.
std::string bytes_of_hex(std::string_view text) {
  std::string bytes;
  for (; text.size() >= 2; text.remove_prefix(2)) {
    const auto byte = parse_integer<unsigned>(text.substr(0, 2), 16);
    if (!byte) return {};
    bytes += static_cast<char>(*byte);
  }
  return text.empty() ? bytes : std::string{};
}

std::string text_of(const std::optional<WallTime>& instant) {
  return instant ? fmt::to_string(instant->time_since_epoch().count()) : std::string{};
}

}  // namespace

class WaitingRoom::Impl {
 public:
  Impl(Store& store, TokenKeys keys, std::string name, WaitingRoomOptions options)
      : store_(store),
        name_(std::move(name)),
        audience_("room:" + name_),
        keys_(name_),
        tokens_(std::move(keys)),
        options_(options) {}

  const std::string& name() const noexcept { return name_; }

  Task<void> make(WaitingRoomDefinition wanted) {
    const std::string seed = random_hex_128() + random_hex_128();
    const std::string commitment = hex_of(sha256(bytes_of_hex(seed)));
    const std::string opens = text_of(wanted.opens_at);
    const std::string rate = fmt::to_string(wanted.rate);
    const std::string interval = fmt::to_string(wanted.interval.count());
    const std::string inside = fmt::to_string(wanted.inside);
    const std::string hold = fmt::to_string(wanted.hold.count());
    const std::string stay = fmt::to_string(wanted.stay.count());
    auto asked = run(scripts::room_create,
                     {seed, commitment, opens, rate, interval, inside, hold, stay}, once);
    const Value reply = co_await asked;
    const auto there = room::definition_of(name_, reply);
    if (!there)
      throw Error{Errc::corrupt,
                  fmt::format("waiting room '{}': '{}' has no definition", name_, keys_.all[0])};
    const auto other = room::difference(*there, wanted);
    if (!other.empty())
      throw Error{Errc::config_mismatch,
                  fmt::format("waiting room '{}' is in {} with another definition: {}; load it, or "
                              "remove it first",
                              name_, store_.describe(), other)};
  }

  Task<bool> is_there() {
    auto asked = run(scripts::room_load, {});
    const Value reply = co_await asked;
    co_return room::definition_of(name_, reply).has_value();
  }

  Task<RoomEntry> enter(std::string visitor) {
    room::check_visitor(name_, visitor);
    auto asked = ask(scripts::room_enter, visitor);
    const Value reply = co_await asked;
    RoomEntry entry{.place = room::told(room::answer_of(reply))};
    if (entry.place.state != PlaceState::left) entry.ticket = ticket_of(visitor, entry.place);
    co_return entry;
  }

  Task<Expected<RoomPlace, TokenRefusal>> state(std::string ticket, std::string visitor) {
    const auto claims = read(ticket, visitor);
    if (!claims) co_return Unexpected{claims.error()};
    auto asked = ask(scripts::room_state, visitor);
    const Value reply = co_await asked;
    co_return room::told(room::answer_of(reply));
  }

  Task<Expected<PlaceState, TokenRefusal>> leave(std::string ticket, std::string visitor) {
    const auto claims = read(ticket, visitor);
    if (!claims) co_return Unexpected{claims.error()};
    const auto place = claims->more.find(place_claim);
    auto asked = ask(scripts::room_leave, visitor,
                     place == claims->more.end() ? std::string{} : place->second);
    const Value reply = co_await asked;
    const auto& was = reply.as_items().at(0).as_text();
    for (const auto state : {PlaceState::enrolled, PlaceState::waiting, PlaceState::inside})
      if (was == to_string(state)) co_return state;
    co_return PlaceState::left;
  }

  Task<WaitingRoomStatus> status() {
    auto asked = run(scripts::room_status, {});
    const Value reply = co_await asked;
    const auto& parts = checked(reply).as_items();
    const auto number = [&parts](std::size_t at) { return parts.at(at).as_integer(); };
    WaitingRoomStatus status;
    status.rate = number(0);
    status.interval = milliseconds{number(1)};
    status.inside_limit = number(2);
    status.hold = milliseconds{number(3)};
    if (number(4) > 0) status.opens_at = WallTime{std::chrono::microseconds{number(4)}};
    status.open = number(12) == 1;
    (status.open ? status.waiting : status.enrolled) = number(5) - number(6);
    status.called = number(7);
    status.inside = number(8);
    status.let_in = number(9);
    status.gone = number(10);
    if (number(11) >= 0) status.units_left = number(11);
    status.paused = number(13) == 1;
    status.closed = number(14) == 1;
    if (number(15) > 0) status.stay = milliseconds{number(15)};
    co_return status;
  }

  /// Pairs of a field and its value.
  Task<void> change(std::vector<std::string> fields) {
    const std::vector<std::string_view> words(fields.begin(), fields.end());
    auto asked = run(scripts::room_change, words, once);
    const Value reply = co_await asked;
    checked(reply);
  }

  Task<bool> remove() {
    auto asked = run(scripts::room_remove, {}, once);
    const Value reply = co_await asked;
    co_return reply.as_integer() == 1;
  }

  Task<RoomDraw> draw() {
    auto asked = run(scripts::room_draw, {});
    const Value reply = co_await asked;
    const auto& parts = checked(reply).as_items();
    RoomDraw draw;
    draw.commitment = parts.at(0).as_text();
    draw.seed = parts.at(1).as_text();
    draw.places = parts.at(2).as_integer();
    co_return draw;
  }

  Task<RoomDrawAudit> verify() {
    constexpr std::string_view page = "1000";
    auto drawing = draw();
    RoomDrawAudit audit;
    audit.draw = co_await drawing;
    if (audit.draw.seed.empty()) co_return audit;
    std::string cursor = "0";
    do {
      auto asked = store_.run({"HSCAN", keys_.visitors(), cursor, "COUNT", page}, repeatable);
      const Value reply = co_await asked;
      cursor = reply.as_items().at(0).as_text();
      const auto& pairs = reply.as_items().at(1).as_items();
      for (std::size_t i = 1; i < pairs.size(); i += 2) compare(pairs[i].as_text(), audit);
    } while (cursor != "0");
    co_return audit;
  }

 private:
  /// Of calls of the owner: a late copy would undo a later one.
  static constexpr CallOptions once{};

  Task<Value> run(const Script& script, std::vector<std::string_view> args,
                  CallOptions options = repeatable) {
    std::array<std::string_view, 6> keys;
    std::ranges::copy(keys_.all, keys.begin());
    return store_.run(script, Words{keys}, Words{args}, options);
  }

  /// Asks for a visitor, and reckons his position where the script wants it.
  Task<Value> ask(const Script& script, std::string_view visitor, std::string last = {}) {
    std::string draw;
    std::string position;
    for (int left = 3; left > 0; --left) {
      auto asked = run(script, {visitor, draw, position, last});
      Value reply = co_await asked;
      const auto& parts = checked(reply).as_items();
      if (parts.at(0).as_text() != "draw") co_return reply;
      const auto place = parts.at(1).as_integer();
      const auto places = parts.at(2).as_integer();
      draw = fmt::format("{}:{}", places, place);
      position =
          fmt::to_string(room::drawn_position(bytes_of_hex(parts.at(3).as_text()), places, place));
    }
    throw Error{Errc::server, fmt::format("waiting room '{}' in {} is drawn again and again", name_,
                                          store_.describe())};
  }

  /// Throws Error where the script found no room, or a damaged one.
  const Value& checked(const Value& reply) const {
    const auto& parts = reply.as_items();
    if (!parts.at(0).is_text()) return reply;
    const auto& word = parts.at(0).as_text();
    if (word == "none")
      throw Error{Errc::server, fmt::format("waiting room '{}' is not in {} (any more)", name_,
                                            store_.describe())};
    if (word == "damaged")
      throw Error{Errc::corrupt,
                  fmt::format("waiting room '{}' in {}: its field {} is damaged: '{}'", name_,
                              store_.describe(), parts.at(1).as_text(), parts.at(2).as_text())};
    return reply;
  }

  std::string ticket_of(const std::string& visitor, const RoomPlace& place) {
    TokenClaims claims;
    claims.subject = visitor;
    claims.audience = audience_;
    claims.expires = store_.clock().wall() + options_.ticket_lifetime;
    claims.more.emplace(place_claim, fmt::to_string(place.number));
    return tokens_.sign(claims);
  }

  Expected<TokenClaims, TokenRefusal> read(const std::string& ticket, const std::string& visitor) {
    return tokens_.check(ticket, audience_, visitor, store_.clock().wall());
  }

  /// `text`: "place" or "place:position".
  static void compare(std::string_view text, RoomDrawAudit& audit) {
    const auto colon = text.find(':');
    if (colon == text.npos) return;
    const auto place = parse_integer<std::int64_t>(text.substr(0, colon));
    const auto position = parse_integer<std::int64_t>(text.substr(colon + 1));
    ++audit.checked;
    if (!place || !position || *place < 1 || *place > audit.draw.places ||
        audit.draw.position_of(*place) != *position)
      ++audit.wrong;
  }

  Store& store_;
  const std::string name_;
  const std::string audience_;
  const room::RoomKeys keys_;
  const TokenKeys tokens_;
  const WaitingRoomOptions options_;
};

bool RoomDraw::keeps_promise() const {
  return !seed.empty() && hex_of(sha256(bytes_of_hex(seed))) == commitment;
}

std::int64_t RoomDraw::position_of(std::int64_t place) const {
  if (seed.empty()) throw Error{Errc::bad_argument, "nothing is drawn before the opening"};
  if (place < 1) throw Error{Errc::bad_argument, fmt::format("{} is no place", place)};
  return place > places ? place : room::drawn_position(bytes_of_hex(seed), places, place);
}

Task<WaitingRoom> WaitingRoom::create(Store& store, TokenKeys keys,
                                      WaitingRoomDefinition definition,
                                      WaitingRoomOptions options) {
  room::check(definition);
  room::check(definition.name, options);
  auto impl = std::make_unique<Impl>(store, std::move(keys), definition.name, options);
  auto making = impl->make(std::move(definition));
  co_await making;
  co_return WaitingRoom{std::move(impl)};
}

Task<std::optional<WaitingRoom>> WaitingRoom::load(Store& store, TokenKeys keys, std::string name,
                                                   WaitingRoomOptions options) {
  room::check_name(name);
  room::check(name, options);
  auto impl = std::make_unique<Impl>(store, std::move(keys), std::move(name), options);
  auto looking = impl->is_there();
  std::optional<WaitingRoom> found;
  if (const bool there = co_await looking; there) found = WaitingRoom{std::move(impl)};
  co_return found;
}

WaitingRoom::WaitingRoom(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
WaitingRoom::~WaitingRoom() = default;
WaitingRoom::WaitingRoom(WaitingRoom&&) noexcept = default;
WaitingRoom& WaitingRoom::operator=(WaitingRoom&&) noexcept = default;

const std::string& WaitingRoom::name() const noexcept { return impl_->name(); }

Task<RoomEntry> WaitingRoom::enter(std::string visitor) { return impl_->enter(std::move(visitor)); }

Task<Expected<RoomPlace, TokenRefusal>> WaitingRoom::state(std::string ticket,
                                                           std::string visitor) {
  return impl_->state(std::move(ticket), std::move(visitor));
}

Task<Expected<PlaceState, TokenRefusal>> WaitingRoom::leave(std::string ticket,
                                                            std::string visitor) {
  return impl_->leave(std::move(ticket), std::move(visitor));
}

Task<WaitingRoomStatus> WaitingRoom::status() { return impl_->status(); }

Task<void> WaitingRoom::set_rate(std::int64_t rate, milliseconds interval) {
  room::check_rate(name(), rate, interval);
  return impl_->change(
      {"rate", fmt::to_string(rate), "interval", fmt::to_string(interval.count())});
}

Task<void> WaitingRoom::set_inside(std::int64_t inside) {
  room::check_inside(name(), inside);
  return impl_->change({"limit", fmt::to_string(inside)});
}

Task<void> WaitingRoom::pause() { return impl_->change({"paused", "1"}); }
Task<void> WaitingRoom::resume() { return impl_->change({"paused", ""}); }

Task<void> WaitingRoom::set_units_left(std::optional<std::int64_t> units) {
  if (units && *units < 0)
    throw Error{Errc::bad_argument,
                fmt::format("waiting room '{}': {} units cannot be left", name(), *units)};
  return impl_->change({"units", units ? fmt::to_string(*units) : std::string{}});
}

Task<void> WaitingRoom::close() { return impl_->change({"closed", "1"}); }
Task<bool> WaitingRoom::remove() { return impl_->remove(); }
Task<RoomDraw> WaitingRoom::draw() { return impl_->draw(); }
Task<RoomDrawAudit> WaitingRoom::verify() { return impl_->verify(); }

std::string_view to_string(PlaceState state) noexcept {
  constexpr std::array<std::string_view, 4> names{"enrolled", "waiting", "inside", "left"};
  return names[static_cast<std::size_t>(state)];
}

}  // namespace sluice
