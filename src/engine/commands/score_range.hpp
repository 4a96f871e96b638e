/// The ends of ZRANGEBYSCORE and ZRANGEBYLEX, turned into intervals of ranks.
#pragma once

#include <string_view>

#include "engine/core/command.hpp"
#include "engine/types/sorted_set.hpp"

namespace sluice::engine {

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

bool read_score_ends(std::string_view least, std::string_view most, ScoreEnd& from, ScoreEnd& to,
                     Reply& reply);
bool read_lex_ends(std::string_view least, std::string_view most, LexEnd& from, LexEnd& to,
                   Reply& reply);

Interval interval_between(const SortedSet& zset, const ScoreEnd& from, const ScoreEnd& to);
Interval interval_between(const SortedSet& zset, const LexEnd& from, const LexEnd& to);

/// BYSCORE, BYLEX or by rank, whatever two words mean.
enum class By { rank, score, lex };
/// Reads both ends first, then looks at the set (null: nothing). False: refused.
struct Ends {
  By by = By::rank;
  std::int64_t start = 0, stop = 0;
  ScoreEnd from_score, to_score;
  LexEnd from_lex, to_lex;

  /// `reverse`: the greater end is named first, and ranks count from the greatest.
  bool read(std::string_view first, std::string_view second, bool reverse, Reply& reply);
  Interval in(const SortedSet& zset, bool reverse) const;
};

}  // namespace sluice::engine
