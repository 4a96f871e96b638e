// Folders of the embedded engine that are copied at any time, and one database: the one that was
// opened last sells, its copies are refused, and a death at any step locks nobody out.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>
#include <map>
#include <random>
#include <set>

#include "engine/embedded_store.hpp"
#include "sale/settlement.hpp"
#include "sale/watched_orders.hpp"
#include "sluice/sale.hpp"
#include "sluice/sale_recovery.hpp"
#include "support/forwarding_store.hpp"
#include "support/sanitized.hpp"
#include "support/temp_dir.hpp"

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_folders = 20;

struct Death {};

/// A store of which the process dies before one of its calls.
class MortalStore final : public test::ForwardingStore {
 public:
  MortalStore(Store& store, std::function<void()> step)
      : ForwardingStore(store), step_(std::move(step)) {}
  using Store::run;
  Task<Value> run(Words command, CallOptions options) override {
    step_();
    return store_.run(command, options);
  }
  Task<Value> run(const Script& script, Words keys, Words args, CallOptions options) override {
    step_();
    return store_.run(script, keys, args, options);
  }

 private:
  std::function<void()> step_;
};

class CopiedFolders : public testing::Test {
 protected:
  using Known = std::set<std::string>;  // ids that a folder gave the database, or its original did

  struct Process {
    std::unique_ptr<Store> store;
    std::unique_ptr<OrderStore> orders;
    std::string id = {};  // of the store, as the process has entered it
  };

  CopiedFolders() {
    Process one = process(0);
    Sale::create(*one.store, definition_).get();
    one.store.reset();
    hide(0);
  }

  std::string place(std::size_t n) const { return (folder_ / fmt::format("store{}", n)).string(); }
  std::string hidden(std::size_t n) const { return place(n) + ".far"; }
  /// As on another machine, where no process of a copy sees it.
  void hide(std::size_t n) const { fs::rename(place(n), hidden(n)); }

  Process process(std::size_t n) const {
    if (fs::exists(hidden(n))) fs::rename(hidden(n), place(n));
    return {.store = engine::open_embedded({.path = place(n), .fsync = engine::Fsync::never}),
            .orders = open_order_store("sqlite:" + (folder_ / "orders").string())};
  }
  std::string id() const { return reader_->store_of("s").value_or(StoreOfSale{}).id; }

  enum class Outcome { sells, refused, died };

  /// A process dies before its call `mortal`, of store or database, or begins to sell.
  Outcome open(std::size_t n, int mortal) {
    auto opened = process(n);
    const auto step = [&mortal] {
      if (mortal-- == 0) throw Death{};
    };
    MortalStore store{*opened.store, step};
    test::WatchedOrders orders{*opened.orders};
    orders.before = [&](std::string_view) { step(); };
    auto outcome = Outcome::sells;
    try {
      sale::attach(store, definition_, orders);
    } catch (const Death&) {
      outcome = Outcome::died;
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::config_mismatch) << error.what();
      EXPECT_NE(error.message().find("embedded:"), std::string::npos) << error.what();
      outcome = Outcome::refused;
    }
    if (outcome != Outcome::sells) opened.store.reset();
    hide(n);
    opened.id = id();
    if (outcome == Outcome::sells) running_.insert_or_assign(n, std::move(opened));
    return outcome;
  }
  static bool commits(Process& process) {
    try {
      process.orders->keep_definition("s", {});
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::config_mismatch) << error.what();
      return false;
    }
  }
  bool sells(std::size_t n) {
    running_.erase(n);
    return open(n, -1) == Outcome::sells;
  }
  void recover(std::size_t n, RecoveryOptions options = {}) {
    running_.erase(n);
    const auto opened = process(n);
    sluice::recover(*opened.store, "s", *opened.orders, options);
    hide(n);
  }
  void copy(std::size_t n) {
    fs::copy(hidden(n), hidden(known_.size()), fs::copy_options::recursive);
    known_.push_back(known_[n]);
  }

  const test::TempDir folder_;
  const SaleDefinition definition_{.name = "s", .stock = 10, .number_type = "S"};
  std::unique_ptr<OrderStore> reader_ = open_order_store("sqlite:" + (folder_ / "orders").string());
  std::map<std::size_t, Process> running_;
  std::vector<Known> known_{1};
};

TEST_F(CopiedFolders, SV02_OneSellsAndADeathLocksNobodyOut) {
  std::mt19937_64 random{7};
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  std::map<Outcome, int> seen;
  for (int i = 0; i < test::rounds(250); ++i) {
    const auto before = id();
    auto n = below(known_.size());
    while (below(3) != 0 && !before.empty() && !known_[n].contains(before))
      n = below(known_.size());  // most often one that may sell
    if (known_.size() < most_folders && below(10) == 0) {
      copy(n);
      continue;
    }
    running_.erase(n);
    const bool is_mine = before.empty() || known_[n].contains(before);
    const auto outcome = open(n, static_cast<int>(below(3) == 0 ? 1000 : below(14)));
    ++seen[outcome];
    if (outcome != Outcome::died) {
      ASSERT_EQ(outcome == Outcome::sells, is_mine) << "step " << i;
    }
    const auto after = id();
    if (after != before) {
      ASSERT_TRUE(is_mine) << "step " << i;
      known_[n].insert(after);
    }
    int sellers = 0;
    for (auto& [other, running] : running_) {
      const bool sells = commits(running);
      ASSERT_EQ(sells, running.id == after) << "step " << i << ", folder " << other;
      sellers += sells;
    }
    ASSERT_LE(sellers, 1) << "step " << i;
  }
  std::cout << seen[Outcome::sells] << " sold, " << seen[Outcome::refused] << " were refused, "
            << seen[Outcome::died] << " died\n";
  EXPECT_TRUE(seen[Outcome::sells] > 10 && seen[Outcome::refused] > 10 && seen[Outcome::died] > 10);
}

TEST_F(CopiedFolders, SV02_APersonChoosesAnother) {
  ASSERT_TRUE(sells(0) && sells(0));
  copy(0);
  ASSERT_TRUE(sells(0));
  for (const std::size_t chosen : {1, 0, 1}) {
    const auto other = 1 - chosen;
    EXPECT_FALSE(sells(chosen));
    recover(chosen, {.new_store = true});
    EXPECT_FALSE(commits(running_.at(other))) << "it is fenced at once";
    EXPECT_FALSE(sells(other));
    EXPECT_TRUE(sells(chosen) && sells(chosen));
    EXPECT_FALSE(sells(other));
  }
}

TEST_F(CopiedFolders, SV18_WhatWasLostAndCameBackIsNoCopy) {
  const auto file = folder_ / "orders";
  ASSERT_TRUE(sells(0));
  copy(0);
  running_.clear();
  reader_.reset();  // all of it is in the file then
  fs::copy_file(file, file.string() + ".backup");
  reader_ = open_order_store("sqlite:" + file.string());
  ASSERT_TRUE(sells(0) && sells(0));
  running_.clear();
  reader_.reset();
  fs::copy_file(file.string() + ".backup", file, fs::copy_options::overwrite_existing);
  reader_ = open_order_store("sqlite:" + file.string());
  recover(0);
  EXPECT_TRUE(sells(0)) << "with a database of before";
  EXPECT_FALSE(sells(1));
  running_.clear();
  process(0).store->run({"DEL", "{s}:sale"}).get();
  hide(0);
  recover(0);
  EXPECT_TRUE(sells(0)) << "with a sale that was lost";
  EXPECT_FALSE(sells(1));
}

}  // namespace
}  // namespace sluice
