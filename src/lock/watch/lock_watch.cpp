#include "sluice/lock_watch.hpp"

#include <algorithm>

#include "lock/watch/key_scan.hpp"

namespace sluice {
namespace {

/// Removes from `people` everybody who is not in `before` too.
template <class People>
void keep_only(People& people, const People& before) {
  std::erase_if(people, [&before](const auto& person) {
    return std::ranges::none_of(before, [&person](const auto& other) {
      return other.owner == person.owner && other.data == person.data;
    });
  });
}

/// The locks that the cycles go through.
std::vector<std::string> names_in(const std::vector<Deadlock>& deadlocks) {
  std::vector<std::string> names;
  for (const auto& deadlock : deadlocks)
    for (const auto& step : deadlock.steps) names.push_back(step.holds);
  return names;
}

Task<std::vector<Deadlock>> look_again(LockWatch& watch, std::vector<Deadlock> deadlocks,
                                       const std::vector<WatchedLock>& before) {
  std::vector<WatchedLock> now;
  for (const auto& name : names_in(deadlocks)) {
    std::optional<WatchedLock> lock = co_await watch.look(name);
    const auto then = std::ranges::find(before, name, &WatchedLock::name);
    if (!lock || then == before.end()) continue;
    keep_only(lock->info.holders, then->info.holders);
    keep_only(lock->info.waiters, then->info.waiters);
    now.push_back(*std::move(lock));
  }
  co_return deadlocks_in(wait_graph(now));
}

}  // namespace

LockWatch::LockWatch(Store& store, LockWatchOptions options)
    : store_(store), options_(std::move(options)) {
  if (options_.most == 0 || options_.step == 0)
    throw Error{Errc::bad_argument, "a search for locks needs a `most` and a `step` above 0"};
}

Task<LockList> LockWatch::list(OnProgress progress) {
  lock::KeyScan scan{store_, options_, std::move(progress)};
  co_return co_await scan.run();
}

Task<std::optional<WatchedLock>> LockWatch::look(std::string name) {
  const std::optional<LockKind> kind = co_await lock::kind_of(store_, name);
  if (!kind) co_return std::nullopt;
  co_return co_await lock::read_lock(store_, std::move(name), *kind);
}

Task<LockReport> LockWatch::report(OnProgress progress) {
  const LockList found = co_await list(std::move(progress));
  LockReport report{.graph = wait_graph(found.locks), .deadlocks = {}, .complete = found.complete};
  report.deadlocks = deadlocks_in(report.graph);
  if (report.deadlocks.empty()) co_return report;
  Clock& clock = store_.clock();
  co_await sleep_until(clock, Clock::add(clock.steady(), options_.second_look));
  auto looking = look_again(*this, std::move(report.deadlocks), found.locks);
  report.deadlocks = co_await looking;
  co_return report;
}

}  // namespace sluice
