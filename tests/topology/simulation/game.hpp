/// What the games of topology share: virtual time, and how a seed ends.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "sluice/clock.hpp"

namespace sluice::topology::simulation {

/// A judge's word.
struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What a seed has shown, for those who set the numbers.
struct GameFigures {
  std::size_t questions = 0;
  std::int64_t converged_ms = 0;  ///< after all has settled
};

/// Nothing: all was right. Else what was not.
using Verdict = std::optional<std::string>;
Verdict play_cluster(std::uint64_t seed, GameFigures* figures = nullptr);
Verdict play_sentinels(std::uint64_t seed, GameFigures* figures = nullptr);
Verdict play_freshness(std::uint64_t seed, GameFigures* figures = nullptr);

template <class Game>
Verdict play(std::uint64_t seed, GameFigures* figures) {
  GameFigures unused;
  try {
    Game{seed, figures ? *figures : unused}.play();
    return std::nullopt;
  } catch (const Wrong& wrong) {
    return fmt::format("seed {}: {}", seed, wrong.what());
  }
}

/// Events of virtual time, one after another, and the wakes of what is played.
class Events {
 public:
  SteadyTime now() const noexcept { return now_; }

  void at(SteadyTime when, std::function<void()> what) { events_.emplace(when, std::move(what)); }
  void every(std::chrono::nanoseconds period, std::function<void()> what) {
    at(now_ + period, [this, period, what = std::move(what)] {
      what();
      every(period, what);
    });
  }

  /// `wakes` tells when `act` is to be called at the latest. False: the time is up, and it is not
  /// done.
  bool run_until(SteadyTime end, const std::function<SteadyTime()>& wakes,
                 const std::function<void()>& act, const std::function<bool()>& is_done) {
    constexpr int most_at_once = 10'000;
    int at_once = 0;
    while (now_ < end) {
      const auto next = std::max(now_, std::min(events_.begin()->first, wakes()));
      at_once = next == now_ ? at_once + 1 : 0;
      if (at_once > most_at_once) throw Wrong{"it spins"};
      now_ = next;
      if (events_.begin()->first <= now_) {
        auto event = events_.extract(events_.begin());
        event.mapped()();
      }
      act();
      if (is_done()) return true;
    }
    return false;
  }

 private:
  SteadyTime now_{std::chrono::hours{1}};
  std::multimap<SteadyTime, std::function<void()>> events_;
};

}  // namespace sluice::topology::simulation
