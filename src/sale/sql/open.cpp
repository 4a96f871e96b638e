#include "sale/sql/order_store.hpp"
#include "sale/sql/schemes.hpp"

namespace sluice {

std::unique_ptr<OrderStore> open_order_store(const std::string& url, OrderStoreLimits limits) {
  using namespace std::chrono_literals;
  if (limits.answer < 1s || limits.answer > 24h)
    throw Error{Errc::bad_argument, "a call of a database may take 1 s to 24 h"};
  for (const auto& scheme : sale::schemes())
    if (url.starts_with(scheme.prefix)) {
      auto dialect = scheme.dialect(url);
      if (!limits.makes_file && dialect.need_file) dialect.need_file();
      return std::make_unique<sale::SqlOrderStore>(std::move(dialect), limits);
    }
  throw Error{Errc::bad_argument, std::string{"the URL of a database for orders begins with "} +
                                      std::string{sale::known_schemes()} + ", not with '" +
                                      url.substr(0, url.find(':')) + "'"};
}

}  // namespace sluice
