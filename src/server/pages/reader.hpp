/// Who reads a page: in which language, of which shop.
#pragma once

#include <string>

#include "http/response.hpp"
#include "server/pages/languages.hpp"
#include "server/pages/storefront.hpp"

namespace sluice::server {

struct PagesOptions {
  Storefront front = {};
  Languages languages = Languages{};
  std::string checkout = {};  ///< the URL where an order is paid; empty: pages have no link to one
};

/// REQUIRES: the options live longer.
struct PageReader {
  const PagesOptions& options;
  const Texts& texts;
  std::string place;        ///< the path of a page that shows the same in other languages
  std::string cookie = {};  ///< Set-Cookie: a link has chosen the language, which the browser keeps

  /// `?lang=` decides; without it what it said before, then Accept-Language.
  static PageReader of(const http::Request& request, const PagesOptions& options);

  Html say(std::string_view key, std::initializer_list<Texts::Put> puts = {}) const {
    return texts.say(key, puts);
  }
  /// A sale as buyers call it.
  std::string_view name_of(std::string_view sale) const {
    return options.front.name_of(sale, texts);
  }
};

}  // namespace sluice::server
