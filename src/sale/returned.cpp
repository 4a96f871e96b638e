#include "sale/returned.hpp"

#include <fmt/format.h>

namespace sluice::sale {

void each_returned(Store& store, const SaleKeys& keys, const VisitReturned& visit) {
  const auto most = fmt::to_string(page_size);
  std::string cursor = "0";
  do {
    const auto reply = store.run({"HSCAN", keys.returned, cursor, "COUNT", most}).get();
    const auto& fields = reply.as_items().at(1).as_items();
    for (std::size_t i = 0; i + 1 < fields.size(); i += 2)
      visit(fields[i].as_text(), fields[i + 1].as_text());
    cursor = reply.as_items().at(0).as_text();
  } while (cursor != "0");
}

}  // namespace sluice::sale
