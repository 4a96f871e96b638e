/// Business document numbers that every instance draws from one series: type, day, counter
/// ("MT202601020001").
///
/// Guarantee: no number is given twice, and those of one day are 1, 2, 3 ... without a gap among
///   the calls that were answered, while the store keeps its data. A number asked for after another
///   was returned is larger. It carries the date that the store's clock (its TIME, never going
///   back) has in the zone of the series; clocks and zones of the applications do not matter. A day
///   once begun is never left, whatever daylight saving does.
/// Not guaranteed: that no number is skipped when a call fails with effect `unknown`: what was
///   taken for it is a gap. That a server which lost its data (failover to a replica that lagged,
///   FLUSHALL) goes on where it was: keep a unique index on the number in your database.
/// Threads: any. Calls made at the same time travel together: N callers cost one round trip and
///   exactly N numbers.
/// In Redis: hash {NAME}:s (last instant, definition, prefix), no TTL; string {NAME}:yyyymmdd for
/// each day,
///   TTL `keep` after the day's end. One round trip, one script.
///
///     Series orders{store, "MT", {.zone = "Asia/Shanghai"}};
///     if (auto number = orders.next().get()) print(number->text);   // MT202601020001
#pragma once

#include <cstdint>
#include <string>

#include "sluice/expected.hpp"
#include "sluice/store.hpp"

namespace sluice {

struct SeriesOptions {
  /// What a number begins with; empty: the name of the series. The first that draws a number
  /// settles it for all.
  std::string prefix = {};
  /// IANA name of the zone whose midnights begin a new day. An unknown one is an Error, never UTC
  /// in silence.
  std::string zone = "UTC";
  /// Width of the counter, 1 to 15. More numbers a day with more; the day is *full* after 10^digits
  /// - 1.
  int digits = 4;
  /// How long the counter of a day is kept after the day's end. Housekeeping alone; nothing depends
  /// on it.
  std::chrono::hours keep{24 * 35};
};

struct Number {
  std::string text;       ///< "MT202601020001"
  std::string period;     ///< "20260102"
  std::int64_t sequence;  ///< 1
  WallTime issued_at;     ///< by the store's clock
};

/// The refusal: every number of this day has been given.
struct SeriesFull {
  std::string period;
  std::int64_t largest;
  WallTime refused_at;
};

class Series {
 public:
  /// Throws Error{bad_argument} for an empty name, an unknown zone, digits out of range.
  Series(Store& store, std::string name, SeriesOptions options = {});
  ~Series();
  Series(Series&&) noexcept;
  Series& operator=(Series&&) noexcept;

  /// The next number, or SeriesFull.
  /// Throws Error: config_mismatch (effect none) when the series exists with another zone, width or
  /// prefix; what the store throws otherwise: with effect `unknown` a number may have been taken
  /// that no caller got.
  Task<Expected<Number, SeriesFull>> next();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
