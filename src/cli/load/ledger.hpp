/// What buyers were told of their orders, and whether it can all be true.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json_value.hpp"

namespace sluice::load {

/// An order as an answer shows it.
struct ToldOrder {
  std::string id;
  std::string number;
  std::int64_t units = 0;

  /// Empty: it has no order, or a part of it is of another form, or of a size that none has.
  static std::optional<ToldOrder> of(const JsonValue& body);
  bool operator==(const ToldOrder&) const = default;
};
std::string to_string(const ToldOrder& order);

/// How a sale stands, as an answer shows it.
struct ToldSale {
  std::int64_t stock = 0;
  std::int64_t sold = 0;
  bool has_price = false;  ///< orders may end unpaid, and their units are sold again

  /// Empty: it does not say so, or figures that no sale has.
  static std::optional<ToldSale> of(const JsonValue& body);
};

/// A promise that was broken, with what shows it.
struct Breach {
  std::string promise;
  std::string evidence;
};

class Ledger {
 public:
  /// Breaches are counted all; the evidence of the first ones is kept.
  static constexpr std::size_t most_kept = 20;

  /// A purchase was answered by an order, for the first time or again.
  void told(const std::string& buyer, const std::string& key, std::int64_t asked_units,
            const ToldOrder& order);
  /// A purchase that was answered by an order before is refused now.
  void refused(const std::string& buyer, const std::string& key, const std::string& problem);
  /// A purchase got no last answer: it may have happened.
  void left_open(std::int64_t units) { open_units_ += units; }
  /// An order that was told is looked at: as it is shown, or why it is not.
  void shown(const std::string& buyer, const std::optional<ToldOrder>& order, std::string_view why);

  /// How the sale stood before the first click, and after the last. `alone`: nobody else buys.
  void compare(const ToldSale& before, const ToldSale& after, bool alone);

  struct Entry {
    std::string key;
    ToldOrder order;
  };
  /// Null: no order was told.
  const Entry* find(const std::string& buyer) const;
  const std::unordered_map<std::string, Entry>& orders() const noexcept { return orders_; }
  std::int64_t units() const noexcept { return units_; }
  std::int64_t open_units() const noexcept { return open_units_; }
  std::uint64_t breaches() const noexcept { return breaches_; }
  const std::vector<Breach>& evidence() const noexcept { return evidence_; }
  /// A breach that was seen elsewhere.
  void broken(std::string_view promise, std::string_view evidence);

 private:
  std::unordered_map<std::string, Entry> orders_;         // by buyer: one wish each
  std::unordered_map<std::string, std::string> numbers_;  // whose they are
  std::unordered_map<std::string, std::string> ids_;
  std::int64_t units_ = 0;
  std::int64_t open_units_ = 0;
  std::uint64_t breaches_ = 0;
  std::vector<Breach> evidence_;
};

}  // namespace sluice::load
