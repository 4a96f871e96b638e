/// Where requests to buy are decided: all that came while one script ran travel in the next.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "number/period.hpp"
#include "sale/definition.hpp"
#include "sluice/sale.hpp"
#include "store/combiner.hpp"

namespace sluice::sale {

class Admissions {
 public:
  Admissions(Store& store, const SaleDefinition& sale);

  Task<Admission> decide(BuyerId buyer, RequestId request, std::int64_t units);
  std::shared_ptr<void> gather() { return combiner_.gather(); }

 private:
  struct Purchase {
    BuyerId buyer;
    RequestId request;
    std::int64_t units;
  };
  /// What becomes of one of them. A damaged record fails its own buyer's call alone.
  struct Decision {
    Admission admission;
    std::optional<Error> failure;
    explicit operator Admission() && {
      if (failure) throw std::move(*failure);
      return std::move(admission);
    }
  };
  /// One script of 256 purchases holds up a server for less than a millisecond.
  static constexpr std::size_t most_together = 256;

  Task<std::vector<Decision>> decide_all(std::vector<Purchase> purchases);
  Decision decision_of(const std::string& text, const Purchase& purchase) const;
  Task<Value> ask(const std::vector<Purchase>& purchases);

  Store& store_;
  const std::string name_;
  const SaleKeys keys_;
  const Calendar calendar_;
  std::optional<PeriodTable> days_;  // used by one batch at a time
  Combiner<Purchase, Decision, Admission> combiner_;
};

}  // namespace sluice::sale
