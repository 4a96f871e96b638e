// Sorted sets, member by member.
#include <cmath>

#include "engine/commands/collections.hpp"
#include "engine/commands/families.hpp"
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
  static constexpr Choice<bool AddOptions::*> flags[] = {
      {"nx", &AddOptions::only_new}, {"xx", &AddOptions::only_present},
      {"gt", &AddOptions::greater},  {"lt", &AddOptions::less},
      {"ch", &AddOptions::changed},  {"incr", &AddOptions::increment}};
  std::size_t at = 2;
  for (bool AddOptions::*flag = nullptr; at < words.size() && choose(words[at], flags, flag); ++at)
    options.*flag = true;
  return at;
}

void check_flags(const AddOptions& options, std::size_t words) {
  if (words == 0 || words % 2 == 1) refuse(syntax_error);
  if (options.only_new && options.only_present)
    refuse("ERR XX and NX options at the same time are not compatible");
  if ((options.greater && options.less) || (options.only_new && (options.greater || options.less)))
    refuse("ERR GT, LT, and/or NX options at the same time are not compatible");
  if (options.increment && words > 2)
    refuse("ERR INCR option supports a single increment-element pair");
}

struct Added {
  std::size_t created = 0;
  std::size_t updated = 0;
  std::optional<double> score;  ///< of the last one; empty where its conditions did not hold
};

/// Adds or moves one member. False: the sum would not be a number.
bool add_one(SortedSet& zset, std::string_view member, double score, const AddOptions& options,
             Added& added, Undo* undo) {
  const auto old = zset.score(member);
  added.score = old;
  if (old ? options.only_new : options.only_present) return added.score.reset(), true;
  if (old && options.increment) score += *old;
  if (std::isnan(score)) return false;
  if (old && ((options.greater && score <= *old) || (options.less && score >= *old)))
    return added.score.reset(), true;
  added.score = score;
  if (old && *old == score) return true;
  zset.set(member, score, undo);
  ++(old ? added.updated : added.created);
  return true;
}

/// `pairs`: score and member in turn. What ZADD and ZINCRBY do.
Added add_all(Context& context, std::string_view key, Words pairs, const AddOptions& options) {
  std::vector<double> scores(pairs.size() / 2);
  for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = read_double(pairs[2 * i]);
  auto* zset = find_as<SortedSet>(context, key);
  if (!zset) {
    if (options.only_present) return {};
    zset = &make<SortedSet>(context, key);
    context.signal(key);
  }
  Added added;
  bool good = true;
  for (std::size_t i = 0; i < scores.size() && good; ++i)
    good = add_one(*zset, pairs[2 * i + 1], scores[i], options, added, context.undo());
  if (added.created + added.updated > 0) context.changed(added.created + added.updated);
  drop_if_empty(context, key, *zset);
  if (!good) refuse("ERR resulting score is not a number (NaN)");
  return added;
}

void zadd(Context& context, Words words, Reply& reply) {
  AddOptions options;
  const auto pairs = words.subspan(read_flags(words, options));
  check_flags(options, pairs.size());
  const auto added = add_all(context, words[1], pairs, options);
  if (options.increment) return added.score ? reply.number(*added.score) : reply.null();
  reply.count(added.created + (options.changed ? added.updated : 0));
}

void zincrby(Context& context, Words words, Reply& reply) {
  reply.number(*add_all(context, words[1], words.subspan(2), {.increment = true}).score);
}

void reply_score(const SortedSet* zset, std::string_view member, Reply& reply) {
  const auto score = zset ? zset->score(member) : std::nullopt;
  score ? reply.number(*score) : reply.null();
}

void zscore(Context&, Words words, SortedSet* zset, Reply& reply) {
  reply_score(zset, words[2], reply);
}

void zmscore(Context&, Words words, SortedSet* zset, Reply& reply) {
  reply.array(words.size() - 2);
  for (const auto& member : words.subspan(2)) reply_score(zset, member, reply);
}

