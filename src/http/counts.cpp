#include "http/counts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace sluice::http {
namespace {

/// The sum of histograms, which is no longer written.
struct Sum {
  std::array<std::uint64_t, Histogram::buckets> counts{};
  std::chrono::nanoseconds time{};

  void add(const Histogram& histogram) noexcept {
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += histogram.count(i);
    time += histogram.sum();
  }
};

constexpr std::string_view requests = "sluice_http_requests_total";
constexpr std::string_view duration = "sluice_http_request_duration_seconds";

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>{time}.count();
}

}  // namespace

void Counts::answered(std::size_t route, int status, std::chrono::nanoseconds time) {
  auto& of_route = routes_[route];
  const auto row = status_row(status);
  auto* histogram = of_route.by_status[row].load(std::memory_order_relaxed);
  if (!histogram) {
    of_route.owned[row] = std::make_unique<Histogram>();
    histogram = of_route.owned[row].get();
    of_route.by_status[row].store(histogram, std::memory_order_release);
  }
  histogram->observe(time);
}

void Counts::refused(const ProblemType& problem) noexcept {
  const auto row = std::ranges::find(own_problems, &problem);
  if (row != own_problems.end())
    refused_[static_cast<std::size_t>(row - own_problems.begin())].add();
}

std::uint64_t Counts::answers() const noexcept {
  std::uint64_t all = 0;
  for (const auto& route : routes_)
    for (const auto& of_status : route.by_status)
      if (const auto* histogram = of_status.load(std::memory_order_acquire))
        all += histogram->count();
  return all;
}

std::string metrics_text(const Routes& routes, std::span<const Counts* const> loops) {
  std::string totals = fmt::format("# HELP {0} Requests answered\n# TYPE {0} counter\n", requests);
  std::string times = fmt::format(
      "# HELP {0} From the end of a request to its answer\n# TYPE {0} histogram\n", duration);
  const auto& table = routes.all();
  for (std::size_t route = 0; route <= table.size(); ++route) {
    const auto name = route < table.size() ? std::string_view{table[route].operation} : "none";
    for (std::size_t row = 0; row < statuses.size(); ++row) {
      Sum sum;
      for (const auto* loop : loops)
        if (const auto* histogram =
                loop->routes_[route].by_status[row].load(std::memory_order_acquire))
          sum.add(*histogram);
      const auto labels = fmt::format("route=\"{}\",code=\"{}\"", name, statuses[row].code);
      std::uint64_t count = 0;
      std::string buckets;
      for (std::size_t i = 0; i < sum.counts.size(); ++i) {
        count += sum.counts[i];
        if (i + 1 < sum.counts.size())
          buckets += fmt::format("{}_bucket{{{},le=\"{}\"}} {}\n", duration, labels,
                                 seconds(Histogram::bound(i)), count);
      }
      if (count == 0) continue;
      totals += fmt::format("{}{{{}}} {}\n", requests, labels, count);
      times += fmt::format(
          "{0}{1}_bucket{{{2},le=\"+Inf\"}} {3}\n{1}_sum{{{2}}} {4}\n"
          "{1}_count{{{2}}} {3}\n",
          buckets, duration, labels, count, seconds(sum.time));
    }
  }
  const auto sum = [&](auto counter) {
    std::int64_t all = 0;
    for (const auto* loop : loops) all += counter(*loop).get();
    return all;
  };
  std::string text = totals + times;
  text += fmt::format(
      "# HELP sluice_http_connections Connections that are open\n"
      "# TYPE sluice_http_connections gauge\nsluice_http_connections {}\n"
      "# HELP sluice_http_refused_total Requests and connections refused\n"
      "# TYPE sluice_http_refused_total counter\n",
      sum([](const Counts& loop) -> auto& { return loop.open_connections; }));
  const auto add = [&](std::string_view cause, std::int64_t count) {
    text += fmt::format("sluice_http_refused_total{{cause=\"{}\"}} {}\n", cause, count);
  };
#define CAUSE(name) add(#name, sum([](const Counts& loop) -> auto& { return loop.name; }));
#include "http/causes.def"
#undef CAUSE
  for (std::size_t i = 0; i < own_problems.size(); ++i)
    add(own_problems[i]->name, sum([i](const Counts& loop) -> auto& { return loop.refused_[i]; }));
  return text;
}

}  // namespace sluice::http
