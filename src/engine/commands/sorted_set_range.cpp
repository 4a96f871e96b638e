// Sorted sets by range: of ranks, of scores, of bytes. Each range becomes an interval of ranks.
#include <tuple>

#include "engine/commands/collections.hpp"
#include "engine/commands/families.hpp"
#include "engine/core/command.hpp"

namespace sluice::engine {
namespace {

struct ScoreEnd {
  double score = 0;
  bool exclusive = false;
};
/// "-", "+", "[text" or "(text".
struct LexEnd {
  enum class Kind { least, most, text };
  Kind kind = Kind::text;
  std::string_view text;
  bool exclusive = false;
};

bool read_end(std::string_view word, ScoreEnd& end) {
  end.exclusive = word.starts_with('(');
  const auto score = parse_limit(end.exclusive ? word.substr(1) : word);
  end.score = score.value_or(0);
  return score.has_value();
}

bool read_end(std::string_view word, LexEnd& end) {
  if (word == "-") return end.kind = LexEnd::Kind::least, true;
  if (word == "+") return end.kind = LexEnd::Kind::most, true;
  if (!word.starts_with('[') && !word.starts_with('(')) return false;
  end = {LexEnd::Kind::text, word.substr(1), word.front() == '('};
  return true;
}

/// Whether a member comes before the first of a range that begins at `end`.
bool before_from(std::string_view member, const LexEnd& end) {
  if (end.kind != LexEnd::Kind::text) return end.kind == LexEnd::Kind::most;
  return end.exclusive ? member <= end.text : member < end.text;
}
/// Whether a member comes before the end of a range that stops at `end`.
bool within_to(std::string_view member, const LexEnd& end) {
  if (end.kind != LexEnd::Kind::text) return end.kind == LexEnd::Kind::most;
  return end.exclusive ? member < end.text : member <= end.text;
}

Interval between(std::size_t first, std::size_t last) {
  return first < last ? Interval{first, last} : Interval{};
}

Interval interval_between(const SortedSet& zset, const ScoreEnd& from, const ScoreEnd& to) {
  const auto first = zset.count_while([&](const Scored& item) {
    return from.exclusive ? item.score <= from.score : item.score < from.score;
  });
  const auto last = zset.count_while([&](const Scored& item) {
    return to.exclusive ? item.score < to.score : item.score <= to.score;
  });
  return between(first, last);
}

Interval interval_between(const SortedSet& zset, const LexEnd& from, const LexEnd& to) {
  const auto first =
      zset.count_while([&](const Scored& item) { return before_from(item.member, from); });
  const auto last =
      zset.count_while([&](const Scored& item) { return within_to(item.member, to); });
  return between(first, last);
}

/// BYSCORE, BYLEX or by rank: what the two ends of a range are.
enum class By { rank, score, lex };
struct Ends {
  By by;
  std::int64_t start = 0, stop = 0;
  ScoreEnd from_score, to_score;
  LexEnd from_lex, to_lex;

  /// `reverse`: the greater end is named first, and ranks count from the greatest.
  Ends(By kind, std::string_view first, std::string_view second, bool reverse) : by(kind) {
    if (by == By::rank) {
      start = read_integer(first);
      stop = read_integer(second);
      return;
    }
    if (reverse) std::swap(first, second);
    if (by == By::score && !(read_end(first, from_score) && read_end(second, to_score)))
      refuse("ERR min or max is not a float");
    if (by == By::lex && !(read_end(first, from_lex) && read_end(second, to_lex)))
      refuse("ERR min or max not valid string range item");
  }

  Interval in(const SortedSet& zset, bool reverse) const {
    if (by == By::score) return interval_between(zset, from_score, to_score);
    if (by == By::lex) return interval_between(zset, from_lex, to_lex);
    const auto named = interval_of(start, stop, zset.size());
    if (!reverse || named.size() == 0) return named;
    return {zset.size() - named.last, zset.size() - named.first};
  }
};

/// A member of the ZRANGE family, as its name and its options say.
struct RangeQuery {
  std::optional<Ends> ends;
  std::optional<bool> reverse;  ///< empty: REV may say it
  std::optional<By> by;         ///< empty: BYSCORE, BYLEX may say it
  bool scores = false;
  std::int64_t offset = 0;
  std::int64_t limit = -1;

