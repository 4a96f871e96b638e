/// Who looks at a page: a browser, by its cookie.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http/response.hpp"
#include "server/buyers.hpp"
#include "server/pages/form.hpp"
#include "sluice/expected.hpp"
#include "sluice/token.hpp"

namespace sluice::server {

/// Where buyers have tokens, the cookie is the buyer's token, which the shop's login brings by
/// `?token=`. Where they are believed, a browser is given a name of its own, so that a sale can be
/// tried.
///
/// A form is taken with the token that its page had, which is the buyer's and the sale's, and from
/// no page of another site.
///
/// Threads: any. REQUIRES: `buyers` lives longer.
class Visitors {
 public:
  /// `keys` sign forms, and names.
  Visitors(const Buyers& buyers, TokenKeys keys) : buyers_(buyers), keys_(std::move(keys)) {}

  struct Visitor {
    std::optional<BuyerId> buyer;  ///< empty: he has to come from the shop's login
    bool is_new = false;           ///< keep() gives the browser its name
    std::string cookie = {};       ///< of a new one
  };
  Visitor who_looks(const http::Request& request, std::string_view sale) const;
  /// The browser of a new visitor keeps his name.
  void keep(http::Response& response, const http::Request& request, const Visitor& visitor) const;

  /// Who sends a form; or 401, or 403.
  Expected<BuyerId, http::Response> who_sends(const http::Request& request, const Form& form,
                                              std::string_view sale) const;
  /// The hidden field "form" of a page.
  std::string form_token(const BuyerId& buyer, std::string_view sale) const;

  /// 303 to `place` with the cookie, and without the token in the URL; or why the token is none.
  http::Response greet(const http::Request& request, const std::string& sale,
                       const std::string& token, std::string_view place) const;

 private:
  std::optional<BuyerId> known(const http::Request& request, std::string_view sale) const;

  const Buyers& buyers_;
  const TokenKeys keys_;
};

/// "/sales/tea"
std::string path_of_page(std::string_view sale);

}  // namespace sluice::server
