#include "sale/ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/integer.hpp"
#include "sale/sums.hpp"

namespace sluice::sale {
namespace {

constexpr std::size_t label_size = 8;  // yyyymmdd

/// -1: not a number.
std::int64_t digits_of(std::string_view text) noexcept {
  return parse_integer<std::int64_t>(text).value_or(-1);
}

}  // namespace

LedgerLine line_of(const SaleOrder& order, const SaleDefinition& sale) {
  LedgerLine line{.id = order.id, .units = order.units};
  std::string_view number = order.number;
  const auto expected =
      sale.number_type.size() + label_size + static_cast<std::size_t>(sale.digits);
  if (number.size() != expected || !number.starts_with(sale.number_type)) return line;
  number.remove_prefix(sale.number_type.size());
  line.day = std::max<std::int64_t>(digits_of(number.substr(0, label_size)), 0);
  line.sequence = digits_of(number.substr(label_size));
  return line;
}

void Ledger::add(const LedgerLine& line) {
  ++orders_;
  units_ = sum(units_, line.units);

  // Ids rise, so each number must follow the highest one, or begin a later day with 1.
  const bool follows = line.day == highest_.day && line.sequence == highest_.sequence + 1;
  const bool begins = line.day > highest_.day && line.sequence == 1;
  if (follows || begins) {
    ++in_place_;
  } else if (first_fault_.empty()) {
    first_fault_ = fmt::format("id {} has number {} of day {}, after number {} of day {}", line.id,
                               line.sequence, line.day, highest_.sequence, highest_.day);
  }
  last_ = line;
  if (std::pair{line.day, line.sequence} > std::pair{highest_.day, highest_.sequence})
    highest_ = line;
}

}  // namespace sluice::sale
