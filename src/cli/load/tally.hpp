/// What was measured: how often each answer came, and how long each kind of question took.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/latency.hpp"
#include "sluice/clock.hpp"

namespace sluice::load {

/// What a buyer does, one after another.
enum class Step : std::uint8_t { look, enter, poll, click, repeat, check };
inline constexpr std::size_t steps = 6;
std::string_view to_string(Step step) noexcept;

struct Tally {
  /// By step, then by "201", "409 sold-out", "broken connection" ...
  std::array<std::map<std::string, std::uint64_t, std::less<>>, steps> outcomes;
  /// From the moment at which a buyer meant to ask, not from the one at which a connection was free
  /// for him: a server that stands still delays all who come meanwhile, and they all count.
  std::array<LatencyCounts, steps> latencies;
  /// From a buyer's first click to his last answer, with all that he tried in between.
  LatencyCounts purchases;
  LatencyCounts slow;  ///< of those who send slowly; they are in no other figure

  std::uint64_t arrived = 0;
  std::uint64_t answered = 0;
  std::uint64_t clicks_answered = 0;
  std::uint64_t decided =
      0;  ///< purchases that the sale has granted or refused: 200, 201, 409, 410
  std::uint64_t admitted = 0;
  std::uint64_t repeats_same = 0;  ///< repeats that were answered by the same order
  std::uint64_t retries = 0;
  std::uint64_t broken = 0;    ///< connections that broke, were refused or took too long
  std::uint64_t given_up = 0;  ///< buyers who had no last answer after all their tries
  std::string first_trouble;   ///< of a connection

  std::uint64_t answered_at(Step step) const noexcept {
    return latencies[static_cast<std::size_t>(step)].count();
  }
  std::uint64_t count_of(Step step, std::string_view outcome) const noexcept;
};

}  // namespace sluice::load
