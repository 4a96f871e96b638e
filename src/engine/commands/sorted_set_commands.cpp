// Sorted sets, member by member.
#include <cmath>
#include <limits>
#include <optional>

#include "engine/commands/scan.hpp"
#include "engine/core/command.hpp"

namespace sluice::engine {
namespace {

struct AddOptions {
  bool only_new = false;      // NX
  bool only_present = false;  // XX
  bool greater = false;       // GT
  bool less = false;          // LT
  bool changed = false;       // CH
  bool increment = false;     // INCR
};

/// Reads the flags; gives the place of the first score.
std::size_t read_flags(Words words, AddOptions& options) {
  struct Row {
    std::string_view word;
    bool AddOptions::*flag;
  };
  static constexpr Row rows[] = {{"nx", &AddOptions::only_new}, {"xx", &AddOptions::only_present},
                                 {"gt", &AddOptions::greater},  {"lt", &AddOptions::less},
                                 {"ch", &AddOptions::changed},  {"incr", &AddOptions::increment}};
  for (std::size_t i = 2; i < words.size(); ++i) {
    bool known = false;
    for (const auto& row : rows)
      if (same_word(words[i], row.word)) options.*row.flag = known = true;
    if (!known) return i;
  }
  return words.size();
}

bool check_flags(const AddOptions& options, std::size_t words, Reply& reply) {
  if (words == 0 || words % 2 == 1) return fail(reply, syntax_error);
  if (options.only_new && options.only_present)
    return fail(reply, "ERR XX and NX options at the same time are not compatible");
  if ((options.greater && options.less) || (options.only_new && (options.greater || options.less)))
    return fail(reply, "ERR GT, LT, and/or NX options at the same time are not compatible");
  if (options.increment && words > 2)
    return fail(reply, "ERR INCR option supports a single increment-element pair");
  return true;
}

struct Added {
  std::size_t created = 0;
  std::size_t updated = 0;
  std::optional<double> score;  ///< of the last one; empty where its conditions did not hold
};

/// Adds or moves one member. False: the sum would not be a number.
bool add_one(SortedSet& zset, std::string_view member, double score, const AddOptions& options,
             Added& added) {
  const auto old = zset.score(member);
  added.score = old;
  if (old ? options.only_new : options.only_present) return added.score.reset(), true;
  if (old && options.increment) score += *old;
  if (std::isnan(score)) return false;
  if (old && ((options.greater && score <= *old) || (options.less && score >= *old)))
    return added.score.reset(), true;
  added.score = score;
  if (old && *old == score) return true;
  zset.set(member, score);
  ++(old ? added.updated : added.created);
  return true;
}

/// `pairs`: score and member in turn. What ZADD and ZINCRBY do; false: refused.
bool add_all(Context& context, std::string_view key, Words pairs, const AddOptions& options,
             Added& added, Reply& reply) {
  std::vector<double> scores(pairs.size() / 2);
  for (std::size_t i = 0; i < scores.size(); ++i)
    if (!read_double(pairs[2 * i], scores[i], reply)) return false;
  SortedSet* zset = nullptr;
  if (!find_as(context, key, zset, reply)) return false;
  if (!zset) {
    if (options.only_present) return true;
    zset = &make<SortedSet>(context, key);
    context.signal(key);
  }
  bool good = true;
  for (std::size_t i = 0; i < scores.size() && good; ++i)
    good = add_one(*zset, pairs[2 * i + 1], scores[i], options, added);
  if (added.created + added.updated > 0) context.changed(added.created + added.updated);
  drop_if_empty(context, key, *zset);
  return good || fail(reply, "ERR resulting score is not a number (NaN)");
}

void zadd(Context& context, Words words, Reply& reply) {
  AddOptions options;
  const auto pairs = words.subspan(read_flags(words, options));
  if (!check_flags(options, pairs.size(), reply)) return;
  Added added;
  if (!add_all(context, words[1], pairs, options, added, reply)) return;
  if (options.increment) return added.score ? reply.number(*added.score) : reply.null();
  reply.integer(static_cast<std::int64_t>(added.created + (options.changed ? added.updated : 0)));
}

void zincrby(Context& context, Words words, Reply& reply) {
  Added added;
  if (add_all(context, words[1], words.subspan(2), {.increment = true}, added, reply))
    reply.number(*added.score);
}

void zrem(Context& context, Words words, Reply& reply) {
  SortedSet* zset = nullptr;
  if (!find_as(context, words[1], zset, reply)) return;
  std::size_t removed = 0;
  if (zset) {
    for (const auto& member : words.subspan(2)) removed += zset->erase(member) ? 1 : 0;
    drop_if_empty(context, words[1], *zset);
  }
  if (removed > 0) context.changed(removed);
  reply.integer(static_cast<std::int64_t>(removed));
}

void zcard(Context& context, Words words, Reply& reply) {
  SortedSet* zset = nullptr;
  if (find_as(context, words[1], zset, reply))
    reply.integer(zset ? static_cast<std::int64_t>(zset->size()) : 0);
}

void reply_score(const SortedSet* zset, std::string_view member, Reply& reply) {
  const auto score = zset ? zset->score(member) : std::nullopt;
  score ? reply.number(*score) : reply.null();
}

void zscore(Context& context, Words words, Reply& reply) {
  SortedSet* zset = nullptr;
  if (find_as(context, words[1], zset, reply)) reply_score(zset, words[2], reply);
}

void zmscore(Context& context, Words words, Reply& reply) {
  SortedSet* zset = nullptr;
  if (!find_as(context, words[1], zset, reply)) return;
  reply.array(words.size() - 2);
  for (const auto& member : words.subspan(2)) reply_score(zset, member, reply);
}

template <bool reverse>
void rank(Context& context, Words words, Reply& reply) {
  SortedSet* zset = nullptr;
  if (!find_as(context, words[1], zset, reply)) return;
  const auto place = zset ? zset->rank(words[2]) : std::nullopt;
  if (!place) return reply.null();
  reply.integer(static_cast<std::int64_t>(reverse ? zset->size() - 1 - *place : *place));
}

/// ZRANDMEMBER with a count: positive without repeats, negative with.
void random_members(const SortedSet& zset, std::int64_t count, bool scores, Context& context,
                    Reply& reply) {
  auto& rng = context.engine().rng;
  std::vector<std::size_t> places;
  if (count < 0)
    for (; count < 0; ++count) places.push_back(rng.below(zset.size()));
  else
    places =
        distinct_indexes(zset.size(), std::min(zset.size(), static_cast<std::size_t>(count)), rng);
  const bool pairs = scores && context.session().protocol == 3;
  reply.array(places.size() * (scores && !pairs ? 2 : 1));
  for (const auto place : places) {
    const auto item = zset.at(place);
    if (pairs) reply.array(2);
    reply.bulk(item.member);
    if (scores) reply.number(item.score);
  }
}

void zrandmember(Context& context, Words words, Reply& reply) {
  std::int64_t count = 0;
  if (words.size() > 2 && !read_count(words[2], count, reply)) return;
  if (words.size() > 4 || (words.size() == 4 && !same_word(words[3], "withscores")))
    return reply.error(syntax_error);
  SortedSet* zset = nullptr;
  if (!find_as(context, words[1], zset, reply)) return;
  if (words.size() == 2)
    return zset ? reply.bulk(zset->at(context.engine().rng.below(zset->size())).member)
                : reply.null();
  if (!zset) return reply.array(0);
  random_members(*zset, count, words.size() == 4, context, reply);
}

void zscan(Context& context, Words words, Reply& reply) {
  ScanOptions options;
  SortedSet* zset = nullptr;
  if (!read_cursor(words[2], options.cursor, reply) || !find_as(context, words[1], zset, reply))
    return;
  std::vector<std::string> found;
  if (!zset) return reply_scan(reply, 0, found);
  if (!read_scan(words, 2, false, options, reply)) return;
  const auto cursor = scan_some(*zset, options, [&](const Scored& item) {
    if (!options.matches(item.member)) return;
    found.emplace_back(item.member);
    found.emplace_back(DoubleText{item.score}.view());
  });
  reply_scan(reply, cursor, found);
}

constexpr Handlers::Row rows[] = {
    {"zadd", zadd},         {"zincrby", zincrby},     {"zrem", zrem},
    {"zcard", zcard},       {"zscore", zscore},       {"zmscore", zmscore},
    {"zrank", rank<false>}, {"zrevrank", rank<true>}, {"zrandmember", zrandmember},
    {"zscan", zscan},
};

}  // namespace

void add_sorted_set_commands(Handlers& handlers) { handlers.add(rows); }

}  // namespace sluice::engine
