#include "proxy/config/members.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace sluice::proxy {
namespace {

/// Insertions, deletions and changes from one word to the other (Levenshtein).
std::size_t distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < to.size(); ++j) {
      const auto changed = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string hint_for(std::string_view mistaken, std::span<const SettingRow> rows) {
  constexpr std::size_t longest = 40;
  constexpr std::size_t far = 3;
  if (mistaken.size() > longest || rows.empty()) return "";
  const auto nearest = std::ranges::min_element(
      rows, {}, [&](const SettingRow& row) { return distance(mistaken, row.name); });
  return distance(mistaken, nearest->name) < far
             ? fmt::format("; did you mean '{}'?", nearest->name)
             : "";
}

std::string quoted(std::string_view text) {
  const bool plain = !text.empty() && text.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_./") == std::string_view::npos;
  if (plain) return std::string{text};
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n')
      result += "\\n";
    else if (c == '\r')
      result += "\\r";
    else if (c == '\t')
      result += "\\t";
    else
      result += c;
  }
  return result + '"';
}

}  // namespace sluice::proxy
