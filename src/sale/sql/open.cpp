#include "sale/sql/order_store.hpp"

namespace sluice {

std::unique_ptr<OrderStore> open_order_store(const std::string& url) {
  struct Scheme {
    std::string_view prefix;
    sale::SqlDialect (*dialect)(const std::string& rest);
  };
  static constexpr Scheme schemes[] = {{"sqlite:", sale::sqlite_dialect}};
  for (const auto& scheme : schemes)
    if (url.starts_with(scheme.prefix))
      return std::make_unique<sale::SqlOrderStore>(
          scheme.dialect(url.substr(scheme.prefix.size())));
  throw Error{Errc::bad_argument,
              "the URL of a database for orders begins with sqlite: (as in "
              "sqlite:/var/lib/shop/orders.db), not with '" +
                  url.substr(0, url.find(':')) + "'"};
}

}  // namespace sluice
