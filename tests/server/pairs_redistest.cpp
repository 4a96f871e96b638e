// Two processes of any stores and databases: what buyers are told is never more than the stock, and
// a process that finds another pair names both.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <iostream>

#include "server/curl.hpp"
#include "server/served.hpp"
#include "sluice/order_store.hpp"
#include "support/plain_client.hpp"
#include "support/redis_server.hpp"

namespace sluice::server {
namespace {

using test::Served;

constexpr int stock = 6;

/// A store and a database, of two each.
struct Pair {
  int store;
  int database;
  bool operator==(const Pair&) const = default;
};

constexpr std::array<Pair, 4> pairs{{{0, 0}, {0, 1}, {1, 0}, {1, 1}}};

/// What buyers were told by one process, until it refused one of them.
int sell(const Served& served, int process, int most) {
  int told = 0;
  for (int buyer = 0; buyer < most; ++buyer)
    told += test::ask(served.port(), "POST", "/v1/sales/tea/orders",
                      {{"Sluice-Buyer", fmt::format("p{}b{}", process, buyer)},
                       {"Idempotency-Key", fmt::format("{}", told)}})
                .status == 201;
  return told;
}

class Pairs : public testing::TestWithParam<bool> {
 protected:
  Pairs() { begin_anew(); }

  /// Embedded engines, or servers.
  bool is_embedded() const { return GetParam(); }
  std::string path(std::string_view of, int n) const {
    return (*folder_ / fmt::format("{}{}", of, n)).string();
  }
  std::string store(int n) const {
    return is_embedded() ? "embedded:" + path("store", n) : redis_[n].url();
  }
  std::string orders(int n) const { return "sqlite:" + path("orders.db", n); }
  Served start(const Pair& pair, int number, std::vector<std::string> what = {}) const {
    std::vector<std::string> words{"--store", store(pair.store), "--orders", orders(pair.database)};
    if (what.empty()) what = {"--sale", fmt::format("tea={}", stock)};
    words.insert(words.end(), what.begin(), what.end());
    return {*folder_, number, words};
  }
  int run(std::vector<std::string> words) const {
    words.insert(words.begin(), test::built_path("sluice"));
    return test::Process{words, {.directory = folder_->path(), .output = *folder_ / "run"}}.wait();
  }
  static void end(Served& served) {
    served.process().terminate();
    EXPECT_EQ(served.process().wait(), 0) << served.output();
  }
  bool comes_to_database(int told) const {
    const auto there = open_order_store(orders(0));
    return test::comes_true(
        [&] { return there->page("tea", 0, 100).size() == static_cast<std::size_t>(told); });
  }
  static bool says(const Served& served, std::string_view what) {
    return served.output().find(what) != std::string::npos;
  }
  void begin_anew() {
    folder_.emplace();
    if (!is_embedded())
      for (auto& server : redis_) test::PlainClient{server.port()}.command({"FLUSHALL"});
  }
  /// Of the second process, which was refused.
  void expect_both_named(Served& served, const Pair& first, const Pair& second) const {
    EXPECT_EQ(served.process().wait(), 78) << served.output();
    const auto named = [&](const std::string& what) { return says(served, what); };
    const auto place = [&](int n) { return is_embedded() ? path("store", n) : redis_[n].url(); };
    if (first.store != second.store)
      EXPECT_TRUE(named(place(first.store)) && named(place(second.store))) << served.output();
    else
      EXPECT_TRUE(named(path("orders.db", first.database)) &&
                  named(path("orders.db", second.database)))
          << served.output();
  }

