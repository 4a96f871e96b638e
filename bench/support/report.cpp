#include "support/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>
#include <thread>

namespace sluice::bench {
namespace {

using Steady = std::chrono::steady_clock;

[[noreturn]] void usage(std::string_view bad) {
  fmt::print(stderr, "'{}': the options are --rounds N, --ms N, --only NAME and --json\n", bad);
  std::exit(64);
}

std::vector<double> ratios_of(const Row& row) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < row.values.size() && i < row.peer_values.size(); ++i)
    ratios.push_back(row.values[i] / row.peer_values[i]);
  return ratios;
}

bool reached(const Row& row, double value) {
  return row.at_most ? value <= *row.goal : value >= *row.goal;
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--json") {
      options.json = true;
    } else if (word == "--rounds" && i + 1 < argc) {
      options.rounds = std::max(1, std::atoi(argv[++i]));
    } else if (word == "--only" && i + 1 < argc) {
      options.only = argv[++i];
    } else if (word == "--ms" && i + 1 < argc) {
      options.each = std::chrono::milliseconds{std::max(1, std::atoi(argv[++i]))};
    } else {
      usage(word);
    }
  }
  return options;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double rate(std::chrono::milliseconds duration, const std::function<std::size_t()>& work) {
  const auto start = Steady::now();
  const auto end = start + duration;
  std::size_t done = 0;
  auto now = start;
  for (; now < end; now = Steady::now()) done += work();
  return static_cast<double>(done) / std::chrono::duration<double>(now - start).count();
}

double rate(std::chrono::milliseconds duration, int threads,
            const std::function<std::size_t(int)>& work) {
  std::vector<double> rates(static_cast<std::size_t>(threads));
  {
    std::vector<std::jthread> crew;
    for (int i = 0; i < threads; ++i)
      crew.emplace_back(
          [&, i] { rates[static_cast<std::size_t>(i)] = rate(duration, [&] { return work(i); }); });
  }
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

void Report::print() const {
  nlohmann::json rows = nlohmann::json::array();
  fmt::print("{}: median of {} rounds of {} ms\n\n", area_, options_.rounds, options_.each.count());
  fmt::print("{:<64} {:>12} {:>12} {:>7} {:>8}\n", "figure", "value", "peer", "ratio", "goal");
  for (const auto& row : rows_) {
    const double value = median(row.values);
    const double peer = median(row.peer_values);
    const double ratio = median(ratios_of(row));
    const bool compared = !row.peer.empty();
    const std::string goal = row.goal
                                 ? fmt::format("{}{}{}", row.at_most ? "<= " : ">= ", *row.goal,
                                               reached(row, compared ? ratio : value) ? "" : " !")
                                 : std::string{};
    fmt::print("{:<64} {:>12.4g} {:>12} {:>7} {:>8}\n", row.figure + " (" + row.unit + ")", value,
               compared ? fmt::format("{:.4g}", peer) : "",
               compared ? fmt::format("{:.2f}", ratio) : "", goal);
    if (compared) fmt::print("    against {}\n", row.peer);
    nlohmann::json entry{{"figure", row.figure}, {"unit", row.unit}, {"value", value}};
    if (compared) entry.update({{"peer", row.peer}, {"peer_value", peer}, {"ratio", ratio}});
    if (row.goal) entry.update({{"goal", *row.goal}, {"at_most", row.at_most}});
    rows.push_back(std::move(entry));
  }
  if (options_.json)
    fmt::print(
        "{}\n",
        nlohmann::json{{"area", area_}, {"rounds", options_.rounds}, {"figures", rows}}.dump());
}

}  // namespace sluice::bench
