// A sale in a Redis Cluster.
#include <gtest/gtest.h>

#include "sale/shop.hpp"
#include "sluice/sale_recovery.hpp"
#include "support/cluster_rig.hpp"

namespace sluice {
namespace {

using test::ClusterRig;

TEST(SaleInACluster, ClosesWhenItsSlotHasAnotherMasterAndRecovers) {
  ClusterRig rig;
  const test::TempDir folder;
  const auto orders = open_order_store(test::database_url(folder));
  const auto store = open(rig.url());
  auto sale = Sale::create(*store, {.name = "s", .stock = 10, .number_type = "MT"}).get();
  const auto first = test::buy(sale, "ann", "r");
  EXPECT_EQ(first.outcome, SaleOutcome::admitted);
  OrderWorker{*store, sale, *orders}.drain();
  test::expect_clean(*store, sale, *orders);

  rig.fail_over(rig.master_of("{s}:sale"));
  EXPECT_EQ(test::buy(sale, "bob", "r").outcome, SaleOutcome::recovering);
  EXPECT_EQ(test::buy(sale, "ann", "r").order, first.order) << "what it knows it tells";
  EXPECT_EQ(sale.status().get().state, SaleState::recovering);

  recover(*store, "s", *orders);
  EXPECT_EQ(sale.status().get().state, SaleState::open);
  EXPECT_EQ(test::buy(sale, "bob", "r").outcome, SaleOutcome::admitted);
  OrderWorker{*store, sale, *orders}.drain();
  test::expect_clean(*store, sale, *orders);
}

}  // namespace
}  // namespace sluice