  std::optional<test::TempDir> folder_;
  std::array<test::RedisServer, 2> redis_;
};

TEST_P(Pairs, SV02_OfOneStoreOrOneDatabaseEachUnitIsToldOnce) {
  int cases = 0;
  for (const auto& first : pairs)
    for (const auto& second : pairs) {
      if (first == second && is_embedded()) continue;  // one process has it
      begin_anew();
      auto one = start(first, 1);
      ASSERT_TRUE(one.begins()) << one.output();
      int told = sell(one, 1, stock / 2);
      const bool is_shared = first.store == second.store;
      if (is_shared && is_embedded()) {
        end(one);
      }
      auto two = start(second, 2);
      const bool begins = two.begins();
      int others = begins ? sell(two, 2, stock + 1) : 0;
      if (!is_shared || !is_embedded()) told += sell(one, 3, stock + 1);
      SCOPED_TRACE(fmt::format("case {}: ({}, {}) and then ({}, {})", ++cases, first.store,
                               first.database, second.store, second.database));
      const bool is_apart = !is_shared && first.database != second.database;
      const bool is_refused = !is_apart && first != second;
      EXPECT_EQ(begins, !is_refused) << two.output();
      EXPECT_LE(is_apart ? std::max(told, others) : told + others, stock);
      if (is_refused && !begins) expect_both_named(two, first, second);
    }
}

/// How a folder is copied and the two are used: each combination is a case.
struct Copying {
  bool is_hot;      ///< while the process that has the folder runs; it sells on
  bool goes_first;  ///< the copy is opened before the folder is opened again
  bool is_far;      ///< on another machine, where the folder's place is not seen
};

/// Of one database and a folder of which there is a copy, one sells.
TEST_P(Pairs, SV02_OfAFolderAndItsCopyOneSells) {
  if (!is_embedded()) GTEST_SKIP() << "processes share a server";
  namespace fs = std::filesystem;
  int sold_twice = 0;
  for (int n = 0; n < 8; ++n) {
    const Copying how{.is_hot = (n & 4) != 0, .goes_first = (n & 2) != 0, .is_far = (n & 1) != 0};
    if (how.is_hot && !how.goes_first) continue;  // it is as the cold one
    SCOPED_TRACE(
        fmt::format("hot {}, the copy first {}, far {}", how.is_hot, how.goes_first, how.is_far));
    begin_anew();
    fs::create_directory(path("far", 0));
    const auto place = how.is_far ? path("far", 0) : path("store", 0);  // not seen by the copy
    const auto serve = [&](const std::string& folder, int number) {
      return Served{*folder_,
                    number,
                    {"--store", "embedded:" + folder, "--orders", orders(0), "--sale",
                     fmt::format("tea={}", stock)}};
    };
    std::optional<Served> one{serve(place, 1)};
    ASSERT_TRUE(one->begins()) << one->output();
    int told = sell(*one, 1, 2);
    ASSERT_TRUE(comes_to_database(2));
    if (!how.is_hot) end(*one);
    fs::copy(place, path("store", 1), fs::copy_options::recursive);
    if (how.is_hot) told += sell(*one, 2, 1);
    ASSERT_TRUE(comes_to_database(told));
    if (!how.is_hot && !how.goes_first) {
      one.emplace(serve(place, 2));
      ASSERT_TRUE(one->begins()) << one->output();
      told += sell(*one, 3, 2);
      ASSERT_TRUE(comes_to_database(told));
    }
    if (how.is_far) fs::rename(place, path("moved", 0));
    Served copy = serve(path("store", 1), 3);
    const bool begins = copy.begins();
    if (!how.is_hot && how.goes_first) {
      if (how.is_far) fs::rename(path("moved", 0), place);
      one.emplace(serve(place, 4));
    }
    const bool is_there = one->begins();
    if (begins && how.is_hot)
      EXPECT_TRUE(test::comes_true([&] { return says(*one, "store1"); }))
          << "it hears of that by itself";
    for (int buyer = 0; buyer < stock; ++buyer) {
      if (is_there) told += sell(*one, 10 + buyer, 1);
      if (begins) told += sell(copy, 20 + buyer, 1);
    }
    EXPECT_LE(told, stock) << copy.output() << one->output();
    sold_twice += told > stock;
    // A copy is equal to a folder that was moved: it may go on where nobody sees the other one.
    EXPECT_EQ(begins, how.is_far && how.goes_first) << copy.output();
    if (!begins) {
      EXPECT_EQ(copy.process().wait(), 78) << copy.output();
      EXPECT_TRUE(says(copy, path("store", 1)) && says(copy, place)) << copy.output();
    }
  }
  std::cout << sold_twice << " cases sold more than there is\n";
}

TEST_P(Pairs, SV02_ANewStoreIsTakenByACommandAndFencesTheOneOfBefore) {
  auto one = start({0, 0}, 1);
  ASSERT_TRUE(one.begins()) << one.output();
  int told = sell(one, 1, stock / 2);
  const std::vector<std::string> take{"--store", store(1),   "sale",   "recover",
                                      "tea",     "--orders", orders(0)};
  EXPECT_EQ(run(take), is_embedded() ? 64 : 78);
  auto taking = take;
  taking.emplace_back("--new-store");
  ASSERT_EQ(run(taking), 0) << test::text_of(*folder_ / "run");
  ASSERT_TRUE(test::comes_true([&] { return says(one, store(1)); }))
      << "it hears of that by itself";
  EXPECT_EQ(sell(one, 2, stock), 0);
  auto two = start({1, 0}, 2);
  ASSERT_TRUE(two.begins()) << two.output();
  told += sell(two, 3, stock + 1);
  EXPECT_EQ(told, stock);
  EXPECT_EQ(sell(one, 4, stock), 0);
  end(one);
  auto again = start({0, 0}, 3);
  EXPECT_FALSE(again.begins());
  expect_both_named(again, {1, 0}, {0, 0});
}

TEST_P(Pairs, SV18_ADatabaseThatWasRolledBackIsNoticedAndGetsBackWhatTheStoreKnows) {
  const auto file = path("orders.db", 0);
  const auto serve_and_sell = [&](int process, int most) {
    auto served = start({0, 0}, process);
    EXPECT_TRUE(served.begins()) << served.output();
    int told = 0;
    EXPECT_TRUE(test::comes_true([&] { return (told += sell(served, process, most)) == most; }));
    end(served);
    return served.output();
  };
  serve_and_sell(1, 2);
  std::filesystem::copy_file(file, file + ".backup");
  serve_and_sell(2, 2);
  std::filesystem::copy_file(file + ".backup", file,
                             std::filesystem::copy_options::overwrite_existing);
  const auto output = serve_and_sell(3, 2);
  EXPECT_NE(output.find("has lost what it had committed"), std::string::npos) << output;
  EXPECT_NE(output.find("since its database had lost what it had committed"), std::string::npos)
      << output;
  // What was sent again may be on its way when the process ends.
  EXPECT_EQ(
      run({"--store", store(0), "sale", "work", "tea", "--until-empty", "--orders", orders(0)}), 0);
  EXPECT_EQ(open_order_store(orders(0))->page("tea", 0, 100).size(), 6U);
}

TEST_P(Pairs, SV03_NU03_WhatIsServedIsWhatWasNamed) {
  {
    auto one = start({0, 0}, 1, {"--sale", "tea=6", "--sale", "coffee=6"});
    ASSERT_TRUE(one.begins()) << one.output();
    end(one);
  }
  const auto served = [&](int process, std::vector<std::string> what) {
    auto one = start({0, 0}, process, std::move(what));
    EXPECT_TRUE(one.begins()) << one.output();
    const auto answer = test::ask(one.port(), "GET", "/v1/sales").body;
    end(one);
    EXPECT_EQ(answer.find("example"), answer.npos);
    return std::pair{answer.find("tea") != answer.npos, answer.find("coffee") != answer.npos};
  };
  EXPECT_EQ(served(2, {"--sale", "tea"}), std::pair(true, false));
  EXPECT_EQ(served(3, {"--sale", "coffee=6"}), std::pair(false, true));
  EXPECT_EQ(served(4, {"--all"}), std::pair(true, true));
  for (const std::vector<std::string>& nothing :
       {std::vector<std::string>{"--room", "tea=1/1"}, {"--sale", "milk"}}) {
    auto one = start({0, 0}, 5, nothing);
    EXPECT_FALSE(one.begins());
    EXPECT_EQ(one.process().wait(), 64) << one.output();
  }
}

TEST_P(Pairs, SV03_AStrayServeMakesNothing) {
  {
    auto one = start({0, 0}, 1);
    ASSERT_TRUE(one.begins()) << one.output();
    end(one);
  }
  const std::string stray = (*folder_ / "stray").string();
  for (const auto& [words, status] :
       {std::pair<std::vector<std::string>, int>{{"--orders", orders(0)}, 78},
        {{"--orders", orders(0), "--sale", "tea=6"}, 78},
        {{"--orders", orders(0), "--all"}, 78},
        {{"--store", store(0), "--orders", "sqlite:" + stray, "--sale", "tea=6"}, 78},
        {{"--store", store(0), "--orders", orders(0)}, 64},
        {{"--room", "tea=1/1"}, 64}}) {
    std::vector<std::string> all{"--data", stray};
    all.insert(all.end(), words.begin(), words.end());
    Served served{*folder_, 2, all};
    EXPECT_FALSE(served.begins());
    EXPECT_EQ(served.process().wait(), status) << served.output();
    EXPECT_FALSE(std::filesystem::exists(stray)) << served.output();
    EXPECT_EQ(open_order_store(orders(0))->sales(), std::vector<std::string>{"tea"});
  }
}

// A sale of another program, with another database, in the same server.
TEST_P(Pairs, NU02_AForeignSaleStopsNothing) {
  ASSERT_EQ(run({"--store", store(0), "sale", "create", "foreign", "--stock", "5", "--type", "F"}),
            0);
  ASSERT_EQ(
      run({"--store", store(0), "sale", "work", "foreign", "--until-empty", "--orders", orders(1)}),
      0);
  int process = 0;
  for (std::vector<std::string> what :
       {std::vector<std::string>{"--sale", "tea=6"}, {"--sale", "tea"}, {"--all"}}) {
    what.emplace_back("--local-operator");
    auto one = start({0, 0}, ++process, what);
    ASSERT_TRUE(one.begins()) << one.output();
    EXPECT_EQ(test::ask(one.port(), "GET", "/v1/sales").body.find("foreign"), std::string::npos);
    const auto state = [&] { return test::ask(one.port(), "GET", "/v1/operate/state").body; };
    EXPECT_TRUE(test::comes_true([&] { return state().find("foreign") != std::string::npos; }))
        << "operators see that it is there";
    end(one);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Pairs, testing::Bool(), [](const auto& info) {
  return info.param ? "EmbeddedEngines" : "Servers";
});

}  // namespace
}  // namespace sluice::server
