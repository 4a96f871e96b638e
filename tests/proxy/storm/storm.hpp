/// Rounds of hostile requests, made of a seed, until one breaks something; then as little of it as
/// breaks it still.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "proxy/storm/stage.hpp"

namespace sluice::test {

struct StormOptions {
  std::string language = "memcached";
  std::uint64_t seed = 1;
  std::uint64_t first = 0;  ///< round to begin with
  std::uint64_t rounds = 1000;
  std::chrono::milliseconds time{};  ///< not 0: so long, however many rounds
  std::uint64_t findings = 1;        ///< ends with so many
  bool strict = false;               ///< `compat: strict`
  std::string avoid;                 ///< requests that match this expression are not sent
  bool shrinks = true;
  StageOptions stage;
};

class Storm {
 public:
  using Tell = std::function<void(const std::string&)>;
  Storm(StormOptions options, Tell tell);

  /// How many findings there were; each has been told.
  std::uint64_t run();
  /// The same while the proxy, as a program, is reloaded and upgraded and its servers are killed,
  /// for options.time. Findings are those of canaries alone.
  std::uint64_t run_in_chaos();
  /// Tells how long canaries wait, alone and beside so many hostile clients who rest for `pause`
  /// after each batch, for a half of options.time each.
  void compare_latencies(std::size_t hostile, std::chrono::milliseconds pause);

 private:
  using Case = std::vector<Round>;

  Round make_round(std::uint64_t number) const;
  Batch make_batch(Random& random) const;
  std::string request(Random& random) const;
  void tell(std::uint64_t round, const Finding& finding);
  /// Plays it on a fresh stage.
  std::optional<Finding> replay(const Case& rounds, std::chrono::milliseconds patience);

  StormOptions options_;
  Tell tell_;
  std::unique_ptr<Tongue> tongue_;
  std::optional<std::regex> avoided_;
  Case played_;  // on the present stage
  std::uint64_t requests_ = 0;
};

}  // namespace sluice::test
