// The program sluice-serve as a process: V01, V44, and what a user's mistakes are answered with.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "server/curl.hpp"
#include "server/served.hpp"
#include "server/shop_keys.hpp"
#include "sluice/bucketed_sale.hpp"
#include "sluice/open.hpp"
#include "sluice/order_worker.hpp"
#include "sluice/sale_audit.hpp"
#include "support/comes_true.hpp"
#include "support/redis_server.hpp"

namespace sluice::server {
namespace {

using namespace std::chrono_literals;
using test::Served;

class ServeProgram : public testing::Test {
 protected:
  std::vector<std::string> options() const {
    return {"--store", redis_.url(), "--orders", orders_url(), "--sale", "tea=100"};
  }
  std::string orders_url() const { return "sqlite:" + (folder_ / "orders.db").string(); }

  static test::Answer buy(std::uint16_t port, std::string_view buyer) {
    return test::ask(port, "POST", "/v1/sales/tea/orders",
                     {{"Sluice-Buyer", buyer}, {"Idempotency-Key", "k"}});
  }

  /// All that buyers were told is in the database, and nothing else.
  void compare(const std::map<std::string, std::string>& told) {
    const auto store = open(redis_.url());
    const auto orders = open_order_store(orders_url());
    auto sale = Sale::load(*store, "tea").get();
    ASSERT_TRUE(sale);
    OrderWorker{*store, *sale, *orders, {.claim_after = 1ms}}.drain();
    const auto found = audit(*store, *sale, *orders);
    for (const auto& check : found.checks) EXPECT_TRUE(check.ok) << check.name << check.detail;
    std::map<std::string, std::string> there;
    for (const auto& order : orders->page("tea", 0, 1000))
      there.emplace(order.buyer.value, fmt::to_string(order.id));
    for (const auto& [buyer, id] : told) EXPECT_EQ(there[buyer], id) << buyer;
    EXPECT_LE(there.size(), 100U);
  }

