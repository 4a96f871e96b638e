/// What every benchmark shares: rates, medians, and a table in which a figure stands beside its
/// floor and its peer.
///
/// A figure on a noisy machine is a ratio within one round: figure and peer are measured one after
/// the other, several rounds long, and the median of the ratios counts.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::bench {

struct Options {
  int rounds = 5;
  std::chrono::milliseconds each{1000};  ///< how long one measurement takes
  bool json = false;
  std::string only;  ///< the one measurement that is wanted; empty: all

  bool wants(std::string_view measurement) const { return only.empty() || only == measurement; }
};

/// --rounds N --ms N --json --only NAME; exits with 64 and a line on stderr for anything else.
Options parse_options(int argc, char** argv);

double median(std::vector<double> values);

/// Calls `work` until the time is up; `work` returns how many operations it did. Operations a
/// second.
double rate(std::chrono::milliseconds duration, const std::function<std::size_t()>& work);

/// The same with `threads` threads at once.
double rate(std::chrono::milliseconds duration, int threads,
            const std::function<std::size_t(int thread)>& work);

struct Row {
  std::string figure;
  std::string unit;
  std::vector<double> values;       ///< one a round
  std::string peer;                 ///< what it is compared with; empty: nothing
  std::vector<double> peer_values;  ///< of the same rounds
  std::optional<double> goal;       ///< of the ratio, or of the value where there is no peer
  bool at_most = false;             ///< the goal is an upper bound
};

class Report {
 public:
  explicit Report(std::string area, Options options) : area_(std::move(area)), options_(options) {}
  void add(Row row) { rows_.push_back(std::move(row)); }
  /// Prints the table, and with --json one object on the last line.
  void print() const;

 private:
  std::string area_;
  Options options_;
  std::vector<Row> rows_;
};

}  // namespace sluice::bench
