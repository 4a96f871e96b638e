#include "sluice/metrics.hpp"

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

}  // namespace sluice
