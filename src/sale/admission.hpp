/// Where requests to buy are decided: all that came while one script ran travel in the next.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "number/period.hpp"
#include "sale/definition.hpp"
#include "sluice/sale.hpp"
#include "store/combiner.hpp"

namespace sluice::sale {

class AdmissionDesk {
 public:
  AdmissionDesk(Store& store, const SaleDefinition& sale);

  Task<Admission> decide(BuyerId buyer, RequestId request, std::int64_t units);

 private:
  struct Wish {
    BuyerId buyer;
    RequestId request;
    std::int64_t units;
  };
  /// One script of 256 wishes holds up a server for less than a millisecond.
  static constexpr std::size_t most_together = 256;

  Task<std::vector<Admission>> decide_all(std::vector<Wish> wishes);
  Task<Value> ask(const std::vector<Wish>& wishes);

  Store& store_;
  const std::string name_;
  const SaleKeys keys_;
  const Calendar calendar_;
  std::optional<PeriodTable> days_;  // the combiner sends one batch at a time, so nobody shares it
  Combiner<Wish, Admission> combiner_;
};

}  // namespace sluice::sale
