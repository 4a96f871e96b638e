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
///   FLUSHALL) goes on where it was. A Series never gives a number again that it has given itself,
///   and tells the store its latest one with each call, and at once when it has a new connection
///   or, in a cluster, another master: until then another process may get it again, and so may any
///   that asks after the process is gone. With `durability` a failover to a replica that has
///   confirmed loses no number that was given. Keep a unique index on the number in your database.
/// Threads: any. Calls made at the same time travel together: N callers cost one round trip and
///   exactly N numbers.
/// In Redis: hash {NAME}:s (definition, prefix, last instant, day and count, and the counts of the
///   days that were left), no TTL; stream {NAME}:repairs if there were any, no TTL. One round trip,
///   one script. A series of the first layout, whose days had strings {NAME}:yyyymmdd, is taken
///   over. A key that holds something else is refused with wrong_type, and left as it is; but a
///   stream of that name gets the entries of repairs.
///
///     Series orders{*store, "MT", {.zone = "Asia/Shanghai"}};
///     if (auto number = orders.next().get()) print(number->text);   // MT202601020001
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/durability.hpp"
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
  /// Of how many days, at most, that gave numbers and were left, the count stays: one for each 24
  /// hours, of 1 to 3,660 days. `repair` needs it; no number hangs on it.
  std::chrono::hours keep{24 * 35};
  /// In how many places a number has to be before it is given. With replicas: one that has not
  /// reached them in time is given to nobody, and the call throws Error (unsynced, effect done).
  Durability durability{};
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

enum class RepairOutcome {
  repaired,         ///< the series is at the present day
  sound,            ///< it was: nothing was done
  no_series,        ///< nobody has drawn a number of this name
  count_unknown,    ///< nobody knows how many numbers of the day were given: tell `given`
  more_were_given,  ///< than `given`: nothing was done
};

struct RepairOptions {
  /// How many numbers of the present day were given, from your own books, where the store does not
  /// know it, or not all. Never less than it knows.
  std::optional<std::int64_t> given = {};
  std::string by = {};     ///< who repairs, for the journal
  std::string why = {};    ///< the same
  bool only_look = false;  ///< answer as if, and do nothing
};

struct SeriesRepair {
  RepairOutcome outcome;
  WallTime now{};                               ///< by the store's clock
  WallTime last{};                              ///< of the last number, as it was
  std::string last_period = {};                 ///< the day that it was of; empty: not known
  std::optional<std::int64_t> last_sequence{};  ///< how many that day has given
  std::string period = {};                      ///< the day the series is at
  std::optional<std::int64_t> given{};          ///< numbers of it; the next one comes after them
  std::string prefix = {};
  int digits = 0;
};

/// A series as it stands in the store.
struct SeriesInfo {
  std::string name;
  std::string period;     ///< the day of its last number: "20260102"
  std::string last;       ///< "MT202601020007"
  std::int64_t left = 0;  ///< numbers that this day still has
};
struct SeriesList {
  std::vector<SeriesInfo> series;  ///< by name
  bool complete = true;            ///< false: there are more than were asked for
};

class Series {
 public:
  /// Throws Error{bad_argument} for an empty name, braces that are no whole tag, an unknown zone,
  /// digits or `keep` out of range.
  Series(Store& store, std::string name, SeriesOptions options = {});
  ~Series();
  Series(Series&&) noexcept;
  Series& operator=(Series&&) noexcept;

  /// The next number, or SeriesFull.
  /// Throws Error: config_mismatch (effect none) when the series exists with another zone, width or
  /// prefix; corrupt (effect none) when a series of the first layout has lost the count of the
  /// present day; what the store throws otherwise: with effect `unknown` a number may have been
  /// taken that no caller got.
  Task<Expected<Number, SeriesFull>> next();

  /// So many numbers at once, or as many as the day has left, for a wish: who asks again by the
  /// same name gets the same numbers, at any process, for `wish_kept`. Throws as next(), and Error
  /// (bad_argument): no name, more than `most_of_wish`, another `count` than the wish had; after
  /// effect `unknown` ask again. In Redis besides: hash {NAME}:wish:SHA-256, TTL `wish_kept`.
  Task<Expected<std::vector<Number>, SeriesFull>> next_of(std::string wish, std::size_t count);
  static constexpr std::size_t most_of_wish = 1000;
  static constexpr std::chrono::hours wish_kept{24};

  /// Takes a series back to the present day when a glitch of the store's clock has thrown it into
  /// the future. No number is given twice: the day goes on behind what it has given, and so will
  /// the days of the future. Numbers that come are smaller than those of the glitch. Each repair
  /// is written into the stream {NAME}:repairs (the latest 1,000). It may run while programs draw.
  /// Two round trips. Throws Error: bad_argument for a `given` that no day has; corrupt for a
  /// state that makes no sense; what the store throws.
  static Task<SeriesRepair> repair(Store& store, std::string name, RepairOptions how = {});

  /// Up to `most` series that have given numbers; those of other nodes of a cluster are not found.
  /// O(keys of the server), in short steps; then one round trip for a hundred of them.
  static Task<SeriesList> list(Store& store, std::size_t most = 1000);

 private:
  class Core;
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
