#include "engine/commands/score_range.hpp"

#include <utility>

namespace sluice::engine {
namespace {

bool read(std::string_view word, ScoreEnd& end) {
  end.exclusive = word.starts_with('(');
  const auto score = parse_double(end.exclusive ? word.substr(1) : word);
  end.score = score.value_or(0);
  return score.has_value();
}

bool read(std::string_view word, LexEnd& end) {
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

}  // namespace

bool read_score_ends(std::string_view least, std::string_view most, ScoreEnd& from, ScoreEnd& to,
                     Reply& reply) {
  return (read(least, from) && read(most, to)) || fail(reply, "ERR min or max is not a float");
}

bool read_lex_ends(std::string_view least, std::string_view most, LexEnd& from, LexEnd& to,
                   Reply& reply) {
  return (read(least, from) && read(most, to)) ||
         fail(reply, "ERR min or max not valid string range item");
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

bool Ends::read(std::string_view first, std::string_view second, bool reverse, Reply& reply) {
  if (by == By::rank) return read_integer(first, start, reply) && read_integer(second, stop, reply);
  if (reverse) std::swap(first, second);
  if (by == By::score) return read_score_ends(first, second, from_score, to_score, reply);
  return read_lex_ends(first, second, from_lex, to_lex, reply);
}

Interval Ends::in(const SortedSet& zset, bool reverse) const {
  if (by == By::score) return interval_between(zset, from_score, to_score);
  if (by == By::lex) return interval_between(zset, from_lex, to_lex);
  const auto named = interval_of(start, stop, zset.size());
  if (!reverse || named.size() == 0) return named;
  return {zset.size() - named.last, zset.size() - named.first};
}

}  // namespace sluice::engine
