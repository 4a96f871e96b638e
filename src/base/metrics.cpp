#include "sluice/metrics.hpp"

#include <fmt/format.h>

namespace sluice {

Metrics& metrics() noexcept {
  static Metrics all;
  return all;
}

std::span<const MetricRow> metrics_table() noexcept {
  static const MetricRow rows[] = {
#define SLUICE_ROW(field, name, help) {name, help, &metrics().field},
      SLUICE_METRICS(SLUICE_ROW)
#undef SLUICE_ROW
  };
  return rows;
}

std::span<const HistogramRow> histograms_table() noexcept {
  static const HistogramRow rows[] = {
#define SLUICE_ROW(field, name, help) {name, help, &metrics().field},
      SLUICE_HISTOGRAMS(SLUICE_ROW)
#undef SLUICE_ROW
  };
  return rows;
}

std::string labels_text(std::span<const MetricLabel> labels) {
  std::string text;
  for (const auto& label : labels) {
    if (!text.empty()) text += ',';
    text.append(label.name).append("=\"");
    for (const char c : label.value) {
      if (c == '"' || c == '\\') text += '\\';
      text += c == '\n' ? std::string{"\\n"} : std::string{c};
    }
    text += '"';
  }
  return text;
}

std::string prometheus_text(std::span<const MetricLabel> labels) {
  const auto own = labels_text(labels);
  const auto in_braces = own.empty() ? "" : fmt::format("{{{}}}", own);
  const auto before_le = own.empty() ? "" : own + ',';
  std::string text;
  const auto add = [&text]<class... Args>(fmt::format_string<Args...> form, Args&&... args) {
    text += fmt::format(form, std::forward<Args>(args)...);
  };
  for (const auto& row : metrics_table())
    add("# HELP {0} {1}\n# TYPE {0} counter\n{0}{2} {3}\n", row.name, row.help, in_braces,
        row.value->load(std::memory_order_relaxed));
  for (const auto& row : histograms_table()) {
    add("# HELP {0} {1}\n# TYPE {0} histogram\n", row.name, row.help);
    std::uint64_t so_far = 0;
    for (std::size_t bucket = 0; bucket < Histogram::buckets; ++bucket) {
      so_far += row.value->count(bucket);
      const bool last = bucket + 1 == Histogram::buckets;
      const std::chrono::duration<double> bound = Histogram::bound(bucket);
      add("{}_bucket{{{}le=\"{}\"}} {}\n", row.name, before_le,
          last ? "+Inf" : fmt::format("{}", bound.count()), so_far);
    }
    const std::chrono::duration<double> sum = row.value->sum();
    add("{0}_sum{1} {2}\n{0}_count{1} {3}\n", row.name, in_braces, sum.count(), so_far);
  }
  return text;
}

}  // namespace sluice
