// Places: sorted sets whose scores are places (types/geohash.hpp).
#include <fmt/format.h>

#include <algorithm>

#include "engine/commands/collections.hpp"
#include "engine/commands/families.hpp"
#include "engine/core/command.hpp"
#include "engine/types/geohash.hpp"

namespace sluice::engine {
namespace {

/// Two words: longitude and latitude.
Place read_place(Words words) {
  const auto longitude = read_double(words[0]);
  const Place place{longitude, read_double(words[1])};
  if (std::abs(place.longitude) > most_longitude || std::abs(place.latitude) > most_latitude)
    refuse(fmt::format("ERR invalid longitude,latitude pair {:f},{:f}", place.longitude,
                       place.latitude));
  return place;
}

/// In metres.
double read_unit(std::string_view word) {
  static constexpr Choice<double> units[] = {
      {"m", 1}, {"km", 1000}, {"ft", 0.3048}, {"mi", 1609.34}};
  double unit = 0;
  if (!choose(word, units, unit)) refuse("ERR unsupported unit provided. please use M, KM, FT, MI");
  return unit;
}

std::optional<Place> place_in(const SortedSet* zset, std::string_view member) {
  const auto score = zset ? zset->score(member) : std::nullopt;
  return score ? std::optional{place_of(*score)} : std::nullopt;
}

void reply_place(Context& context, const Place& place, Reply& reply) {
  reply.array(2);
  for (const double degrees : {place.longitude, place.latitude}) {
    const auto text = text_of(static_cast<long double>(degrees));
    context.session().protocol == 3 ? reply.number(*parse_double(text)) : reply.bulk(text);
  }
}

void reply_distance(double metres, double unit, Reply& reply) {
  reply.bulk(fmt::format("{:.4f}", metres / unit));
}

void log_pairs(Context& context, Words head, const std::vector<std::string>& pairs) {
  std::vector<std::string_view> words{head.begin(), head.end()};
  words.insert(words.end(), pairs.begin(), pairs.end());
  context.log_instead(words);
}

/// It is ZADD of the places' scores.
void geoadd(Context& context, Words words, Reply& reply) {
  std::size_t at = 2;
  const auto is_flag = [](std::string_view word) {
    return is_word(word, "nx") || is_word(word, "xx") || is_word(word, "ch");
  };
  while (at < words.size() && is_flag(words[at])) ++at;
  const auto flags = words.subspan(2, at - 2);
  const auto has = [&](std::string_view flag) {
    return std::ranges::any_of(flags, [&](std::string_view word) { return is_word(word, flag); });
  };
  if ((words.size() - at) % 3 != 0 || (has("nx") && has("xx"))) return reply.error(syntax_error);
  std::vector<std::string> scores;
  for (auto i = at; i < words.size(); i += 3)
    scores.push_back(fmt::format("{:.0f}", score_of(read_place(words.subspan(i, 2)))));
  std::vector<std::string_view> zadd{"ZADD"};
  zadd.insert(zadd.end(), words.begin() + 1, words.begin() + static_cast<std::ptrdiff_t>(at));
  for (std::size_t i = 0; i < scores.size(); ++i) {
    zadd.push_back(scores[i]);
    zadd.push_back(words[at + 3 * i + 2]);
  }
  const auto before = context.changes();
  context.engine().command_named("zadd")->handler(context, zadd, reply);
  if (context.changes() != before) context.log_instead(zadd);
}

void geodist(Context&, Words words, SortedSet* zset, Reply& reply) {
  if (words.size() > 5) return reply.error(syntax_error);
  const double unit = words.size() == 5 ? read_unit(words[4]) : 1;
  const auto one = place_in(zset, words[2]);
  const auto other = place_in(zset, words[3]);
  if (!one || !other) return reply.null();
  reply_distance(distance_between(*one, *other), unit, reply);
}

void geohash(Context&, Words words, SortedSet* zset, Reply& reply) {
  reply.array(words.size() - 2);
  for (const auto& member : words.subspan(2)) {
    const auto place = place_in(zset, member);
    place ? reply.bulk(geohash_of(*place)) : reply.null();
  }
}

void geopos(Context& context, Words words, SortedSet* zset, Reply& reply) {
  reply.array(words.size() - 2);
  for (const auto& member : words.subspan(2)) {
    const auto place = place_in(zset, member);
    place ? reply_place(context, *place, reply) : reply.null_array();
  }
}

// --- searching ---

struct Search {
  const SortedSet* zset = nullptr;
  GeoShape shape;
  double unit = 1;
  bool has_centre = false, is_of_member = false;
  bool has_shape = false;
  bool with_distance = false, with_score = false, with_place = false;
  enum class Order { none, nearest, farthest } order = Order::none;
  std::int64_t count = 0;  ///< 0: all
  bool any = false;
  std::optional<std::string_view> target;
  bool stores_distance = false;
};

struct Hit {
  Scored item;
  Place place;
  double distance;
};

double read_length(std::string_view word, std::string_view what) {
  return read_double(word, fmt::format("ERR need numeric {}", what));
}

void read_radius(Search& search, Words words) {
  const double radius = read_length(words[0], "radius");
  if (radius < 0) refuse("ERR radius cannot be negative");
  search.unit = read_unit(words[1]);
  search.shape.radius = radius * search.unit;
  search.has_shape = true;
}

void read_box(Search& search, Words words) {
  const double width = read_length(words[0], "width");
  const double height = read_length(words[1], "height");
  if (width < 0 || height < 0) refuse("ERR height or width cannot be negative");
  search.unit = read_unit(words[2]);
  search.shape.width = width * search.unit;
  search.shape.height = height * search.unit;
  search.shape.is_box = search.has_shape = true;
}

void read_member(Search& search, std::string_view member) {
  search.has_centre = search.is_of_member = true;
  if (!search.zset) return;
  const auto place = place_in(search.zset, member);
  if (!place) refuse("ERR could not decode requested zset member");
  search.shape.centre = *place;
}

enum class Way { radius, radius_read_only, search, search_and_store };

/// How many words the option takes that stands first; 0: it is none.
std::size_t read_search_option(Search& search, Words words, Way way) {
  static constexpr Choice<bool Search::*> flags[] = {{"withdist", &Search::with_distance},
                                                     {"withhash", &Search::with_score},
                                                     {"withcoord", &Search::with_place},
                                                     {"any", &Search::any}};
  using Order = Search::Order;
  static constexpr Choice<Order> orders[] = {{"asc", Order::nearest}, {"desc", Order::farthest}};
  bool Search::*flag = nullptr;
  if (choose(words[0], flags, flag)) return search.*flag = true, 1;
  if (choose(words[0], orders, search.order)) return 1;
  const auto is = [&](std::string_view name, std::size_t behind) {
    return words.size() > behind && is_word(words[0], name);
  };
  if (is("count", 1)) {
    search.count = read_integer(words[1]);
    if (search.count <= 0) refuse("ERR COUNT must be > 0");
    return 2;
  }
  if (way == Way::radius && (is("store", 1) || is("storedist", 1))) {
    search.target = words[1];
    search.stores_distance = is_word(words[0], "storedist");
    return 2;
  }
  if (way == Way::search_and_store && is("storedist", 0)) return search.stores_distance = true, 1;
  if (way != Way::search && way != Way::search_and_store) return 0;
  if (is("frommember", 1) && (!search.has_centre || search.is_of_member))
    return read_member(search, words[1]), 2;
  if (is("fromlonlat", 2) && !search.is_of_member) {
    search.shape.centre = read_place(words.subspan(1, 2));
    return search.has_centre = true, 3;
  }
  if (is("byradius", 2) && !search.shape.is_box) return read_radius(search, words.subspan(1, 2)), 3;
  if (is("bybox", 3) && (!search.has_shape || search.shape.is_box))
    return read_box(search, words.subspan(1, 3)), 4;
  return 0;
}

void read_search(Search& search, Words words, Words options, Way way) {
  while (!options.empty()) {
    const auto taken = read_search_option(search, options, way);
    if (taken == 0) refuse(syntax_error);
    options = options.subspan(taken);
  }
  if (search.target && (search.with_distance || search.with_score || search.with_place))
    refuse(fmt::format("ERR {} is not compatible with WITHDIST, WITHHASH and WITHCOORD options",
                       way == Way::radius ? "STORE option in GEORADIUS" : "GEOSEARCHSTORE"));
  if (!search.has_centre)
    refuse(fmt::format("ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for {}",
                       shown(words[0])));
  if (!search.has_shape)
    refuse(fmt::format("ERR exactly one of BYRADIUS and BYBOX can be specified for {}",
                       shown(words[0])));
  if (search.any && search.count == 0) refuse("ERR the ANY argument requires COUNT argument");
}

/// Those of one cell; stops at `most`.
void find_in(Context& context, const Search& search, const GeoCell& cell, std::size_t most,
             std::vector<Hit>& hits) {
  constexpr std::uint64_t steps_of_a_distance = 4;
  constexpr std::size_t at_once = 64;
  const auto below = [](double score) {
    return [score](const Scored& item) { return item.score < score; };
  };
  auto first = search.zset->count_while(below(cell.first_score()));
  const auto last = search.zset->count_while(below(cell.last_score()));
  for (; first < last && hits.size() < most; first = std::min(first + at_once, last))
    search.zset->for_range(first, std::min(first + at_once, last), false, [&](const Scored& item) {
      if (hits.size() >= most) return;
      context.spend(steps_of_a_distance);
      const auto place = place_of(item.score);
      double distance = 0;
      if (search.shape.contains(place, distance)) hits.push_back({item, place, distance});
    });
}

std::vector<Hit> find_hits(Context& context, const Search& search) {
  std::vector<Hit> hits;
  const auto count = search.count == 0 ? SIZE_MAX : static_cast<std::size_t>(search.count);
  for (const auto& cell : search.shape.cells())
    find_in(context, search, cell, search.any ? count : SIZE_MAX, hits);
  const bool is_ordered = search.order != Search::Order::none || (search.count != 0 && !search.any);
  if (search.order == Search::Order::farthest)
    std::ranges::stable_sort(hits, std::ranges::greater{}, &Hit::distance);
  else if (is_ordered)
    std::ranges::stable_sort(hits, std::ranges::less{}, &Hit::distance);
  if (hits.size() > count) hits.erase(hits.begin() + search.count, hits.end());
  return hits;
}

void reply_hits(Context& context, const Search& search, const std::vector<Hit>& hits,
                Reply& reply) {
  const auto more = std::size_t{search.with_distance} + std::size_t{search.with_score} +
                    std::size_t{search.with_place};
  reply.array(hits.size());
  for (const auto& hit : hits) {
    if (more > 0) reply.array(1 + more);
    reply.bulk(hit.item.member);
    if (search.with_distance) reply_distance(hit.distance, search.unit, reply);
    if (search.with_score) reply.integer(static_cast<std::int64_t>(hit.item.score));
    if (search.with_place) reply_place(context, hit.place, reply);
  }
}

/// The log has the places that were found: which of several at the same distance COUNT takes is
/// not settled.
void store_hits(Context& context, const Search& search, const std::vector<Hit>& hits,
                Reply& reply) {
  const auto target = *search.target;
  auto result = std::make_unique<SortedSet>();
  std::vector<std::string> pairs;
  for (const auto& hit : hits) {
    const double score = search.stores_distance ? hit.distance / search.unit : hit.item.score;
    result->set(hit.item.member, score, nullptr);
    pairs.emplace_back(DoubleText{score}.view());
    pairs.emplace_back(hit.item.member);
  }
  store_result(context, target, std::move(result), true, reply);
  if (hits.empty()) return;
  context.log_instead({"DEL", target});
  log_pairs(context, std::array<std::string_view, 2>{"ZADD", target}, pairs);
}

void finish_search(Context& context, const Search& search, Reply& reply) {
  const auto hits = search.zset ? find_hits(context, search) : std::vector<Hit>{};
  search.target ? store_hits(context, search, hits, reply)
                : reply_hits(context, search, hits, reply);
}

template <bool is_of_member, Way way>
void georadius(Context& context, Words words, Reply& reply) {
  constexpr std::size_t radius_at = is_of_member ? 3 : 4;
  Search search{.zset = find_as<SortedSet>(context, words[1])};
  if (is_of_member) {
    read_member(search, words[2]);
  } else {
    search.shape.centre = read_place(words.subspan(2, 2));
    search.has_centre = true;
  }
  search.has_shape = true;
  if (search.zset || !is_of_member) read_radius(search, words.subspan(radius_at, 2));
  read_search(search, words, words.subspan(radius_at + 2), way);
  finish_search(context, search, reply);
}

template <Way way>
void geosearch(Context& context, Words words, Reply& reply) {
  constexpr std::size_t key_at = way == Way::search_and_store ? 2 : 1;
  Search search{.zset = find_as<SortedSet>(context, words[key_at])};
  if (way == Way::search_and_store) search.target = words[1];
  read_search(search, words, words.subspan(key_at + 1), way);
  finish_search(context, search, reply);
}

}  // namespace

CommandRows geo_commands() noexcept {
  static constexpr CommandRow rows[] = {
      {"geoadd", geoadd},
      {"geodist", on<SortedSet, geodist>},
      {"geohash", on<SortedSet, geohash>},
      {"geopos", on<SortedSet, geopos>},
      {"georadius", georadius<false, Way::radius>},
      {"georadius_ro", georadius<false, Way::radius_read_only>},
      {"georadiusbymember", georadius<true, Way::radius>},
      {"georadiusbymember_ro", georadius<true, Way::radius_read_only>},
      {"geosearch", geosearch<Way::search>},
      {"geosearchstore", geosearch<Way::search_and_store>},
  };
  return rows;
}

}  // namespace sluice::engine
