/// An order as text ("n seconds sequence number units issued_us request", see admit.lua) and as an
/// entry of a stream.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sluice/sale.hpp"

namespace sluice {

/// Empty: the text is none that admit.lua writes.
std::optional<Order> order_of(std::string_view text, std::string buyer);

/// An entry of the orders stream.
struct OrderEntry {
  std::string id;              ///< "1795243971762-0"
  std::optional<Order> order;  ///< empty: poison, its fields make no order
};

/// `entry` is an item of an XRANGE or XREADGROUP reply: [id, [field, value, ...]].
OrderEntry entry_of(const Value& entry);
DeadLetter dead_letter_of(const Value& entry);

}  // namespace sluice
