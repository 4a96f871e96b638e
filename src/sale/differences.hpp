/// What an audit found to differ: counted by check, and the first ones named.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/sale_audit.hpp"

namespace sluice::sale {

class Differences {
 public:
  explicit Differences(std::size_t named) : most_(named) {}

  void add(std::string_view check, std::string where, std::string what, std::string in_store,
           std::string elsewhere);
  /// Compares an order as the store has it with the same as it stands elsewhere, field by field.
  /// False: they differ, and it is noted.
  bool compare(std::string_view check, const SaleOrder& in_store, const SaleOrder& elsewhere);

  /// How many things a check found.
  std::int64_t count(std::string_view check) const;
  /// "12 differ: order MT..1, id 5, buyer 'ann': units is 2 in the store and 3 elsewhere; ..."
  std::string summary(std::string_view check) const;
  std::vector<AuditDifference> take() { return std::move(named_); }

 private:
  const std::size_t most_;
  std::map<std::string, std::int64_t, std::less<>> counts_;
  std::vector<AuditDifference> named_;
};

/// "order MT202601020003, id 7598..., buyer 'ann'".
std::string place_of(const SaleOrder& order);
/// Bytes of users for a line of text: what is no plain ASCII as \xNN, long ones cut.
std::string shown(std::string_view bytes);

}  // namespace sluice::sale