  /// `words`: first, second, options.
  void read(Words words, bool may_have_scores) {
    read_options(words.subspan(2), may_have_scores);
    const auto kind = by.value_or(By::rank);
    if (limit != -1 && kind == By::rank)
      refuse(
          "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX");
    if (scores && kind == By::lex)
      refuse("ERR syntax error, WITHSCORES not supported in combination with BYLEX");
    ends.emplace(kind, words[0], words[1], is_reverse());
  }

  void read_options(Words options, bool may_have_scores) {
    for (std::size_t i = 0; i < options.size(); ++i) {
      const auto& word = options[i];
      if (may_have_scores && is_word(word, "withscores")) {
        scores = true;
      } else if (is_word(word, "limit") && i + 2 < options.size()) {
        std::tie(offset, limit) = read_integers(options.subspan(i + 1));
        i += 2;
      } else if (!reverse && is_word(word, "rev")) {
        reverse = true;
      } else if (!by && is_word(word, "bylex")) {
        by = By::lex;
      } else if (!by && is_word(word, "byscore")) {
        by = By::score;
      } else {
        refuse(syntax_error);
      }
    }
  }

  bool is_reverse() const noexcept { return reverse.value_or(false); }

  Interval in(const SortedSet& zset) const {
    auto part = ends->in(zset, is_reverse());
    if (ends->by == By::rank) return part;
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
  query.read(words.subspan(2), true);
  auto* zset = find_as<SortedSet>(context, words[1]);
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
  query.read(words.subspan(3), false);
  auto* zset = find_as<SortedSet>(context, words[2]);
  auto result = std::make_unique<SortedSet>();
  if (zset) {
    const auto part = query.in(*zset);
    zset->for_range(part.first, part.last, false, [&](const Scored& item) {
      context.spend(1);
      result->set(item.member, item.score, nullptr);
    });
  }
  store_result(context, words[1], std::move(result), true, reply);
}

/// The set at words[1], and the part of it between words[2] and words[3].
template <By by>
std::pair<SortedSet*, Interval> find_part(Context& context, Words words) {
  const Ends ends{by, words[2], words[3], false};
  auto* zset = find_as<SortedSet>(context, words[1]);
  return {zset, zset ? ends.in(*zset, false) : Interval{}};
}

template <By by>
void count(Context& context, Words words, Reply& reply) {
  reply.count(find_part<by>(context, words).second.size());
}

template <By by>
void remove_range(Context& context, Words words, Reply& reply) {
  const auto [zset, part] = find_part<by>(context, words);
  if (part.size() > 0) {
    context.spend(part.size());
    zset->erase_range(part.first, part.last, context.undo());
    drop_if_empty(context, words[1], *zset);
    context.changed(part.size());
  }
  reply.count(part.size());
}

}  // namespace

CommandRows sorted_set_range_commands() noexcept {
  static constexpr CommandRow rows[] = {
      {"zcount", count<By::score>},
      {"zlexcount", count<By::lex>},
      {"zrange", zrange},
      {"zrangebylex", zrange_by<By::lex, false>},
      {"zrangebyscore", zrange_by<By::score, false>},
      {"zrangestore", zrangestore},
      {"zremrangebylex", remove_range<By::lex>},
      {"zremrangebyrank", remove_range<By::rank>},
      {"zremrangebyscore", remove_range<By::score>},
      {"zrevrange", zrange_by<By::rank, true>},
      {"zrevrangebylex", zrange_by<By::lex, true>},
      {"zrevrangebyscore", zrange_by<By::score, true>},
  };
  return rows;
}

}  // namespace sluice::engine
