/// Whether a buyer may come to the counter of a sale now.
#pragma once

#include <optional>
#include <string>

#include "http/response.hpp"
#include "sluice/sale.hpp"
#include "sluice/task.hpp"

namespace sluice::server {

class Entrance {
 public:
  virtual ~Entrance() = default;
  /// False: everybody may come, and nothing of what follows need be asked.
  virtual bool guards(const std::string& sale) const = 0;
  /// Empty: he may. `ticket`: of the waiting room; empty: he has none. REQUIRES: what it is given
  /// lives until the Task ends.
  virtual Task<std::optional<http::Response>> stop(const std::string& ticket,
                                                   const std::string& sale,
                                                   const BuyerId& buyer) = 0;
  /// He has bought.
  virtual Task<void> served(const std::string& ticket, const std::string& sale,
                            const BuyerId& buyer) = 0;
};

}  // namespace sluice::server