template <bool reverse>
void rank_of(Context&, Words words, SortedSet* zset, Reply& reply) {
  const bool with_score = words.size() > 3;
  const auto place = zset ? zset->rank(words[2]) : std::nullopt;
  if (!place) return with_score ? reply.null_array() : reply.null();
  if (with_score) reply.array(2);
  reply.count(reverse ? zset->size() - 1 - *place : *place);
  if (with_score) reply_score(zset, words[2], reply);
}

template <bool reverse>
void rank(Context& context, Words words, Reply& reply) {
  if (words.size() > 4 || (words.size() > 3 && !is_word(words[3], "withscore")))
    refuse_arity(reverse ? "zrevrank" : "zrank");  // as 7.0, which knows no such option
  on<SortedSet, rank_of<reverse>>(context, words, reply);
}

// --- as a priority queue; what waits is logged as the command that does not ---

enum class Extreme { min, max };

std::string_view pop_name(Extreme extreme) {
  return extreme == Extreme::min ? "ZPOPMIN" : "ZPOPMAX";
}

/// Calls `tell(Scored)` for `count` members from one side, then removes them. REQUIRES: count <=
/// size.
template <class Tell>
void take(Context& context, std::string_view key, SortedSet& zset, Extreme extreme,
          std::size_t count, Tell&& tell) {
  const bool reverse = extreme == Extreme::max;
  const Interval part = reverse ? Interval{zset.size() - count, zset.size()} : Interval{0, count};
  zset.for_range(part.first, part.last, reverse, tell);
  zset.erase_range(part.first, part.last, context.undo());
  if (count > 0) context.changed(count);
  drop_if_empty(context, key, zset);
}

template <Extreme extreme>
void pop(Context& context, Words words, Reply& reply) {
  auto [zset, count] = find_to_pop<SortedSet>(context, words);
  if (!zset) return reply.array(0);
  count = std::min(zset->size(), count);
  PairReply pairs{reply, count, true, words.size() == 3 && nests_pairs(context)};
  take(context, words[1], *zset, extreme, count, [&](const Scored& item) { pairs.add(item); });
}

template <Extreme extreme>
void blocking_pop(Context& context, Words words, Reply& reply) {
  pop_or_wait<SortedSet>(context, words, reply, [&](std::string_view key, SortedSet& zset) {
    reply.array(3);
    reply.bulk(key);
    take(context, key, zset, extreme, 1, [&](const Scored& item) {
      reply.bulk(item.member);
      reply.number(item.score);
    });
    context.log_instead({pop_name(extreme), key});
  });
}

bool pop_several(Context& context, const PopKeys& pop, Reply& reply) {
  static constexpr Choice<Extreme> extremes[] = {{"min", Extreme::min}, {"max", Extreme::max}};
  Extreme extreme{};
  if (!choose(pop.end, extremes, extreme)) return reply.error(syntax_error), true;
  return pop_first<SortedSet>(context, pop.keys, [&](std::string_view key, SortedSet& zset) {
    const auto taken = std::min(zset.size(), static_cast<std::size_t>(pop.count));
    reply.array(2);
    reply.bulk(key);
    PairReply pairs{reply, taken, true, true};
    take(context, key, zset, extreme, taken, [&](const Scored& item) { pairs.add(item); });
    context.log_instead({pop_name(extreme), key, IntegerText{static_cast<std::int64_t>(taken)}});
  });
}

}  // namespace

CommandRows sorted_set_commands() noexcept {
  static constexpr CommandRow rows[] = {
      {"bzmpop", pop_several_or_wait<pop_several>},
      {"bzpopmax", blocking_pop<Extreme::max>},
      {"bzpopmin", blocking_pop<Extreme::min>},
      {"zadd", zadd},
      {"zcard", on<SortedSet, reply_size>},
      {"zincrby", zincrby},
      {"zmpop", pop_at_once<pop_several>},
      {"zmscore", on<SortedSet, zmscore>},
      {"zpopmax", pop<Extreme::max>},
      {"zpopmin", pop<Extreme::min>},
      {"zrandmember", random_elements<SortedSet>},
      {"zrank", rank<false>},
      {"zrem", on<SortedSet, remove_elements>},
      {"zrevrank", rank<true>},
      {"zscan", scan_elements<SortedSet>},
      {"zscore", on<SortedSet, zscore>},
  };
  return rows;
}

}  // namespace sluice::engine
