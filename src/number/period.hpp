/// The calendar of a series: which instants belong to which day, as a table that a script can
/// compare numbers with.
///
/// Rule: day D is [first instant whose local date is >= D, first instant whose local date is > D).
/// So a day once begun is never left where clocks go back over midnight, a missing 00:00 begins at
/// the transition, and a date that does not exist has no period.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sluice/clock.hpp"

namespace sluice {

struct Period {
  WallTime start;     ///< inclusive
  std::string label;  ///< "20260102"
};

/// Consecutive periods, oldest first; `end` is where the last one ends.
struct PeriodTable {
  std::vector<Period> periods;
  WallTime end;

  bool covers(WallTime instant) const noexcept {
    return !periods.empty() && periods.front().start <= instant && instant < end;
  }
  /// REQUIRES: covers(instant).
  const Period& at(WallTime instant) const noexcept;
};

/// The days of an IANA zone.
class Calendar {
 public:
  /// Throws Error{bad_argument} for what is no IANA name ('localtime', a path), and where the
  /// machine's tz database has no such zone.
  explicit Calendar(const std::string& zone);
  ~Calendar();
  Calendar(Calendar&&) noexcept;
  Calendar& operator=(Calendar&&) noexcept;

  /// Yesterday to the day after tomorrow, seen from `instant`.
  PeriodTable around(WallTime instant) const;

 private:
  struct Zone;
  std::unique_ptr<Zone> zone_;
};

}  // namespace sluice
