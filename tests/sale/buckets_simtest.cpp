// A sale with buckets: units that move to where buyers are, whoever dies on the way, and whatever
// one of its servers forgets.
#include <gtest/gtest.h>

#include <set>

#include "sale/bucket_life.hpp"
#include "support/comes_true.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::BucketLife;

TEST(SaleBuckets, KeepABuyerInOneBucketAndNumberWithItsLetter) {
  BucketLife life{BucketLife::usual(16), 8};
  std::set<std::string> numbers;
  for (std::int64_t i = 0; i < 8; ++i) {
    const auto buyer = life.buyer_of(i);
    const auto first = life.buy(buyer);
    ASSERT_EQ(first.outcome, SaleOutcome::admitted);
    EXPECT_EQ(first.order->number.substr(0, 3), fmt::format("MT{}", static_cast<char>('A' + i)));
    EXPECT_EQ(first.order->number.substr(11), "0001");
    EXPECT_EQ(life.buy(buyer).order, first.order) << "the same request";
    numbers.insert(first.order->number);
  }
  EXPECT_EQ(numbers.size(), 8U);
  life.expect_sound();
}

TEST(SaleBuckets, V30_TheOnlyUnitOfEightBucketsIsSoldOnce) {
  for (std::int64_t holder = 0; holder < 8; ++holder) {
    BucketLife life{BucketLife::usual(1), 8};
    const auto first = life.buy(life.buyer_of(holder));
    EXPECT_EQ(first.outcome, SaleOutcome::admitted) << "it comes to where he is";
    for (std::int64_t i = 0; i < 8; ++i)
      EXPECT_EQ(life.buy(life.buyer_of(i, 1)).outcome, SaleOutcome::sold_out);
    life.expect_sound();
  }
}

TEST(SaleBuckets, V31_ATransferThatWasKilledAtAnyStepEndsOnce) {
  for (int step = 0;; ++step) {
    BucketLife life{BucketLife::usual(2), 2};
    life.buy(life.buyer_of(1));
    const auto buyer = life.buyer_of(1, 1);
    const bool survived = life.survives_until(
        step, [&](auto&, BucketedSale& sale, auto&) { sale.buy({buyer}, {"r"}).get(); });
    life.expect_shares_add_up();
    const auto look = life.look();
    EXPECT_LE(look.units_under_way(), 1);
    EXPECT_TRUE(life.buy(buyer).has_order()) << "step " << step;
    EXPECT_EQ(life.buy(life.buyer_of(0)).outcome, SaleOutcome::sold_out);
    life.expect_sound();
    EXPECT_EQ(life.look().units_under_way(), 0);
    if (survived) {
      EXPECT_GE(step, 5);
      break;
    }
  }
}

TEST(SaleBuckets, V31_UnitsThatDiedOnTheirWayAreFoundByOtherBucketsToo) {
  BucketLife life{BucketLife::usual(3), 3};
  const auto look = life.look();
  ASSERT_EQ(life.shares().give(0, 1, 1, look).get()->units, 1);
  EXPECT_EQ(life.sale().status().get().under_way, 1);
  // 2 has one, 1 has one and one is on its way to it: all three come to a buyer of 2.
  EXPECT_EQ(life.buy(life.buyer_of(2), "r", 3).outcome, SaleOutcome::admitted);
  life.expect_sound();
}

TEST(SaleBuckets, V32_NobodyIsToldSoldOutWhileAUnitIsLeftAnywhere) {
  for (std::int64_t holder = 0; holder < 4; ++holder) {
    BucketLife life{BucketLife::usual(4), 4};
    for (std::int64_t i = 0; i < 4; ++i)
      if (i != holder) life.buy(life.buyer_of(i));
    const auto other = (holder + 1) % 4;
    EXPECT_EQ(life.buy(life.buyer_of(other, 1), "r", 2).outcome, SaleOutcome::not_enough);
    EXPECT_EQ(life.look().at(holder).left(), 1) << "nothing moves for an order that cannot be";
    EXPECT_EQ(life.buy(life.buyer_of(other, 1)).outcome, SaleOutcome::admitted);
    EXPECT_EQ(life.buy(life.buyer_of(other, 2)).outcome, SaleOutcome::sold_out);
    life.expect_sound();
  }
}

