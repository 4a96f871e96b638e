/// A whole load test: finds the rate where none is given, lets the crowd buy, and compares what it
/// was told with how the sale stands.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "cli/load/crowd.hpp"
#include "cli/load/wire.hpp"

namespace sluice::load {

struct LoadOptions {
  std::vector<std::string> urls;
  bool allows_remote = false;  ///< targets that are not of this machine
  std::string ca;              ///< of https: whom to trust; empty: whom the system trusts
  CrowdPlan crowd;
  bool finds_rate = false;  ///< first how many can be served, then 70 % of that
  bool alone = true;        ///< nobody else buys or cancels, so the figures of the sale must agree
  bool audits = false;      ///< look at each order afterwards
  WireOptions wire;
  std::chrono::nanoseconds patience = std::chrono::seconds{30};  ///< after the last arrival
};

struct LoadReport {
  std::uint64_t seed = 0;
  std::string prefix;
  bool is_complete = true;  ///< no signal ended it
  double highest = 0;       ///< buyers a second that were served; 0: not looked for
  double rate = 0;          ///< buyers a second that came; 0: all at once
  std::chrono::nanoseconds lasted{};
  Tally tally;
  Tally checks;  ///< of the audit
  std::optional<ToldSale> before;
  std::optional<ToldSale> after;
  Ledger ledger;
  /// What promises could not be held against, one a line; empty: they all were.
  std::vector<std::string> unseen;

  double clicks_per_second() const;
  bool is_sound() const noexcept { return ledger.breaches() == 0; }
  bool is_seen() const noexcept { return unseen.empty(); }
};

/// What a person sees meanwhile.
using LoadProgress = std::function<void(const std::string& line)>;

/// Blocks for `lasts` and `patience` at most, and for less when `stop` asks. Throws Error
/// {bad_argument} for a URL that is none, a target of another machine, a sale that is not there;
/// {connection} where nobody answers.
LoadReport run_load_test(const LoadOptions& options, const std::stop_token& stop,
                         const LoadProgress& progress);

Json json_of(const LoadReport& report);
std::string text_of(const LoadReport& report);

}  // namespace sluice::load
