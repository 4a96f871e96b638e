/// The counters of a sale in its store, as an audit reads them.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <string_view>

#include "base/integer.hpp"
#include "sale/definition.hpp"
#include "sale/records.hpp"
#include "sale/sums.hpp"
#include "sluice/store.hpp"

namespace sluice::sale {

/// The fields of the sale's hash that are numbers, and what each may be: written without zeros in
/// front.
struct CounterRow {
  std::string_view name;
  std::int64_t least;
  std::int64_t most;
  bool always;  ///< also in a sale that has sold nothing
};

inline constexpr CounterRow counter_rows[] = {
    {"capacity", 0, most_units, true},
    {"sold", 0, most_units, true},
    {"orders", 0, most_units, true},
    {"lane", 1, 4095, true},
    {"born", 1, end_of_time, true},
    {"given_back", 0, most_units, false},
    {"last", 1, end_of_time, false},
    {"day", 1970'01'01, 9999'12'31, false},
    {"taken", 0, most_units, false},
    {"second", 0, 0x7fff'ffff, false},
    {"sequence", 0, 0xffff'ffff, false},
    {"changes", 0, most_units, false},
    {"refused", 1, most_units, false},
    {"epoch", 0, most_units, false},
    {"gaps", 0, most_units, false},
    {"closed", 1, 1, false},
    {"archived", 1, end_of_time, false},
    {"buyer_gaps", 0, most_units, false},
    {"added", -most_units, most_units, false},
};

/// The hash of the sale, read at one instant.
class Counters {
 public:
  void read(Store& store, const SaleKeys& keys) {
    const auto reply = store.run({"HGETALL", keys.sale}).get();
    fields_.clear();
    const auto& items = reply.as_items();
    for (std::size_t i = 0; i + 1 < items.size(); i += 2)
      fields_[items[i].as_text()] = items[i + 1].as_text();
  }

  bool exist() const { return fields_.contains("capacity"); }
  bool has(const std::string& name) const { return fields_.contains(name); }
  const std::string& text(const std::string& name) const {
    static const std::string none;
    const auto found = fields_.find(name);
    return found == fields_.end() ? none : found->second;
  }
  bool is_right(const CounterRow& row) const {
    const auto& written = text(std::string{row.name});
    const auto number = parse_integer<std::int64_t>(written);
    return number && *number >= row.least && *number <= row.most &&
           fmt::to_string(*number) == written;
  }
  /// 0: it is not there, or not right.
  std::int64_t number(const std::string& name) const {
    const auto* const row = std::ranges::find(counter_rows, name, &CounterRow::name);
    return is_right(*row) ? *parse_integer<std::int64_t>(text(name)) : 0;
  }
  /// Of the last order that these counters count; -1: there is none.
  std::int64_t last_id() const {
    if (text("second").empty()) return -1;
    return number("second") << 32 | number("sequence");
  }

 private:
  std::map<std::string, std::string> fields_;
};

}  // namespace sluice::sale
