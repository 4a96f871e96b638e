/// Locks, their owners and their deadlocks as text for people, as JSON and as a graph for graphviz.
#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"
#include "sluice/lock_watch.hpp"

namespace sluice::cli {

/// A line each, with a heading; a lock with several holders has several, one that is only waited
/// for has one without a holder.
std::string table_of(const std::vector<WatchedLock>& locks);
/// All there is to know of one.
std::string detail_of(const WatchedLock& lock);
/// "held by make@host (pid 7, t9) and ..."; empty: nobody holds it.
std::string holders_of(const WatchedLock& lock);
/// Who waits for whom, then the deadlocks.
std::string text_of(const LockReport& report);
/// For `dot -Tsvg`: boxes are locks, and what is part of a deadlock is red.
std::string dot_of(const LockReport& report);

Json json_of(const WatchedLock& lock);
Json json_of(const LockReport& report);

}  // namespace sluice::cli
