/// Who did what: a journal of operators, in the store.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/store.hpp"

namespace sluice::server {

struct JournalEntry {
  std::string id;  ///< of its place: the store's time, and a count
  WallTime at{};
  std::string by;      ///< the id of the operator's key; "local" where there are no keys
  std::string action;  ///< "close_sale"
  std::string target;  ///< the sale, where it is of one
  std::string detail;  ///< what was asked
  std::string order;   ///< the number of the order that it turned out to be of; empty: of none
  std::string amount;  ///< of its money, in the smallest unit of `currency`; empty: of none
  std::string currency;
  std::string outcome;  ///< "begun": it goes on, or its process died meanwhile; "done", or why not
};

/// Guarantee: an entry is in the store before what it tells of begins. When that has ended, its
///   outcome takes the place of "begun" in one step. The last `most` entries are kept.
/// Not guaranteed: an entry that the store has lost; each one is a line of the log, too. Who may
///   write into the store may write here.
/// Threads: any. REQUIRES: the store lives longer.
/// In Redis: stream sluice:service:journal, no TTL; about 200 bytes an entry.
class Journal {
 public:
  static constexpr std::size_t most = 10'000;
  static constexpr std::string_view key = "sluice:service:journal";

  explicit Journal(Store& store) : store_(store) {}

  /// Returns its id. Throws what the store throws: nothing is to be begun then.
  std::string begin(const JournalEntry& entry);
  /// Never throws: what was done stays done. A failure is logged.
  void end(const std::string& id, const JournalEntry& entry) noexcept;
  /// Never throws: an entry of what was done all the same stands in the log alone.
  void miss(const JournalEntry& entry, std::string_view why) noexcept;

  /// Up to `count` entries before the one with id `after` (empty: from the newest), newest first.
  std::vector<JournalEntry> read(const std::string& after, std::size_t count);

 private:
  Store& store_;
};

/// "1795243971762-0". The first and the last id that there could be are none: before or behind them
/// a server looks for nothing.
bool is_stream_id(std::string_view text) noexcept;

}  // namespace sluice::server