/// A buyer asks, and something happens before each bucket is looked at: their servers are asked one
/// after another.
Admission ask_amid(BucketLife& life, const std::string& buyer,
                   const std::function<void(std::int64_t bucket)>& before_look) {
  test::FaultyStore store{life.store()};
  bool is_batch = false;
  std::int64_t looks = 0;
  store.on_batch = [&](const Batch&, const CallOptions&) { is_batch = true; };
  store.plan = [&](std::string_view call) {
    const bool was_batch = std::exchange(is_batch, false);
    if (call != "sale/buckets/look") return test::Fault::none;
    if (was_batch) return test::Fault::refused;
    before_look(looks++ % life.buckets());
    return test::Fault::none;
  };
  auto sale = std::move(*BucketedSale::load(store, "s").get());
  return sale.buy({buyer}, {"r"}).get();
}

// A unit is under way when the others are looked at: at no instant was none left.
TEST(SaleBuckets, V32_AUnitThatRunsAheadOfTheLookIsNotMissed) {
  BucketLife life{BucketLife::usual(1), 2};  // bucket 0 has it
  const auto buyer = life.buyer_of(1);
  int moves = 0;
  const auto answer = ask_amid(life, buyer, [&](std::int64_t bucket) {
    const auto look = life.look();
    if (++moves > 40 || look.at(bucket).left() == 0) return;
    const auto given = life.shares().give(bucket, 1 - bucket, 1, look).get();
    life.shares().take(bucket, 1 - bucket, *given, look).get();
  });
  EXPECT_TRUE(answer.outcome == SaleOutcome::moving || answer.has_order())
      << to_string(answer.outcome);
  EXPECT_TRUE(life.buy(buyer).has_order());
  life.expect_sound();
}

// One of two units is always left: before the one that there is is sold the other one comes back.
TEST(SaleBuckets, V32_AUnitThatComesBackBehindTheLookIsNotMissed) {
  BucketLife life{BucketLife::usual(2), 2};
  const auto buyer = life.buyer_of(0, 1);
  ASSERT_TRUE(life.buy(life.buyer_of(0), "0").has_order());
  std::int64_t sold_in = 0;
  int changes = 0;
  const auto answer = ask_amid(life, buyer, [&](std::int64_t bucket) {
    if (bucket == sold_in || ++changes > 40) return;
    auto sale = life.sale();
    const auto before = fmt::to_string(changes - 1);
    ASSERT_TRUE(sale.cancel(life.orders(), {life.buyer_of(sold_in)}, {before}, "why").now);
    sold_in = bucket;
    ASSERT_TRUE(life.buy(life.buyer_of(sold_in), fmt::to_string(changes)).has_order());
  });
  EXPECT_TRUE(answer.outcome == SaleOutcome::moving || answer.has_order())
      << to_string(answer.outcome);
  EXPECT_TRUE(life.buy(buyer).has_order());
  life.expect_sound();
}

TEST(SaleBuckets, BorrowsHalfOfWhatADonorHasSoThatOthersNeedNotWait) {
  BucketLife life{BucketLife::usual(2000), 2};
  test::FaultyStore counted{life.store()};
  auto sale = std::move(*BucketedSale::load(counted, "s").get());
  const auto buyer = life.buyer_of(1);
  for (int i = 0; i < 2000; ++i)
    ASSERT_EQ(sale.buy({buyer}, {fmt::to_string(i)}).get().outcome, SaleOutcome::admitted) << i;
  EXPECT_LE(counted.executed("sale/buckets/give"), 11U) << "log2 of 1000";
  EXPECT_EQ(sale.buy({buyer}, {"late"}).get().outcome, SaleOutcome::sold_out);
  life.expect_sound();
}

TEST(SaleBuckets, ABorrowCostsFourRoundTripsAndABuyerWithoutOneNoneMore) {
  BucketLife life{BucketLife::usual(2), 2};
  const auto trips = [&](const std::string& buyer) {
    int steps = 0;
    life.survives([&](std::string_view) { ++steps; },
                  [&](auto&, BucketedSale& sale, auto&) { sale.buy({buyer}, {"r"}).get(); });
    return steps;
  };
  EXPECT_EQ(trips(life.buyer_of(1)), 1);
  EXPECT_EQ(trips(life.buyer_of(1, 1)), 5);
}

