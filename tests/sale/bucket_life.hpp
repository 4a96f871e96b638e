/// A sale with buckets, with all its parts in one process: the embedded engine, SQLite, and virtual
/// time; buckets that lose their latest seconds, and processes that die at any step.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "engine/embedded_store.hpp"
#include "sale/buckets/shares.hpp"
#include "sale/watched_orders.hpp"
#include "sluice/bucketed_sale.hpp"
#include "support/faulty_store.hpp"

namespace sluice::test {

class BucketLife {
 public:
  struct Killed {};

  static SaleDefinition usual(std::int64_t stock) {
    return {.name = "s", .stock = stock, .limit = 0, .number_type = "MT", .digits = 4};
  }

  explicit BucketLife(SaleDefinition definition, std::int64_t buckets)
      : definition_(std::move(definition)), options_{.buckets = buckets} {
    BucketedSale::create(*store_, definition_, options_, *orders_);
    shares_.emplace(*store_, definition_, buckets);
  }

  Store& store() { return *store_; }
  OrderStore& orders() { return *orders_; }
  const SaleDefinition& definition() const { return definition_; }
  std::int64_t buckets() const { return options_.buckets; }
  void pass(std::chrono::microseconds time) { clock_.advance(time); }

  BucketedSale sale() { return std::move(*BucketedSale::load(*store_, "s").get()); }
  sale::Look look() { return shares_->look().get(); }
  sale::Shares& shares() { return *shares_; }
  Admission buy(const std::string& buyer, const std::string& request = "r",
                std::int64_t units = 1) {
    auto sale = this->sale();
    return sale.buy({buyer}, {request}, units).get();
  }

  /// A buyer of that bucket.
  std::string buyer_of(std::int64_t bucket, int which = 0) {
    auto sale = this->sale();
    for (int i = 0;; ++i) {
      auto name = fmt::format("b{}", i);
      if (&sale.bucket_of({name}) == &sale.bucket(bucket) && which-- == 0) return name;
    }
  }

  /// Brings all orders of a bucket in.
  void work(std::int64_t bucket) {
    auto sale = this->sale();
    OrderWorker{*store_, sale.bucket(bucket), *orders_}.drain();
  }
  void work() {
    for (std::int64_t i = 0; i < buckets(); ++i) work(i);
  }

  // --- servers that come back without their latest seconds ---

  /// What a replica of a bucket has.
  void save(std::int64_t bucket) {
    for (const auto& key : keys(bucket)) {
      const auto copy = key + ":old";
      store_->run({"DEL", copy}).get();
      store_->run({"COPY", key, copy}).get();
    }
  }
  /// It takes the master's place: nobody may change the bucket before it is recovered.
  void fail_over(std::int64_t bucket) {
    for (const auto& key : keys(bucket)) {
      store_->run({"DEL", key}).get();
      store_->run({"COPY", key + ":old", key}).get();
    }
    const auto sale = keys(bucket).front();
    if (store_->run({"EXISTS", sale}).get().as_integer() == 1)
      store_->run({"HSET", sale, "store", "another"}).get();
  }
  /// The server comes back empty.
  void lose(std::int64_t bucket) {
    for (const auto& key : keys(bucket)) store_->run({"DEL", key}).get();
  }
  void recover(std::int64_t bucket) {
    sluice::recover(*store_, fmt::format("s:{}", bucket), *orders_);
  }

  /// As workers do, once those that died are known to be dead.
  void heal() {
    pass(std::chrono::seconds{61});
    auto sale = this->sale();
    for (std::int64_t i = 0; i < buckets(); ++i)
      OrderWorker{*store_, sale.bucket(i), *orders_, {.recovers = true}}.drain();
  }

  // --- processes that die, or are overtaken ---

  /// Does `deed` in a process; before each of its steps, by the store and the database,
  /// `before_step` is called, which may throw Killed. False: it was killed.
  template <class Deed>
  bool survives(const std::function<void(std::string_view call)>& before_step, const Deed& deed) {
    bool is_ready = false;
    FaultyStore mortal{*store_};
    mortal.plan = [&](std::string_view call) {
      if (is_ready) before_step(call);
      return Fault::none;
    };
    WatchedOrders mortal_orders{*orders_};
    mortal_orders.before = before_step;
    auto sale = BucketedSale::load(mortal, "s").get();
    if (!sale) return true;  // every bucket is gone
    is_ready = true;
    try {
      deed(mortal, *sale, mortal_orders);
    } catch (const Killed&) {
      return false;
    }
    return true;
  }
  /// The same of one that is killed before its n-th step, from 0.
  template <class Deed>
  bool survives_until(int step, const Deed& deed) {
    return survives(
        [&](std::string_view) {
          if (step-- == 0) throw Killed{};
        },
        deed);
  }

  /// Calls `mishap` before the n-th step of a deed, of those that have to do with shares.
  static std::function<void(std::string_view)> at_step_of_shares(
      int& n, const std::function<void()>& mishap) {
    return [&n, mishap, has_begun = false](std::string_view call) mutable {
      has_begun |= call.starts_with("sale/buckets/");
      if (has_begun && n-- == 0) mishap();
    };
  }

  /// I7, and that no bucket has sold more than it has.
  void expect_shares_add_up() {
    const auto look = this->look();
    ASSERT_TRUE(look.is_whole());
    EXPECT_EQ(look.capacity() + look.units_under_way(), look.stock());
    for (const auto& share : look.shares) EXPECT_GE(share.left(), 0);
  }
  void expect_sound() {
    work();
    auto sale = this->sale();
    sale.settle(*orders_);
    expect_shares_add_up();
    const auto found = audit(*store_, sale, *orders_);
    for (const auto& check : found.checks)
      EXPECT_TRUE(check.ok) << check.name << ": " << check.figure << ", expected " << check.expected
                            << " (" << check.detail << ")";
    EXPECT_EQ(sale.status().get().whole.dead, 0);
  }

  static std::vector<std::string> keys(std::int64_t bucket) {
    std::vector<std::string> keys;
    for (const auto* const suffix : {"sale", "buyers", "requests", "returned", "orders", "dead"})
      keys.push_back(fmt::format("{{s:{}}}:{}", bucket, suffix));
    return keys;
  }

 private:
  const SaleDefinition definition_;
  const BucketOptions options_;
  VirtualClock clock_{WallTime{std::chrono::seconds{1'767'369'597}}};
  std::unique_ptr<Store> store_ = engine::open_embedded({.clock = &clock_});
  std::unique_ptr<OrderStore> orders_ = open_order_store("sqlite::memory:");
  std::optional<sale::Shares> shares_;
};

}  // namespace sluice::test
