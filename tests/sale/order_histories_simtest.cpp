// Random histories of one order each (order_histories.hpp), on SQLite. SLUICE_LONG: so many.
#include <cstdlib>

#include "sale/order_histories.hpp"
#include "support/sanitized.hpp"

namespace sluice {
namespace {

TEST(OrderHistories, SV01_SV13_NoRightPaymentIsFlaggedInAnyOfThem) {
  test::Histories histories{sale::sqlite_dialect("sqlite::memory:")};
  const auto* const wanted = std::getenv("SLUICE_LONG");
  histories.expect_sound(wanted ? std::atoi(wanted) : test::rounds(2000));
  for (const auto& step : sale::transitions())
    EXPECT_TRUE(histories.seen.contains(sale::row_of_page(step))) << sale::row_of_page(step);
}

}  // namespace
}  // namespace sluice
