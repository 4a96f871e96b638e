/// A sale whose orders are paid for, with all its parts in one process: the embedded engine,
/// SQLite, and one virtual time for both.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/embedded_store.hpp"
#include "sale/sql/order_store.hpp"
#include "sale/sql/schemes.hpp"
#include "sale/watched_orders.hpp"
#include "sluice/order_worker.hpp"
#include "sluice/sale.hpp"
#include "sluice/sale_audit.hpp"
#include "support/faulty_store.hpp"

namespace sluice::test {

/// What a database reads as its clock: a number that stands in the statements.
class DatabaseClock {
 public:
  explicit DatabaseClock(WallTime now) { set(now); }
  void set(WallTime now) {
    auto us = now.time_since_epoch().count();
    for (auto digit = text_.rbegin(); digit != text_.rend(); ++digit, us /= 10)
      *digit = static_cast<char>('0' + us % 10);
  }
  std::string_view text() const { return {text_.data(), text_.size()}; }

 private:
  std::array<char, 16> text_{};
};

struct Killed {};

/// What comes over a process at the n-th step of all that it asks of store and database.
struct LifeFate {
  int steps_left;
  std::function<void()> comes;
  void step() {
    if (--steps_left == -1) comes();
  }
};

class Life {
 public:
  static SaleDefinition usual() {
    using namespace std::chrono_literals;
    return {
        .name = "s",
        .stock = 9,
        .limit = 1,
        .number_type = "MT",
        .digits = 3,
        .payment = PaymentTerms{.window = 30min, .grace = 2min, .price = 1499, .currency = "CNY"}};
  }

  explicit Life(SaleDefinition definition = usual(), std::string file = ":memory:")
      : file_(std::move(file)), sale_(Sale::create(*store_, std::move(definition)).get()) {}

  Store& store() { return *store_; }
  Sale& sale() { return sale_; }
  OrderStore& orders() { return *orders_; }
  OrderPayments& payments() { return orders_->payments(); }

  /// Of a database in a file; brings back what it had then, while the store goes on.
  void back_up_database() { copy_database(file_, file_ + ".old"); }
  void restore_database() { copy_database(file_ + ".old", file_); }

  void pass(std::chrono::microseconds time) {
    clock_.advance(time);
    database_clock_.set(clock_.wall());
  }
  void set_database_clock(WallTime now) { database_clock_.set(now); }
  WallTime now() const { return clock_.wall(); }

  Admission buy(const std::string& buyer, const std::string& request = "r",
                std::int64_t units = 1) {
    return sale_.buy({buyer}, {request}, units).get();
  }
  void work() { OrderWorker{*store_, sale_, *orders_}.drain(); }

  static Payment payment(const SaleOrder& order, const std::string& event,
                         std::int64_t amount = 0) {
    return {.provider = "acme",
            .event = event,
            .sale = "s",
            .order = order.number,
            .amount = amount > 0 ? amount : 1499 * order.units,
            .currency = "CNY"};
  }
  PaymentResult pay(const SaleOrder& order, const std::string& event = "e1",
                    std::int64_t amount = 0) {
    return sale_.pay(*orders_, payment(order, event, amount));
  }
  /// As the database has it.
  OrderState state(const SaleOrder& order) {
    return orders_->find("s", std::span{&order.id, 1}).at(0).state;
  }
  std::int64_t left() { return sale_.status().get().left(); }
  std::vector<std::string> told(const SaleOrder& order) {
    std::vector<std::string> types;
    for (const auto& message : payments().messages_of("s", order.id)) types.push_back(message.type);
    return types;
  }

  static constexpr std::string_view keys[] = {"{s}:sale",     "{s}:buyers", "{s}:requests",
                                              "{s}:returned", "{s}:orders", "{s}:dead"};
  /// What a replica has that takes the master's place later.
  void save() {
    for (const auto key : keys) {
      const auto copy = "{s}:old" + std::string{key};
      store_->run({"DEL", copy}).get();
      store_->run({"COPY", key, copy}).get();
    }
  }
  void come_back() {
    for (const auto key : keys) {
      store_->run({"DEL", key}).get();
      store_->run({"COPY", "{s}:old" + std::string{key}, key}).get();
    }
  }

  /// Does `deed` in a process that is killed after so many steps. False: it was.
  template <class Deed>
  bool survives(int steps, const Deed& deed) {
    try {
      interrupted(steps, deed, [] { throw Killed{}; });
    } catch (const Killed&) {
      return false;
    }
    return true;
  }

  /// Does `deed` in a process that stands still after so many steps, while others do `meanwhile`.
  template <class Deed>
  void interrupted(int steps, const Deed& deed, std::function<void()> meanwhile) {
    LifeFate fate{1000, std::move(meanwhile)};
    FaultyStore mortal{*store_};
    mortal.plan = [&](std::string_view) {
      fate.step();
      return Fault::none;
    };
    WatchedOrders mortal_orders{*orders_};
    mortal_orders.before = [&](std::string_view) { fate.step(); };
    auto sale = std::is_invocable_v<Deed, Store&, OrderStore&> ? std::nullopt
                                                               : Sale::load(mortal, "s").get();
    fate.steps_left = steps;
    if constexpr (std::is_invocable_v<Deed, Store&, OrderStore&>)
      deed(mortal, mortal_orders);
    else if (sale)  // else the store has lost it, and nobody can sell
      deed(*sale, mortal_orders);
  }

  /// Every check of the audit, and the sums that it goes by.
  void expect_sound() {
    work();
    sale_.settle(*orders_);
    for (const auto& check : audit(*store_, sale_, *orders_).checks)
      EXPECT_TRUE(check.ok) << check.name << ": " << check.figure << ", expected " << check.expected
                            << " (" << check.detail << ")";
    std::int64_t standing = 0;
    for (const auto& order : orders_->page("s", -1, 10'000))
      if (stands(order.state)) standing += order.units - payments().find("s", order.id)->returned;
    const auto status = sale_.status().get();
    EXPECT_EQ(status.sold, standing);
    EXPECT_EQ(orders_->stock("s")->left, status.stock - standing);
  }

 private:
  sale::SqlDialect dialect() const {
    auto dialect = sale::sqlite_dialect("sqlite:" + file_);
    dialect.now_us = database_clock_.text();
    dialect.on_connect.emplace_back("PRAGMA synchronous = OFF");  // nobody cuts the power
    return dialect;
  }
  void copy_database(const std::string& from, const std::string& to) {
    orders_.reset();
    std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing);
    orders_.emplace(dialect());
  }

  VirtualClock clock_{WallTime{std::chrono::seconds{1'767'369'597}}};
  DatabaseClock database_clock_{clock_.wall()};
  std::unique_ptr<Store> store_ = engine::open_embedded({.clock = &clock_});
  const std::string file_;
  Sale sale_;
  std::optional<sale::SqlOrderStore> orders_{std::in_place, dialect()};
};

}  // namespace sluice::test
