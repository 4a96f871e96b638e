/// The question whether a browser goes on as another buyer.
#pragma once

#include <string>

#include "server/pages/frame.hpp"
#include "sluice/sale.hpp"

namespace sluice::server {

/// A link can say who its visitor is to be, and anybody can send it: whom the browser knows already
/// is asked first.
http::Response which_buyer_page(const std::string& sale, const BuyerId& present,
                                const BuyerId& brought, const std::string& token,
                                const std::string& form_token, const PageReader& reader);

}  // namespace sluice::server