TEST(SaleBuckets, AnOrderOfManyUnitsGathersThemFromAllBuckets) {
  BucketLife life{BucketLife::usual(26), 26};
  EXPECT_EQ(life.buy(life.buyer_of(7), "r", 27 - 1).outcome, SaleOutcome::admitted);
  EXPECT_EQ(life.buy(life.buyer_of(8)).outcome, SaleOutcome::sold_out);
  life.expect_sound();
  const auto row = life.orders().stock("s:7");
  EXPECT_EQ(row->left, 0);
  EXPECT_EQ(row->moved, 25) << "the rows of the others gave it what its own had not";
}

TEST(SaleBuckets, UnitsOfACancelledOrderAreSoldInAnyBucket) {
  BucketLife life{BucketLife::usual(4), 4};
  const auto buyer = life.buyer_of(0);
  ASSERT_EQ(life.buy(buyer, "r", 4).outcome, SaleOutcome::admitted);
  life.work();
  auto sale = life.sale();
  EXPECT_TRUE(sale.cancel(life.orders(), {buyer}, {"r"}, "why").now);
  for (std::int64_t i = 0; i < 4; ++i)
    EXPECT_EQ(life.buy(life.buyer_of(i, 1)).outcome, SaleOutcome::admitted) << i;
  life.expect_sound();
}

// Where units are to be looked for in other buckets, and one of them does not answer, it is kept
// all the same: workers go on with it, and the provider need not tell it for ever.
TEST(SaleBuckets, V07_ALatePaymentIsKeptThoughAnotherBucketDoesNotAnswer) {
  auto definition = BucketLife::usual(4);
  definition.payment = PaymentTerms{.window = 1ms, .grace = 0us, .price = 5, .currency = "CNY"};
  BucketLife life{definition, 2};
  const auto buyer = life.buyer_of(0);
  const auto order = life.buy(buyer, "r", 2).order;
  ASSERT_TRUE(order);
  life.work();
  auto sale = life.sale();
  ASSERT_TRUE(test::comes_true([&] { return sale.expire(life.orders()) == 1; }));
  ASSERT_TRUE(life.buy(life.buyer_of(0, 1), "r", 2).has_order()) << "his bucket is empty again";
  life.work();
  const Payment payment{.provider = "acme",
                        .event = "late",
                        .sale = "s",
                        .order = order->number,
                        .amount = 10,
                        .currency = "CNY"};
  const auto units_of_others_away = [](std::string_view call) {
    if (call == "sale/buckets/look") throw Error{Errc::connection, "away", Effect::none};
  };
  EXPECT_THROW(
      life.survives(units_of_others_away, [&](Store&, BucketedSale& whole,
                                              OrderStore& orders) { whole.pay(orders, payment); }),
      Error);
  const auto kept = life.orders().payments().list("s:0", PaymentState::waiting, 10);
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(sale.pay(life.orders(), payment).state, PaymentState::applied) << "of the other bucket";
  life.expect_sound();
}

