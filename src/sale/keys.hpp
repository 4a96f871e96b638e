/// Where a sale lies in the store.
#pragma once

#include <string>
#include <string_view>

#include "store/key_name.hpp"

namespace sluice {

/// The consumer group of the orders stream.
inline constexpr std::string_view sale_group = "workers";

struct SaleKeys {
  explicit SaleKeys(std::string_view name)
      : sale(key_with_suffix(name, "sale")),
        buyers(key_with_suffix(name, "buyers")),
        requests(key_with_suffix(name, "requests")),
        orders(key_with_suffix(name, "orders")),
        dead(key_with_suffix(name, "dead")) {}

  std::string sale;
  std::string buyers;
  std::string requests;
  std::string orders;
  std::string dead;
};

}  // namespace sluice
