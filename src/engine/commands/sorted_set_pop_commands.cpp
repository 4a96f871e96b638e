// Sorted sets as priority queues. What waits is logged as the command that does not.
#include <algorithm>

#include "engine/commands/pop_keys.hpp"
#include "engine/core/command.hpp"

namespace sluice::engine {
namespace {

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
  zset.erase_range(part.first, part.last);
  if (count > 0) context.changed(count);
  drop_if_empty(context, key, zset);
}

template <Extreme extreme>
void pop(Context& context, Words words, Reply& reply) {
  if (words.size() > 3) return reply.error(syntax_error);
  const bool several = words.size() == 3;
  std::size_t count = 0;
  if (!read_pop_count(words, count, reply)) return;
  SortedSet* zset = nullptr;
  if (!find_as(context, words[1], zset, reply)) return;
  if (!zset) return reply.array(0);
  const auto taken = std::min(zset->size(), count);
  const bool pairs = several && context.session().protocol == 3;
  reply.array(taken * (pairs ? 1 : 2));
  take(context, words[1], *zset, extreme, taken, [&](const Scored& item) {
    if (pairs) reply.array(2);
    reply.bulk(item.member);
    reply.number(item.score);
  });
}

template <Extreme extreme>
void blocking_pop(Context& context, Words words, Reply& reply) {
  std::int64_t timeout_ms = 0;
  if (!read_timeout(words.back(), timeout_ms, reply)) return;
  const auto keys = words.subspan(1, words.size() - 2);
  for (const auto& key : keys) {
    SortedSet* zset = nullptr;
    if (!find_as(context, key, zset, reply)) return;
    if (!zset) continue;
    reply.array(3);
    reply.bulk(key);
    take(context, key, *zset, extreme, 1, [&](const Scored& item) {
      reply.bulk(item.member);
      reply.number(item.score);
    });
    return context.log_instead({pop_name(extreme), key});
  }
  wait_for(context, keys, timeout_ms, reply);
}

/// ZMPOP. False: nothing was there, nothing was replied.
bool pop_several(Context& context, const PopKeys& pop, Reply& reply) {
  const bool least = same_word(pop.end, "min");
  if (!least && !same_word(pop.end, "max")) return reply.error(syntax_error), true;
  const auto extreme = least ? Extreme::min : Extreme::max;
  for (const auto& key : pop.keys) {
    SortedSet* zset = nullptr;
    if (!find_as(context, key, zset, reply)) return true;
    if (!zset) continue;
    const auto taken = std::min(zset->size(), static_cast<std::size_t>(pop.count));
    reply.array(2);
    reply.bulk(key);
    reply.array(taken);
    take(context, key, *zset, extreme, taken, [&](const Scored& item) {
      reply.array(2);
      reply.bulk(item.member);
      reply.number(item.score);
    });
    context.log_instead({pop_name(extreme), key, IntegerText{static_cast<std::int64_t>(taken)}});
    return true;
  }
  return false;
}

void zmpop(Context& context, Words words, Reply& reply) {
  PopKeys pop;
  if (read_pop_keys(words, 1, pop, reply) && !pop_several(context, pop, reply)) reply.null_array();
}

void bzmpop(Context& context, Words words, Reply& reply) {
  PopKeys pop;
  std::int64_t timeout_ms = 0;
  if (!read_timeout(words[1], timeout_ms, reply) || !read_pop_keys(words, 2, pop, reply)) return;
  if (!pop_several(context, pop, reply)) wait_for(context, pop.keys, timeout_ms, reply);
}

constexpr Handlers::Row rows[] = {
    {"zpopmin", pop<Extreme::min>},
    {"zpopmax", pop<Extreme::max>},
    {"bzpopmin", blocking_pop<Extreme::min>},
    {"bzpopmax", blocking_pop<Extreme::max>},
    {"zmpop", zmpop},
    {"bzmpop", bzmpop},
};

}  // namespace

void add_sorted_set_pop_commands(Handlers& handlers) { handlers.add(rows); }

}  // namespace sluice::engine