  test::TempDir folder_;
  test::RedisServer redis_;
};

TEST_F(ServeProgram, V01_AHundredUnitsAndTenThousandBuyersAtFourProcesses) {
  std::vector<std::unique_ptr<Served>> served;
  for (int i = 0; i < 4; ++i) served.push_back(std::make_unique<Served>(folder_, i, options()));
  for (auto& one : served) ASSERT_TRUE(one->begins()) << one->output();
  std::map<std::string, std::string> told;
  std::mutex mutex;
  std::atomic<int> refused{0};
  constexpr int buyers = 10'000;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 8; ++thread)
      threads.emplace_back([&, thread] {
        for (int buyer = thread; buyer < buyers; buyer += 8) {
          const auto name = fmt::format("b{}", buyer);
          const auto answer = buy(served[static_cast<std::size_t>(buyer) % 4]->port(), name);
          if (answer.status != 201) {
            refused += answer.problem() == "sold-out";
            continue;
          }
          const std::lock_guard lock{mutex};
          told.emplace(name, answer.text("id"));
        }
      });
  }
  EXPECT_EQ(told.size(), 100U);
  EXPECT_EQ(refused, buyers - 100);
  for (auto& one : served) one->process().terminate();
  for (auto& one : served) EXPECT_EQ(one->process().wait(), 0) << one->output();
  compare(told);
}

// Each buyer asks at all of them at once; two are killed meanwhile, and their buyers go elsewhere.
TEST_F(ServeProgram, V30_V31_FourProcessesSellEachUnitOfManyBucketsOnceThoughTwoAreKilled) {
  constexpr std::int64_t stock = 60;
  auto how = options();
  how.back() = fmt::format("tea={}/6", stock);
  std::vector<std::unique_ptr<Served>> served;
  for (int i = 0; i < 4; ++i) served.push_back(std::make_unique<Served>(folder_, i, how));
  for (auto& one : served) ASSERT_TRUE(one->begins()) << one->output();
  std::map<std::string, std::string> told;  // buyer, order
  std::mutex mutex;
  const auto bought = [&] {
    const std::lock_guard lock{mutex};
    return std::ssize(told);
  };
  const auto ask = [&](int process) {
    for (int buyer = 0; buyer < 120; ++buyer) {
      const auto name = fmt::format("b{}", buyer);
      for (bool is_answered = false; !is_answered;) try {
          const auto answer = buy(served[static_cast<std::size_t>(process)]->port(), name);
          is_answered = answer.status != 503;  // some are on their way between buckets
          if (answer.status != 201 && answer.status != 200) continue;
          const std::lock_guard lock{mutex};
          EXPECT_EQ(told.emplace(name, answer.text("id")).first->second, answer.text("id"));
        } catch (const std::system_error&) {
          return;  // it was killed
        }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 8; ++thread)
      threads.emplace_back([&, thread] { ask(thread % 4); });
    for (const int victim : {0, 1}) {
      EXPECT_TRUE(test::comes_true([&] { return bought() > 20 * (victim + 1); }));
      served[static_cast<std::size_t>(victim)]->process().kill();
    }
  }
  for (int i = 2; i < 4; ++i) served[static_cast<std::size_t>(i)]->process().terminate();
  for (int i = 2; i < 4; ++i) EXPECT_EQ(served[static_cast<std::size_t>(i)]->process().wait(), 0);

  const auto store = open(redis_.url());
  const auto orders = open_order_store(orders_url());
  auto sale = BucketedSale::load(*store, "tea").get();
  ASSERT_TRUE(sale);
  BucketedWorker{
      *store, *sale, [&] { return open_order_store(orders_url()); }, {.claim_after = 1ms}}
      .drain();
  sale->settle(*orders);
  const auto found = audit(*store, *sale, *orders);
  for (const auto& check : found.checks) EXPECT_TRUE(check.ok) << check.name << check.detail;
  EXPECT_EQ(sale->status().get().whole.sold, stock) << "none is lost on its way";
  std::map<std::string, std::string> there;
  for (std::int64_t i = 0; i < sale->buckets(); ++i)
    for (const auto& order : orders->page(sale->bucket(i).definition().name, 0, 1000))
      EXPECT_TRUE(there.emplace(order.buyer.value, fmt::to_string(order.id)).second) << "limit 1";
  for (const auto& [buyer, id] : told) EXPECT_EQ(there[buyer], id) << buyer;
}

// TERM comes while buyers ask: who was told of an order has it.
TEST_F(ServeProgram, V44_NothingThatWasAcceptedIsLostAtTheEnd) {
  Served served{folder_, 0, options()};
  ASSERT_TRUE(served.begins()) << served.output();
  std::map<std::string, std::string> told;
  std::mutex mutex;
  std::atomic<bool> stop{false};
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread)
      threads.emplace_back([&, thread] {
        for (int i = 0; !stop && i < 1000; ++i) try {
            const auto name = fmt::format("b{}-{}", thread, i);
            const auto answer = buy(served.port(), name);
            const std::lock_guard lock{mutex};
            if (answer.status == 201) told.emplace(name, answer.text("id"));
          } catch (const std::system_error&) {  // refused: it has stopped
            return;
          }
      });
    EXPECT_TRUE(test::comes_true([&] {
      const std::lock_guard lock{mutex};
      return told.size() > 20;
    }));
    served.process().terminate();
    EXPECT_EQ(served.process().wait_for(60s), 0) << served.output();
    stop = true;
  }
  compare(told);
}

TEST_F(ServeProgram, KilledWhileBuyersAskItHasToldNobodyWhatIsNotSo) {
  std::map<std::string, std::string> told;
  std::atomic<int> count{0};
  for (int round = 0; round < 3; ++round) {
    Served served{folder_, round, options()};
    ASSERT_TRUE(served.begins()) << served.output();
    std::jthread killer{[&] {
      EXPECT_TRUE(test::comes_true([&] { return count > round * 10; }));
      served.process().kill();
    }};
    try {
      for (int i = 0; i < 30; ++i) {
        const auto name = fmt::format("r{}-{}", round, i);
        const auto answer = buy(served.port(), name);
        if (answer.status == 0) break;
        if (answer.status != 201) continue;
        told.emplace(name, answer.text("id"));
        ++count;
      }
    } catch (const std::system_error&) {  // it is dead
    }
    killer.join();
  }
  compare(told);
}

