// Sorted sets by range: of ranks, of scores, of bytes. Each range is an interval of ranks
// (score_range.hpp).
#include <algorithm>
#include <optional>

#include "engine/commands/collections.hpp"
#include "engine/commands/families.hpp"
#include "engine/commands/score_range.hpp"
#include "engine/core/command.hpp"

namespace sluice::engine {
namespace {

/// A member of the ZRANGE family, as its name and its options say.
struct RangeQuery {
  Ends ends;
  std::optional<bool> reverse;  ///< empty: REV may say it
  std::optional<By> by;         ///< empty: BYSCORE, BYLEX may say it
  bool scores = false;
  std::int64_t offset = 0;
  std::int64_t limit = -1;

  /// `words`: first, second, options.
  bool read(Words words, bool may_have_scores, Reply& reply) {
    if (!read_options(words.subspan(2), may_have_scores, reply)) return false;
    ends.by = by.value_or(By::rank);
    if (limit != -1 && ends.by == By::rank)
      return fail(
          reply,
          "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX");
    if (scores && ends.by == By::lex)
      return fail(reply, "ERR syntax error, WITHSCORES not supported in combination with BYLEX");
    return ends.read(words[0], words[1], is_reverse(), reply);
  }

  bool read_options(Words options, bool may_have_scores, Reply& reply) {
    const bool may_reverse = !reverse, may_choose = !by;
    for (std::size_t i = 0; i < options.size(); ++i) {
      const auto& word = options[i];
      if (may_have_scores && is_word(word, "withscores")) {
        scores = true;
      } else if (is_word(word, "limit") && i + 2 < options.size()) {
        if (!read_integers(options.subspan(i + 1), offset, limit, reply)) return false;
        i += 2;
      } else if (may_reverse && is_word(word, "rev")) {
        reverse = true;
      } else if (may_choose && is_word(word, "bylex")) {
        by = By::lex;
      } else if (may_choose && is_word(word, "byscore")) {
        by = By::score;
      } else {
        return fail(reply, syntax_error);
      }
    }
    return true;
  }

  bool is_reverse() const noexcept { return reverse.value_or(false); }

  Interval in(const SortedSet& zset) const {
    auto part = ends.in(zset, is_reverse());
    if (ends.by == By::rank) return part;
    if (offset < 0) return {};
    const auto skipped = std::min(part.size(), static_cast<std::size_t>(offset));
    (is_reverse() ? part.last -= skipped : part.first += skipped);
    if (limit >= 0 && static_cast<std::size_t>(limit) < part.size()) {
      if (is_reverse())
        part.first = part.last - static_cast<std::size_t>(limit);
      else
        part.last = part.first + static_cast<std::size_t>(limit);
    }
    return part;
  }
};

void tell(Context& context, Words words, RangeQuery query, Reply& reply) {
  if (!query.read(words.subspan(2), true, reply)) return;
  SortedSet* zset = nullptr;
  if (!find_as(context, words[1], zset, reply)) return;
  if (!zset) return reply.array(0);
  const auto part = query.in(*zset);
  PairReply pairs{reply, part.size(), query.scores, nests_pairs(context)};
  zset->for_range(part.first, part.last, query.is_reverse(),
                  [&](const Scored& item) { pairs.add(item); });
}

void zrange(Context& context, Words words, Reply& reply) { tell(context, words, {}, reply); }
template <By by, bool reverse>
void zrange_by(Context& context, Words words, Reply& reply) {
  RangeQuery query;
  query.by = by;
  query.reverse = reverse;
  tell(context, words, query, reply);
}

void zrangestore(Context& context, Words words, Reply& reply) {
  RangeQuery query;
  if (!query.read(words.subspan(3), false, reply)) return;
  SortedSet* zset = nullptr;
  if (!find_as(context, words[2], zset, reply)) return;
  auto result = std::make_unique<SortedSet>();
  if (zset) {
    const auto part = query.in(*zset);
    zset->for_range(part.first, part.last, false,
                    [&](const Scored& item) { result->set(item.member, item.score); });
  }
  store_result(context, words[1], std::move(result), true, reply);
}

template <By by>
void count(Context& context, Words words, Reply& reply) {
  Ends ends{.by = by};
  if (!ends.read(words[2], words[3], false, reply)) return;
  SortedSet* zset = nullptr;
  if (!find_as(context, words[1], zset, reply)) return;
  reply.integer(zset ? static_cast<std::int64_t>(ends.in(*zset, false).size()) : 0);
}

template <By by>
void remove_range(Context& context, Words words, Reply& reply) {
  Ends ends{.by = by};
  if (!ends.read(words[2], words[3], false, reply)) return;
  SortedSet* zset = nullptr;
  if (!find_as(context, words[1], zset, reply)) return;
  const auto part = zset ? ends.in(*zset, false) : Interval{};
  if (part.size() > 0) {
    zset->erase_range(part.first, part.last);
    drop_if_empty(context, words[1], *zset);
    context.changed(part.size());
  }
  reply.count(part.size());
}

constexpr CommandRow rows[] = {
    {"zrange", zrange},
    {"zrevrange", zrange_by<By::rank, true>},
    {"zrangebyscore", zrange_by<By::score, false>},
    {"zrevrangebyscore", zrange_by<By::score, true>},
    {"zrangebylex", zrange_by<By::lex, false>},
    {"zrevrangebylex", zrange_by<By::lex, true>},
    {"zrangestore", zrangestore},
    {"zcount", count<By::score>},
    {"zlexcount", count<By::lex>},
    {"zremrangebyrank", remove_range<By::rank>},
    {"zremrangebyscore", remove_range<By::score>},
    {"zremrangebylex", remove_range<By::lex>},
};

}  // namespace

CommandRows sorted_set_range_commands() noexcept { return rows; }

}  // namespace sluice::engine
