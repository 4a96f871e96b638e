// Histories of caches, filters, rooms, numbers and fences.
#include <fmt/format.h>

#include <map>
#include <vector>

#include "contract/late_line.hpp"
#include "server/ended_logins.hpp"
#include "sluice/cache_guard.hpp"
#include "sluice/fencing.hpp"
#include "sluice/id.hpp"
#include "sluice/number.hpp"
#include "sluice/shared_bloom_filter.hpp"
#include "sluice/waiting_room.hpp"
#include "support/comes_true.hpp"
#include "support/temp_dir.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;

// --- caches ---

using LateCache = CacheGuard<std::string>;

/// A guard, and the database behind it.
struct LateShop {
  explicit LateShop(LatePlay& what) : play(what) {}

  void get(std::string_view when) {
    const auto got = cache.get("k", [this] { return std::optional{row}; }).get();
    play.say(when, got.value_or("none"));
  }
  /// A load that takes so long that the row changes meanwhile, and another process says so.
  void get_slowly(std::string changed) {
    const auto got = cache
                         .get("k",
                              [&] {
                                const auto old = row;
                                play.say("loads");
                                row = changed;
                                other.invalidate("k").get();
                                play.say("invalidated by another process");
                                return std::optional{old};
                              })
                         .get();
    play.say("got by who asked before", got.value_or("none"));
  }
  void invalidate() {
    cache.invalidate("k").get();
    play.say("invalidated");
  }
  void put(std::string value) {
    row = value;
    cache.put("k", std::move(value)).get();
    play.say("put");
  }

  LatePlay& play;
  std::string row = "1";
  LateCache cache{play.store(), "cache", {.lease = 100ms, .longest_load = 0ms}};
  LateCache other{play.other(), "cache", {.lease = 100ms}};
};

void loads_and_invalidations(LatePlay& play) {
  LateShop shop{play};
  shop.get("first");
  shop.row = "2";
  shop.invalidate();
  shop.get("second");
  shop.row = "3";
  shop.invalidate();
  shop.get_slowly("4");
  shop.get("fourth");
  shop.row = "5";
  shop.cache.invalidate_twice("k", 1h).get();
  shop.get("fifth");
}

void puts(LatePlay& play) {
  LateShop shop{play};
  shop.put("1");
  shop.get("first");
  shop.put("2");
  shop.get("second");
  shop.row = "3";
  shop.invalidate();
  shop.get("third");
}

void loads_that_fail_or_find_nothing(LatePlay& play) {
  LateShop shop{play};
  try {
    (void)shop.cache.get("k", []() -> std::optional<std::string> { throw 1; }).get();
  } catch (int) {
    play.say("failed");
  }
  shop.get("first");
  shop.invalidate();
  const auto none = shop.cache.get("k", [] { return std::optional<std::string>{}; }).get();
  play.say("nothing", none.value_or("none"));
  shop.row = "2";
  shop.invalidate();
  shop.get("second");
}

void a_lease_is_renewed(LatePlay& play) {
  LateCache cache{play.store(), "cache", {.lease = 200ms}};
  const auto load = [&] {
    const auto before = play.store().calls()["cache/renew"];
    comes_true([&] { return play.store().calls()["cache/renew"] > before; });
    return std::optional<std::string>{"slow"};
  };
  play.say("first", cache.get("k", load).get().value_or("none"));
  cache.invalidate("k").get();
  play.say("invalidated");
  const auto now = cache.get("k", [] { return std::optional<std::string>{"new"}; }).get();
  play.say("second", now.value_or("none"));
}

void second_invalidations(LatePlay& play) {
  LateCache cache{play.store(), "cache"};
  std::string row = "1";
  const auto get = [&](std::string_view when) {
    play.say(when, cache.get("k", [&] { return std::optional{row}; }).get().value_or("none"));
  };
  get("first");
  row = "2";
  cache.invalidate_twice("k", 1ms).get();
  play.say("planned");
  comes_true([&] { return play.store().calls()["cache/done_again"] > 0; });
  get("second");
  row = "3";
  cache.invalidate("k").get();
  play.say("invalidated");
  get("third");
}

void many_keys(LatePlay& play) {
  LateShop shop{play};
  const std::vector<std::string> keys{"k", "l", "m"};
  const auto get = [&](std::string_view when) {
    const auto load = [&](const std::vector<std::string>& missing) {
      std::map<std::string, std::string> found;
      for (const auto& key : missing) found[key] = shop.row;
      return found;
    };
    std::string rows;
    for (const auto& each : shop.cache.get_all(keys, load).get()) rows += *each.get() + ' ';
    play.say(when, rows);
  };
  get("first");
  shop.row = "2";
  shop.cache.invalidate_all(keys).get();
  get("second");
  shop.row = "3";
  shop.cache.clear().get();
  get("third");
  shop.row = "4";
  for (const auto& key : keys) shop.cache.invalidate(key).get();
  get("fourth");
}