TEST_F(ServeProgram, AFileOfOrdersThatIsGoneIsMadeNeitherByAServiceNorByItsNextStart) {
  const auto keys = folder_ / "shop_keys";
  const auto made = make_shop_key("ann", {Scope::operate});
  std::ofstream{keys} << made.line << '\n';
  ::chmod(keys.c_str(), 0600);
  auto how = options();
  how.insert(how.end(), {"--shop-keys", keys.string()});
  Served served{folder_, 0, how};
  ASSERT_TRUE(served.begins()) << served.output();
  EXPECT_EQ(buy(served.port(), "ann").status, 201);
  for (const auto* const end : {"", "-wal", "-shm"})
    std::filesystem::rename((folder_ / "orders.db").string() + end,
                            (folder_ / "moved").string() + end);
  const std::string bearer = "Bearer " + made.key;
  const auto ready = [&] { return test::ask(served.health_port(), "GET", "/readyz").body; };
  EXPECT_TRUE(test::comes_true([&] { return ready().find("put it back") != std::string::npos; }));
  for (const auto* const path :
       {"/v1/sales/tea/orders/1", "/v1/operate/sales/tea/orders", "/v1/operate/state"})
    test::ask(served.port(), "GET", path, {{"Sluice-Buyer", "ann"}, {"Authorization", bearer}});
  test::ask(served.health_port(), "GET", "/metrics");  // which is counted for the next one
  EXPECT_TRUE(test::comes_true([&] {
    return test::ask(served.port(), "GET", "/v1/sales/tea/orders/1", {{"Sluice-Buyer", "bob"}})
               .status == 503;
  }));
  served.process().terminate();
  served.process().wait();
  Served next{folder_, 1, how};
  EXPECT_FALSE(next.begins());
  EXPECT_EQ(next.process().wait(), 78) << next.output();
  EXPECT_FALSE(std::filesystem::exists(folder_ / "orders.db"));
}

struct Mistake {
  std::vector<std::string> options;
  int exit;
  std::string says;
};

TEST_F(ServeProgram, AUsersMistakeIsAnsweredInOneLine) {
  const auto keys = folder_ / "keys";
  std::ofstream{keys} << "k1 short\n";
  ::chmod(keys.c_str(), 0600);
  const std::vector<Mistake> mistakes{
      {{"--listen", "127.0.0.1:99999"}, 64, "65535"},
      {{"--listen", "8080"}, 64, "HOST:PORT"},
      {{"--listen", "0.0.0.0:0"}, 64, "--believe-buyers"},
      {{"--sale", "tea"}, 64, "--sale tea=UNITS"},
      {{"--sale", "=5"}, 64, "maotai=100"},
      {{"--sale", "tea=10", "--room", "tea"}, 64, "maotai=50/200"},
      {{"--payments", "acme"}, 64, "NAME=FILE"},
      {{"--payments", "acme=" + keys.string()}, 64, keys.string()},
      {{"--room", "tea=5"}, 64, "--all"},
      {{"--sale", "milk=1", "--room", "tea=5"}, 64, "no sale 'tea'"},
      {{"--keys", keys.string()}, 64, keys.string()},
      {{"--keys", folder_.str()}, 64, folder_.str()},
      {{"--certificate", "x.pem"}, 64, "--key"},
      {{"--no-sales", "--trusted", "300.0.0.0/8"}, 64, "300.0.0.0/8"},
      {{"--orders", "postgres:x"}, 64, "postgres"},
      {{"--store", "http://x"}, 64, "http"}};
  int number = 0;
  for (const auto& mistake : mistakes) {
    Served served{folder_, number++, mistake.options};
    EXPECT_FALSE(served.begins()) << mistake.says;
    EXPECT_EQ(served.process().wait(), mistake.exit) << served.output();
    EXPECT_NE(served.output().find(mistake.says), std::string::npos)
        << mistake.says << " in " << served.output();
  }
}

TEST_F(ServeProgram, ItsPageIsWhatItPrints) {
  test::Process printing{{test::built_path("sluice-serve"), "help", "--markdown"},
                         {.output = folder_ / "page"}};
  EXPECT_EQ(printing.wait(), 0);
  EXPECT_EQ(test::text_of(test::source_path("docs/serve_commands.md")),
            test::text_of(folder_ / "page"))
      << "write it anew: sluice serve help --markdown > docs/serve_commands.md";
}

TEST_F(ServeProgram, AnAddressThatIsTakenIsSaid) {
  Served first{folder_, 0, options()};
  ASSERT_TRUE(first.begins());
  auto taken = options();
  taken.insert(taken.end(), {"--health", fmt::format("127.0.0.1:{}", first.port())});
  Served second{folder_, 1, taken};
  EXPECT_FALSE(second.begins());
  EXPECT_EQ(second.process().wait(), 73) << second.output();
}

}  // namespace
}  // namespace sluice::server
