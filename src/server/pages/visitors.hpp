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
/// tried. He is held to the rates of Buyers, as who asks the API is.
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
  /// Or 429.
  Expected<Visitor, http::Response> who_looks(const http::Request& request,
                                              std::string_view sale) const;
  /// The browser of a new visitor keeps his name.
  void keep(http::Response& response, const http::Request& request, const Visitor& visitor) const;

  /// Who sends a form; or 401, 403 or 429.
  Expected<BuyerId, http::Response> who_sends(const http::Request& request, const Form& form,
                                              std::string_view sale) const;
  /// The hidden field "form" of a page.
  std::string form_token(const BuyerId& buyer, std::string_view sale) const;

  /// Whom its cookie names.
  std::optional<BuyerId> known(const http::Request& request, std::string_view sale) const;
  /// Whom a token brings that the shop's login gave him; or why it is none, or 429.
  Expected<BuyerId, http::Response> who_is_brought(const http::Request& request,
                                                   std::string_view sale,
                                                   const std::string& token) const;
  /// 303 to the page of the sale with the cookie, and without the token in the URL. REQUIRES:
  /// who_is_brought() by it.
  static http::Response greet(const http::Request& request, std::string_view sale,
                              const std::string& token);
  /// Where buyers have tokens: they know the names in them.
  bool have_tokens() const noexcept { return buyers_.has_keys(); }

 private:
  std::string_view cookie_name() const noexcept;

  const Buyers& buyers_;
  const TokenKeys keys_;
};

/// "/sales/tea"
std::string path_of_page(std::string_view sale);

}  // namespace sluice::server
