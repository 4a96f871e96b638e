#include "sluice/order_store.hpp"

#include "sale/order_store_sql.hpp"

namespace sluice {

std::unique_ptr<OrderStore> open_order_store(const std::string& url) {
  struct Scheme {
    std::string_view prefix;
    SqlDialect (*dialect)(const std::string& rest);
  };
  static constexpr Scheme schemes[] = {{"sqlite:", sqlite_dialect}};
  for (const auto& scheme : schemes)
    if (url.starts_with(scheme.prefix))
      return make_sql_order_store(scheme.dialect(url.substr(scheme.prefix.size())));
  throw Error{Errc::bad_argument,
              "the URL of a database for orders begins with sqlite: (as in "
              "sqlite:/var/lib/shop/orders.db), not with '" +
                  url.substr(0, url.find(':')) + "'"};
}

}  // namespace sluice