// --- filters ---

/// What a filter says of itself and of two keys.
void look_at(LatePlay& play, SharedBloomFilter& filter, std::string_view when) {
  if (!filter.exists().get()) return play.say(when, "none");
  const auto info = filter.info().get();
  play.say(when, fmt::format("{}, {}, {} keys, links {}{}", filter.contains("a").get(),
                             filter.contains("b").get(), info.keys, info.links.size(),
                             info.left ? ", ends" : ""));
}

constexpr SharedBloomSize small{.expected = 20};

void a_filter_is_made_and_removed(LatePlay& play) {
  SharedBloomFilter filter{play.store(), "{f}1"};
  filter.ensure_created(small).get();
  play.say("created");
  (void)filter.add("a").get();
  look_at(play, filter, "has a");
  play.say("removed", filter.remove().get());
  look_at(play, filter, "is gone");
  play.say("made anew", filter.try_create(small).get());
  (void)filter.add("b").get();
  look_at(play, filter, "has b");
}

void a_filter_ends_or_stays(LatePlay& play) {
  SharedBloomFilter filter{play.store(), "{f}1"};
  (void)filter.try_create(small).get();
  (void)filter.add("a").get();
  play.say("ends", filter.expire(1h).get());
  look_at(play, filter, "will end");
  play.say("stays", filter.persist().get());
  look_at(play, filter, "stays");
  play.say("ends", filter.expire(1h).get());
  look_at(play, filter, "will end");
}

void filters_are_merged(LatePlay& play) {
  SharedBloomFilter one{play.store(), "{f}1"}, two{play.store(), "{f}2"};
  (void)one.try_create(small).get();
  (void)two.try_create(small).get();
  (void)two.add("a").get();
  one.merge({"{f}2"}).get();
  look_at(play, one, "merged");
  play.say("removed", one.remove().get());
  play.say("made anew", one.try_create(small).get());
  (void)one.add("b").get();
  look_at(play, one, "has b");
}

void a_filter_is_renamed(LatePlay& play) {
  SharedBloomFilter one{play.store(), "{f}1"}, two{play.store(), "{f}2"};
  (void)one.try_create(small).get();
  (void)one.add("a").get();
  play.say("renamed", one.rename("{f}2").get());
  look_at(play, two, "has a");
  play.say("made anew", one.try_create(small).get());
  (void)one.add("b").get();
  look_at(play, one, "has b");
  play.say("removed", two.remove().get());
  look_at(play, one, "has b");
  look_at(play, two, "is gone");
  play.say("renamed", one.rename("{f}2").get());
  play.say("back", two.rename("{f}1").get());
  look_at(play, one, "has b");
}

void a_filter_is_rebuilt(LatePlay& play) {
  SharedBloomFilter filter{play.store(), "{f}1"};
  (void)filter.try_create({.expected = 20, .scalable = true}).get();
  (void)filter.add("a").get();
  const std::vector<std::string_view> keys{"a"};
  for (int turn = 0; turn < 2; ++turn) {
    auto rebuild = filter.try_rebuild({.expected = 40}).get();
    play.say("begun", rebuild.has_value());
    rebuild->add(keys).get();
    play.say("added");
    if (turn == 0) rebuild->finish().get();
    rebuild.reset();
    comes_true([&] { return !filter.info().get().rebuilding; });
    look_at(play, filter, turn == 0 ? "rebuilt" : "as before");
  }
  const TempDir folder;
  filter.save((folder / "filter").string()).get();
  (void)filter.add("b").get();
  look_at(play, filter, "has b");
  filter.load((folder / "filter").string()).get();
  look_at(play, filter, "as it was saved");
  (void)filter.add("b").get();
  look_at(play, filter, "has b");
  play.say("removed", filter.remove().get());
  play.say("made anew", filter.try_create(small).get());
  look_at(play, filter, "is empty");
}

void a_chain_grows(LatePlay& play) {
  SharedBloomFilter filter{play.store(), "{f}1"};
  filter.ensure_created({.expected = 10, .scalable = true}).get();
  for (int i = 0; i < 25; ++i) (void)filter.add(i).get();
  look_at(play, filter, "has grown");
  (void)filter.add("a").get();
  look_at(play, filter, "has a");
}

// --- rooms ---

TokenKeys late_room_keys() { return TokenKeys{{{"k1", std::string(32, 'k')}}}; }

void tell(LatePlay& play, WaitingRoom& room, std::string_view when) {
  const auto now = room.status().get();
  play.say(when, fmt::format("rate {} in {}, inside {} of {}, waiting {}, units {}{}{}", now.rate,
                             now.interval.count(), now.inside, now.inside_limit, now.waiting,
                             now.units_left.value_or(-1), now.paused ? ", paused" : "",
                             now.closed ? ", closed" : ""));
}

