/// For which store this process changes each sale, and how far it has seen the database come.
///
/// Threads: any.
#pragma once

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "sluice/order_store.hpp"

namespace sluice::sale {

struct SaleLink {
  StoreOfSale store;
  std::string mark;
};

class SaleLinks {
 public:
  void tie(const std::string& sale, const StoreOfSale& store) {
    const std::lock_guard lock{mutex_};
    links_[sale].store = store;
  }
  void raise(const std::string& sale, const std::string& mark) {
    const std::lock_guard lock{mutex_};
    auto& known = links_[sale].mark;
    known = std::max(known, mark);
  }
  /// Also to a lower one.
  void begin_anew(const std::string& sale, const std::string& mark) {
    const std::lock_guard lock{mutex_};
    links_[sale].mark = mark;
  }
  SaleLink find(const std::string& sale) const {
    const std::lock_guard lock{mutex_};
    const auto found = links_.find(sale);
    return found == links_.end() ? SaleLink{} : found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, SaleLink, std::less<>> links_;  // guarded by mutex_
};

}  // namespace sluice::sale