TEST(SaleBuckets, TheStockOfTheWholeChangesInBothDirections) {
  BucketLife life{BucketLife::usual(8), 4};
  auto sale = life.sale();
  for (std::int64_t i = 0; i < 3; ++i) life.buy(life.buyer_of(i));
  EXPECT_FALSE(sale.change_stock(life.orders(), 2)) << "3 are sold";
  EXPECT_TRUE(sale.change_stock(life.orders(), 3));
  EXPECT_EQ(life.buy(life.buyer_of(3)).outcome, SaleOutcome::sold_out);
  EXPECT_EQ(sale.status().get().whole.stock, 3);
  EXPECT_TRUE(sale.change_stock(life.orders(), 20));
  EXPECT_EQ(life.buy(life.buyer_of(3), "r", 17).outcome, SaleOutcome::admitted);
  EXPECT_EQ(sale.status().get().whole.state, SaleState::sold_out);
  EXPECT_TRUE(sale.change_stock(life.orders(), 21));
  life.expect_sound();
  EXPECT_THROW(sale.bucket(0).change_stock(life.orders(), 5), Error);
  EXPECT_THROW(sale.change_stock(life.orders(), 100'000), Error) << "4 digits";
}

TEST(SaleBuckets, RefuseWhatCannotBe) {
  const auto store = engine::open_embedded({});
  const auto create = [&](const SaleDefinition& definition, std::int64_t buckets) {
    return BucketedSale::create(*store, definition, {.buckets = buckets}).get();
  };
  const auto usual = BucketLife::usual(10);
  EXPECT_THROW(create(usual, 1), Error);
  EXPECT_THROW(create(usual, 27), Error);
  auto large = usual;
  large.stock = 10'000;
  EXPECT_THROW(create(large, 2), Error) << "a bucket may sell all of it, and has 9999 numbers";
  create(usual, 4);
  create(usual, 4);
  EXPECT_THROW(create(usual, 8), Error) << "it has 4";
  auto plain = usual;
  plain.name = "plain";
  plain.number_type = "P";
  Sale::create(*store, plain).get();
  EXPECT_THROW(create(plain, 4), Error) << "it is there without buckets";
  auto beside = usual;
  beside.number_type = "B";
  EXPECT_THROW(Sale::create(*store, beside).get(), Error) << "it is there with buckets";
  EXPECT_THROW(Sale::check(*store, beside).get(), Error);
  EXPECT_FALSE(BucketedSale::load(*store, "plain").get());
  EXPECT_FALSE(BucketedSale::load(*store, "nobody").get());
  EXPECT_EQ(BucketedSale::load(*store, "s").get()->definition(), usual);
}

TEST(SaleBuckets, NothingOfTheirNameIsMadeBesideThemAtAnyStep) {
  const auto usual = BucketLife::usual(10);
  auto plain = usual;
  plain.number_type = "P";
  const auto is_done = [](const auto& deed) {
    try {
      return deed();
    } catch (const Error& refused) {
      EXPECT_EQ(refused.errc(), Errc::bad_argument) << refused.what();
      return false;
    }
  };
  using Deed = std::function<bool(Store&)>;
  const Deed make_plain = [&](Store& at) { return Sale::create(at, plain).get(), true; };
  const Deed make_buckets = [&](Store& at) {
    return BucketedSale::create(at, usual, {.buckets = 3}).get(), true;
  };
  for (const bool is_plain_overtaken : {true, false})
    for (int step = 0, calls = 0; calls >= step; ++step) {
      const auto store = engine::open_embedded({});
      test::FaultyStore line{*store};
      const auto& overtaken = is_plain_overtaken ? make_plain : make_buckets;
      const auto& other = is_plain_overtaken ? make_buckets : make_plain;
      bool is_other_made = false;
      calls = 0;
      line.plan = [&](std::string_view) {
        if (calls++ == step) is_other_made = is_done([&] { return other(*store); });
        return test::Fault::none;
      };
      const bool is_made = is_done([&] { return overtaken(line); });
      EXPECT_FALSE(is_made && is_other_made) << "step " << step;
      const bool sells = is_done([&] { return Sale::load(*store, "s").get().has_value(); });
      const bool sells_in_buckets =
          is_done([&] { return BucketedSale::load(*store, "s").get().has_value(); });
      EXPECT_FALSE(sells && sells_in_buckets) << "step " << step;
      EXPECT_FALSE(sells && (is_plain_overtaken ? is_other_made : is_made)) << "step " << step;
    }
}

TEST(SaleBuckets, NothingOfTheirNameSellsBesideThem) {
  const auto orders = open_order_store("sqlite::memory:");
  const auto usual = BucketLife::usual(10);
  auto plain = usual;
  plain.number_type = "P";
  const auto is_refused = [](const auto& deed) {
    try {
      deed();
    } catch (const Error& error) {
      return error.errc() == Errc::bad_argument;
    }
    return false;
  };
  {
    const auto store = engine::open_embedded({});
    BucketedSale::create(*store, usual, {.buckets = 4}, *orders);
    EXPECT_TRUE(is_refused([&] { Sale::create(*store, plain).get(); }));
    for (std::int64_t i = 0; i < 3; ++i)  // where some of the buckets are lost, too
      for (const auto& key : BucketLife::keys(i)) store->run({"DEL", key}).get();
    EXPECT_TRUE(is_refused([&] { Sale::create(*store, plain).get(); }));
  }
  const auto empty = engine::open_embedded({});  // the store is lost, the database is not
  EXPECT_TRUE(is_refused([&] { Sale::create(*empty, plain, *orders); }));
  EXPECT_THROW(BucketedSale::create(*empty, usual, {.buckets = 5}, *orders), Error) << "4 there";
  auto other = plain;
  other.name = "other";
  other.number_type = "O";
  Sale::create(*empty, other, *orders);
  const auto empty_again = engine::open_embedded({});
  EXPECT_TRUE(
      is_refused([&] { BucketedSale::create(*empty_again, other, {.buckets = 4}, *orders); }));
  EXPECT_TRUE(Sale::names(*empty_again).get().empty()) << "and nothing was made";
}

TEST(SaleBuckets, ABucketSellsToItsOwnBuyersAlone) {
  auto definition = BucketLife::usual(8);
  definition.limit = 1;
  BucketLife life{definition, 4};
  auto sale = life.sale();
  const auto buyer = life.buyer_of(2);
  for (std::int64_t i = 0; i < 4; ++i) {
    if (i == 2) continue;
    EXPECT_THROW(sale.bucket(i).buy({buyer}, {"r"}).get(), Error) << "he would have one of each";
  }
  EXPECT_TRUE(sale.bucket(2).buy({buyer}, {"r"}).get().has_order());
  EXPECT_EQ(life.buy(buyer, "r2").outcome, SaleOutcome::already_bought);
  life.expect_sound();
}

TEST(SaleBuckets, ABucketIsArchivedWhenTheWholeSaleIsClosed) {
  BucketLife life{BucketLife::usual(4), 2};
  auto sale = life.sale();
  EXPECT_THROW(sale.bucket(0).archive(life.orders()), Error) << "the other one still sells";
  for (std::int64_t i = 0; i < 4; ++i)
    EXPECT_TRUE(life.buy(life.buyer_of(1, static_cast<int>(i))).has_order()) << i;
  EXPECT_EQ(life.buy(life.buyer_of(0)).outcome, SaleOutcome::sold_out);
  sale.close(life.orders());
  life.work();
  for (std::int64_t i = 0; i < 2; ++i) EXPECT_TRUE(sale.bucket(i).archive(life.orders()));
  EXPECT_EQ(sale.status().get().whole.state, SaleState::archived);
  EXPECT_EQ(life.buy(life.buyer_of(0)).outcome, SaleOutcome::closed);
}

// --- servers that forget ---

/// Bucket 0 gives all it has to bucket 1, which sells it; then one of them forgets.
class BucketLoss : public testing::Test {
 protected:
  BucketLoss() {
    for (std::int64_t i = 0; i < 2; ++i) life_.save(i);
  }
  void sell_all_in(std::int64_t bucket) {
    EXPECT_EQ(life_.buy(life_.buyer_of(bucket), "all", 10).outcome, SaleOutcome::admitted);
  }
  BucketLife life_{BucketLife::usual(10), 2};
};

TEST_F(BucketLoss, ADonorThatForgotWhatItGaveDoesNotSellItOnceMore) {
  sell_all_in(1);
  life_.fail_over(0);
  EXPECT_EQ(life_.buy(life_.buyer_of(0)).outcome, SaleOutcome::recovering);
  EXPECT_EQ(life_.buy(life_.buyer_of(1, 1)).outcome, SaleOutcome::recovering)
      << "nobody knows what bucket 0 has";
  life_.recover(0);
  for (std::int64_t i = 0; i < 2; ++i)
    EXPECT_EQ(life_.buy(life_.buyer_of(i, 1)).outcome, SaleOutcome::sold_out);
  life_.expect_sound();
}

TEST_F(BucketLoss, AReceiverThatForgotWhatItGotHasItAgain) {
  sell_all_in(1);
  life_.work();
  life_.fail_over(1);
  life_.recover(1);
  EXPECT_EQ(life_.buy(life_.buyer_of(0)).outcome, SaleOutcome::sold_out);
  life_.expect_sound();
}

TEST_F(BucketLoss, UnitsOfOrdersThatAreLostForGoodAreSoldAgain) {
  sell_all_in(1);  // neither store nor database has it
  life_.fail_over(1);
  life_.recover(1);
  sell_all_in(0);
  life_.expect_sound();
}

TEST_F(BucketLoss, ABucketThatIsGoneIsMadeAgainFromTheDatabaseAndTheOthers) {
  EXPECT_EQ(life_.buy(life_.buyer_of(0), "r", 7).outcome, SaleOutcome::admitted);
  life_.work();
  for (std::int64_t lost = 0; lost < 2; ++lost) {
    life_.lose(lost);
    EXPECT_EQ(BucketedSale::load(life_.store(), "s").get()->definition(), life_.definition());
    EXPECT_EQ(life_.sale().status().get().whole.state, SaleState::recovering);
    life_.recover(lost);
    life_.expect_sound();
  }
  for (std::int64_t i = 0; i < 2; ++i) life_.lose(i);
  EXPECT_FALSE(BucketedSale::load(life_.store(), "s").get());
  recover_buckets(life_.store(), "s", life_.orders());
  life_.expect_sound();
  EXPECT_EQ(life_.buy(life_.buyer_of(1), "r", 3).outcome, SaleOutcome::admitted);
}

TEST_F(BucketLoss, AProgramThatCreatesTheSaleAgainDoesNotSellALostBucketOnceMore) {
  sell_all_in(1);
  life_.lose(0);
  auto again =
      BucketedSale::create(life_.store(), life_.definition(), {.buckets = life_.buckets()}).get();
  EXPECT_EQ(again.buy({life_.buyer_of(0)}, {"r"}).get().outcome, SaleOutcome::recovering);
  life_.recover(0);
  EXPECT_EQ(again.buy({life_.buyer_of(0)}, {"r"}).get().outcome, SaleOutcome::sold_out);
  life_.expect_sound();
}

TEST_F(BucketLoss, AWorkerThatRecoversRestoresTheShareToo) {
  sell_all_in(1);
  life_.fail_over(0);
  auto sale = life_.sale();
  OrderWorker{life_.store(), sale.bucket(0), life_.orders(), {.recovers = true}}.drain();
  life_.expect_sound();
}

/// Whoever has taken units out of a donor, and is slow, comes too late when it was recovered.
TEST_F(BucketLoss, UnitsThatWereGivenBeforeARecoveryAreNotTakenAfterIt) {
  for (std::int64_t lost = 0; lost < 2; ++lost) {
    const auto look = life_.look();
    for (std::int64_t i = 0; i < 2; ++i) life_.save(i);
    const auto given = life_.shares().give(0, 1, 1, look).get();
    ASSERT_TRUE(given && given->n > 0);
    life_.fail_over(lost);
    EXPECT_FALSE(lost == 1 && life_.shares().take(0, 1, *given, look).get()) << "it is shut";
    life_.recover(lost);
    EXPECT_FALSE(life_.shares().take(0, 1, *given, look).get());
    life_.expect_shares_add_up();
  }
  life_.expect_sound();
}

TEST_F(BucketLoss, ARestorationMayBeKilledAtEveryStep) {
  for (int step = 0;; ++step) {
    BucketLife life{BucketLife::usual(9), 3};
    for (std::int64_t i = 0; i < 3; ++i) life.save(i);
    EXPECT_EQ(life.buy(life.buyer_of(1), "r", 6).outcome, SaleOutcome::admitted);
    const auto look = life.look();
    life.shares().give(look.at(0).left() > 0 ? 0 : 2, 1, 1, look).get();
    life.fail_over(0);
    life.fail_over(2);
    life.recover(2);  // all but the share
    int left = step;
    const bool survived = life.survives(
        BucketLife::at_step_of_shares(left, [] { throw BucketLife::Killed{}; }),
        [](Store& store, auto&, OrderStore& orders) { recover(store, "s:0", orders); });
    life.heal();
    life.expect_sound();
    EXPECT_EQ(life.buy(life.buyer_of(2), "r", 3).outcome, SaleOutcome::admitted) << step;
    EXPECT_EQ(life.buy(life.buyer_of(0)).outcome, SaleOutcome::sold_out);
    ASSERT_FALSE(HasFailure()) << "step " << step;
    if (survived) break;
  }
}

TEST_F(BucketLoss, ARestorationMayBeOvertakenAtEveryStep) {
  for (int fatal = 0;; ++fatal) {
    BucketLife life{BucketLife::usual(9), 3};
    for (std::int64_t i = 0; i < 3; ++i) life.save(i);
    EXPECT_EQ(life.buy(life.buyer_of(1), "r", 6).outcome, SaleOutcome::admitted);
    life.fail_over(0);
    int left = fatal;
    try {
      life.survives(BucketLife::at_step_of_shares(left, [&] { life.recover(0); }),
                    [](Store& store, auto&, OrderStore& orders) { recover(store, "s:0", orders); });
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::server) << error.what();
    }
    life.heal();
    life.expect_sound();
    EXPECT_EQ(life.buy(life.buyer_of(2), "r", 3).outcome, SaleOutcome::admitted) << fatal;
    ASSERT_FALSE(HasFailure()) << "step " << fatal;
    if (left >= 0) break;
  }
}

}  // namespace
}  // namespace sluice
