/// What clients saw of counters, and what in it cannot be: a lost INCR, one that was done twice, a
/// value that is older than what was told before.
///
/// A counter's replies are numbers of its own history: each INCR that was told has one of its own,
/// and what began after it ended has to see it. So the check takes one pass a key, and no search.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sluice::test {

struct CounterEvent {
  std::string key;
  bool adds = true;                     ///< INCR; false: GET
  std::optional<std::int64_t> value{};  ///< empty: nobody knows whether it was done
  std::int64_t begun = 0, ended = 0;    ///< of one clock
};

/// In sentences, at most a hundred. `last`: what each counter says when all is over.
inline std::vector<std::string> contradictions(std::span<const CounterEvent> history,
                                               const std::map<std::string, std::int64_t>& last) {
  std::vector<std::string> found;
  const auto say = [&](std::string text) {
    if (found.size() < 100) found.push_back(std::move(text));
  };
  std::map<std::string, std::vector<const CounterEvent*>> by_key;
  for (const auto& event : history) by_key[event.key].push_back(&event);
  for (auto& [key, events] : by_key) {
    std::vector<std::int64_t> begun;  // of all that add
    std::vector<const CounterEvent*> by_end;
    std::map<std::int64_t, int> told;
    std::int64_t unknown = 0;
    for (const auto* event : events) {
      if (event->adds) begun.push_back(event->begun);
      if (!event->value) {
        unknown += event->adds ? 1 : 0;
        continue;
      }
      by_end.push_back(event);
      if (event->adds && ++told[*event->value] == 2)
        say(fmt::format("{}: two INCR were told {}", key, *event->value));
    }
    std::ranges::sort(begun);
    std::ranges::sort(by_end, {}, &CounterEvent::ended);
    std::ranges::sort(events, {}, &CounterEvent::begun);
    std::size_t over = 0;
    std::int64_t seen = 0;  // by what ended before this began
    for (const auto* event : events) {
      for (; over < by_end.size() && by_end[over]->ended < event->begun; ++over)
        seen = std::max(seen, *by_end[over]->value);
      if (!event->value) continue;
      if (*event->value < seen + (event->adds ? 1 : 0))
        say(fmt::format("{}: {} is told {} after {} was told", key, event->adds ? "INCR" : "GET",
                        *event->value, seen));
      const auto most = std::ranges::upper_bound(begun, event->ended) - begun.begin();
      if (*event->value > most)
        say(fmt::format("{}: {} is told {}, and only {} INCR were begun", key,
                        event->adds ? "INCR" : "GET", *event->value, most));
    }
    const auto at_last = last.find(key);
    const auto end = at_last == last.end() ? 0 : at_last->second;
    const auto known = static_cast<std::int64_t>(begun.size()) - unknown;
    if (end < known || end > known + unknown)
      say(fmt::format(
          "{}: in the end it is {}, after {} INCR that were told and {} of which nobody knows", key,
          end, known, unknown));
  }
  return found;
}

}  // namespace sluice::test
