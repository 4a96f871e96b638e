/// The page of a buyer's order.
#pragma once

#include <string>

#include "server/pages/frame.hpp"
#include "server/sales_text.hpp"

namespace sluice::server {

http::Response order_page(const SaleDefinition& sale, const ShownOrder& shown,
                          const std::string& form_token);

}  // namespace sluice::server
