// Random histories of a sale with buckets: buyers, cancellations, changes of the stock; processes
// die at any step, or others come between any two; buckets forget their latest seconds, also
// between a give and its take, while they wait for their recovery, and several at once. Whatever
// happens no unit is sold twice; and when all is healed, all are sold.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "sale/bucket_life.hpp"
#include "support/sanitized.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::BucketLife;

class RandomBuckets {
 public:
  explicit RandomBuckets(unsigned seed)
      : random_(seed),
        life_(BucketLife::usual(below(40)), 2 + static_cast<std::int64_t>(seed % 4)) {
    for (std::int64_t i = 0; i < life_.buckets(); ++i) life_.save(i);
  }

  void run(int steps) {
    for (int step = 0; step < steps && !testing::Test::HasFailure(); ++step) {
      act();
      expect_nothing_oversold();
    }
    finish();
  }

 private:
  int below(int bound) { return std::uniform_int_distribution{0, bound - 1}(random_); }
  std::int64_t any_bucket() { return below(static_cast<int>(life_.buckets())); }

  void act() {
    switch (below(10)) {
      case 0:
      case 1:
      case 2:
      case 3: return buy();
      case 4: return work();
      case 5: return cancel();
      case 6: return change_stock();
      case 7: return life_.save(any_bucket());
      case 8: return fail_over();
      default: return recover();
    }
  }

  /// Some processes die somewhere; on others something else happens there.
  template <class Deed>
  void dangerous(const Deed& deed, std::stop_source stop = {}) {
    int step = below(3) == 0 ? 1000 : below(14);
    const bool dies = below(2) == 0;
    const auto danger = [&](std::string_view) {
      if (step-- != 0) return;
      if (dies) throw BucketLife::Killed{};
      if (depth_ == 0) happen_between();
      stop.request_stop();
    };
    try {
      life_.survives(danger, deed);
    } catch (const Error& error) {  // what has to be recovered first
      EXPECT_TRUE(error.errc() == Errc::server || error.errc() == Errc::database ||
                  error.errc() == Errc::config_mismatch)  // a recovery that the store has forgotten
          << error.what();
    }
  }
  void happen_between() {
    ++depth_;
    switch (below(4)) {
      case 0: buy(); break;
      case 1: fail_over(); break;
      case 2: fail_over_and_recover(); break;
      default: act();
    }
    --depth_;
  }

  void buy() {
    const auto buyer = fmt::format("b{}", below(12));
    const auto request = fmt::format("r{}", below(6));
    const auto units = 1 + below(4);
    dangerous([&](Store&, BucketedSale& sale, OrderStore&) {
      const auto before = life_.look();
      const auto answer = sale.buy({buyer}, {request}, units).get();
      // With nothing that came between, a refusal is the plain truth.
      if (depth_ > 0 || !before.is_whole()) return;
      const auto after = life_.look();
      if (!after.nothing_came_since(before)) return;
      EXPECT_TRUE(answer.outcome != SaleOutcome::sold_out || after.left() == 0);
      EXPECT_TRUE(answer.outcome != SaleOutcome::not_enough || after.left() < units);
    });
    wishes_[{buyer, request}] = units;
  }

  void work() {
    const auto bucket = any_bucket();
    if (const auto share = life_.look().at(bucket); !share.is_there || share.is_shut) return;
    std::stop_source stop;  // it would wait until what came between is mended
    dangerous(
        [&](Store& store, BucketedSale& sale, OrderStore& orders) {
          OrderWorker{store, sale.bucket(bucket), orders}.drain(stop.get_token());
        },
        stop);
  }

  void cancel() {
    if (wishes_.empty()) return;
    auto wish = wishes_.begin();
    std::advance(wish, below(static_cast<int>(wishes_.size())));
    dangerous([&](Store&, BucketedSale& sale, OrderStore& orders) {
      sale.cancel(orders, {wish->first.first}, {wish->first.second}, "why");
    });
  }

  void change_stock() {
    const auto stock = below(60);
    dangerous(
        [&](Store&, BucketedSale& sale, OrderStore& orders) { sale.change_stock(orders, stock); });
  }

  void fail_over() {
    const auto bucket = any_bucket();
    if (below(5) == 0)
      life_.lose(bucket);
    else
      life_.fail_over(bucket);
  }

  void fail_over_and_recover() {
    const auto bucket = any_bucket();
    life_.fail_over(bucket);
    recover_all();
  }
  void recover_all() {
    life_.pass(61s);
    recover_buckets(life_.store(), "s", life_.orders(), {.new_store = true});
  }

  void recover() {
    const auto bucket = any_bucket();
    life_.pass(below(2) * 61s);
    dangerous([&](Store& store, BucketedSale&, OrderStore& orders) {
      sluice::recover(store, fmt::format("s:{}", bucket), orders);
    });
  }

  /// Neither in the database, nor in stores that know what they have.
  void expect_nothing_oversold() {
    std::int64_t recorded = 0;
    std::int64_t stock = 0;
    for (std::int64_t i = 0; i < life_.buckets(); ++i) {
      const auto row = life_.orders().stock(fmt::format("s:{}", i));
      recorded += row->initial + row->changed + row->moved - row->left;
      stock += row->initial + row->changed;
    }
    EXPECT_LE(recorded, stock);
    const auto look = life_.look();
    if (!look.is_whole()) return;
    std::int64_t sold = 0;
    for (const auto& share : look.shares) {
      EXPECT_LE(share.sold, share.capacity);
      sold += share.sold;
    }
    EXPECT_LE(sold, look.stock());
  }

  void finish() {
    recover_all();
    life_.expect_sound();
    auto sale = life_.sale();
    for (int i = 0; i < 200; ++i)
      if (sale.buy({fmt::format("last {}", i)}, {"r"}).get().outcome == SaleOutcome::sold_out)
        break;
    EXPECT_EQ(sale.status().get().whole.left(), 0) << "all can be sold";
    life_.expect_sound();
  }

  std::mt19937 random_;
  BucketLife life_;
  std::map<std::pair<std::string, std::string>, std::int64_t> wishes_;
  int depth_ = 0;
};

TEST(SaleBuckets, RandomHistoriesSellEachUnitOnceWhoeverDiesAndWhateverIsForgotten) {
  const int histories = test::rounds(60);
  for (int seed = 1; seed <= histories; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomBuckets{static_cast<unsigned>(seed)}.run(40);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace sluice
