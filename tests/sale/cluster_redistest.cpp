// A sale in a Redis Cluster.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "sale/shop.hpp"
#include "sluice/bucketed_sale.hpp"
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

TEST(SaleInACluster, ASaleWithBucketsSellsOnSeveralMastersAndOutlivesOneOfThem) {
  ClusterRig rig;
  const test::TempDir folder;
  const auto orders = open_order_store(test::database_url(folder));
  const auto store = open(rig.url());
  auto sale = BucketedSale::create(
      *store, {.name = "s", .stock = 12, .limit = 0, .number_type = "MT"}, {.buckets = 6}, *orders);
  std::set<std::size_t> masters;
  for (int i = 0; i < 6; ++i) masters.insert(rig.master_of(fmt::format("{{s:{}}}:sale", i)));
  EXPECT_GE(masters.size(), 2U);

  const auto all = sale.buy({"ann"}, {"r"}, 10).get();
  EXPECT_EQ(all.outcome, SaleOutcome::admitted) << "of all masters";
  for (std::int64_t i = 0; i < 6; ++i) OrderWorker{*store, sale.bucket(i), *orders}.drain();

  rig.fail_over(*masters.begin());
  EXPECT_EQ(sale.buy({"bob"}, {"r"}, 3).get().outcome, SaleOutcome::recovering)
      << "what some of the buckets have is not known";
  recover_buckets(*store, "s", *orders);
  EXPECT_EQ(sale.buy({"bob"}, {"r"}, 3).get().outcome, SaleOutcome::not_enough);
  EXPECT_EQ(sale.buy({"bob"}, {"r"}, 2).get().outcome, SaleOutcome::admitted);
  for (std::int64_t i = 0; i < 6; ++i) OrderWorker{*store, sale.bucket(i), *orders}.drain();
  const auto found = audit(*store, sale, *orders);
  for (const auto& check : found.checks)
    EXPECT_TRUE(check.ok) << check.name << ": " << check.figure << ", expected " << check.expected;
}

}  // namespace
}  // namespace sluice
