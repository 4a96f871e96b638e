#include <algorithm>
#include <array>

#include "proxy/ring/ring.hpp"

namespace sluice::proxy {
namespace {

struct Row {
  Distribution distribution;
  std::string_view name;
};
constexpr std::array rows{Row{Distribution::ketama, "ketama"}, Row{Distribution::modula, "modula"},
                          Row{Distribution::random, "random"}};

}  // namespace

std::string_view to_string(Distribution distribution) noexcept {
  return std::ranges::find(rows, distribution, &Row::distribution)->name;
}

std::optional<Distribution> find_distribution(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(rows, name, &Row::name);
  if (found == rows.end()) return std::nullopt;
  return found->distribution;
}

}  // namespace sluice::proxy