WaitingRoom make_room(LatePlay& play, std::int64_t rate = 50, std::chrono::milliseconds hold = 1h) {
  return WaitingRoom::create(
             play.store(), late_room_keys(),
             {.name = "room", .rate = rate, .interval = 100ms, .inside = 5, .hold = hold})
      .get();
}

void a_room_is_changed(LatePlay& play) {
  auto room = make_room(play);
  play.say("made");
  room.set_rate(10, 1s).get();
  tell(play, room, "ten");
  room.set_rate(20, 1s).get();
  room.set_inside(7).get();
  tell(play, room, "twenty");
  room.pause().get();
  tell(play, room, "paused");
  room.resume().get();
  room.set_units_left(3).get();
  tell(play, room, "three left");
  room.set_units_left(std::nullopt).get();
  tell(play, room, "not told");
}

void a_room_is_removed(LatePlay& play) {
  auto room = make_room(play);
  tell(play, room, "empty");
  const auto is_there = [&] {
    return WaitingRoom::load(play.store(), late_room_keys(), "room").get().has_value();
  };
  play.say("removed", room.remove().get());
  play.say("is there", is_there());
  room = make_room(play, 30);
  tell(play, room, "made anew");
  (void)room.enter("bob").get();
  room.close().get();
  tell(play, room, "closed");
  play.say("is there", is_there());
}

/// A place that a late copy has made is nobody's, and goes when nothing was heard for the hold.
void a_place_that_nobody_uses_goes(LatePlay& play) {
  auto room = make_room(play, 50, 1s);
  const auto ann = room.enter("ann").get();
  play.say("ann left", to_string(room.leave(ann.ticket, "ann").get().value()));
  play.say("all are gone", comes_true([&] { return room.status().get().inside == 0; }));
  const auto bob = room.enter("bob").get();
  play.say("bob", to_string(bob.place.state));
}

void visitors_come_and_go(LatePlay& play) {
  auto room = make_room(play);
  const auto state = [&](const RoomEntry& entry, const char* who) {
    const auto place = room.state(entry.ticket, who).get();
    play.say(who, place ? to_string(place->state) : "refused");
  };
  const auto ann = room.enter("ann").get();
  const auto bob = room.enter("bob").get();
  state(ann, "ann");
  state(bob, "bob");
  play.say("ann left", to_string(room.leave(ann.ticket, "ann").get().value()));
  const auto again = room.enter("ann").get();
  state(again, "ann");
  state(bob, "bob");
  (void)room.draw().get();
  play.say("positions", room.verify().get().is_right());
}

// --- numbers, fences, logins ---

void numbers_are_taken(LatePlay& play) {
  Series series{play.store(), "series"};
  const auto take = [&](const std::string& wish) {
    std::string all;
    for (const auto& number : series.next_of(wish, 2).get().value())
      all += fmt::format("{} ", number.sequence);
    play.say(wish, all);
  };
  take("one");
  take("two");
  take("one");
  (void)series.next().get();
  take("three");
  (void)Series::repair(play.store(), "series", {.given = 9, .by = "me", .why = "test"}).get();
  play.say("repaired");
  take("four");
}

void tokens_are_admitted(LatePlay& play) {
  Fence fence{play.store(), "fence"};
  for (const std::uint64_t token : {5, 7, 6, 8})
    play.say(fmt::format("{}", token), fence.admit({token}).get().has_value());
  (void)fence.run({9}, {"{fence}1"}, {"SET", "{fence}1", "1"}).get();
  play.say("8 again", fence.admit({8}).get().has_value());
}

void logins_end(LatePlay& play) {
  server::EndedLogins one{play.store()}, other{play.other()};
  const auto until = system_clock().wall() + 1h;
  for (const auto* const login : {"ann", "bob"}) {
    one.end(login, until);
    one.tell(login, until);
    play.say(login, other.look_for(login, until).value_or(false));
  }
  play.say("carl", other.look_for("carl", until).value_or(true));
}

}  // namespace

std::vector<LateHistory> late_histories() {
  return {{"cache: loads and invalidations", loads_and_invalidations},
          {"cache: puts", puts},
          {"cache: loads that fail or find nothing", loads_that_fail_or_find_nothing},
          {"cache: a lease is renewed", a_lease_is_renewed},
          {"cache: second invalidations", second_invalidations},
          {"cache: many keys", many_keys},
          {"filter: made and removed", a_filter_is_made_and_removed},
          {"filter: ends or stays", a_filter_ends_or_stays},
          {"filter: merged", filters_are_merged},
          {"filter: renamed", a_filter_is_renamed},
          {"filter: rebuilt", a_filter_is_rebuilt},
          {"filter: grows", a_chain_grows},
          {"room: changed", a_room_is_changed},
          {"room: removed", a_room_is_removed},
          {"room: a place that nobody uses", a_place_that_nobody_uses_goes},
          {"room: visitors", visitors_come_and_go},
          {"numbers", numbers_are_taken},
          {"fence", tokens_are_admitted},
          {"logins", logins_end}};
}

}  // namespace sluice::test
