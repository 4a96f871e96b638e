/// The page of a buyer's order.
#pragma once

#include <string>

#include "server/pages/frame.hpp"
#include "server/sales_text.hpp"

namespace sluice::server {

/// `pay_at`: a link to where it can be paid; empty: the page has none.
http::Response order_page(const SaleDefinition& sale, const ShownOrder& shown,
                          const std::string& form_token, const std::string& pay_at,
                          const PageReader& reader);

}  // namespace sluice::server
