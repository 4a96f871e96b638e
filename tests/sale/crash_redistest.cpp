// Ten thousand buyers click six times each while processes are killed, one every 200 ms, and
// started again.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "sale/crash_roles.hpp"
#include "sale/shop.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::CrashSetting;
using test::Process;

std::mt19937 random_source() {
  const auto* const given = std::getenv("SLUICE_SEED");
  const auto seed = given ? static_cast<unsigned>(std::stoul(given)) : std::random_device{}();
  std::cout << "SLUICE_SEED=" << seed << '\n';
  return std::mt19937{seed};
}

/// What the sellers told the buyers, against the database and against the rules.
void check_what_buyers_were_told(const CrashSetting& setting, OrderStore& orders) {
  std::map<std::string, SaleOrder> in_database;
  for (const auto& order : orders.page(setting.sale, 0, test::crash_stock + 1)) {
    EXPECT_TRUE(in_database.emplace(order.buyer.value, order).second)
        << order.buyer.value << " has two orders";
  }
  EXPECT_EQ(in_database.size(), static_cast<std::size_t>(test::crash_stock));

  const auto told = test::read_journals(setting.journals);
  EXPECT_EQ(told.size(), static_cast<std::size_t>(test::crash_buyers * test::crash_clicks));
  std::set<std::string> with_order;
  for (const auto& answer : told) {
    const auto known = in_database.find(answer.buyer);
    if (answer.number.empty()) {
      EXPECT_EQ(answer.outcome, "sold out");
      EXPECT_EQ(known, in_database.end())
          << answer.buyer << " was told 'sold out' and has an order";
      continue;
    }
    with_order.insert(answer.buyer);
    ASSERT_NE(known, in_database.end())
        << answer.buyer << " was told of " << answer.number << ", which is nowhere";
    EXPECT_EQ(answer.number, known->second.number);
    EXPECT_EQ(answer.id, known->second.id);
    EXPECT_EQ(answer.outcome == "already bought", answer.request == "second");
  }
  EXPECT_EQ(with_order.size(), in_database.size());
}

void check_all(const CrashSetting& setting, Store& store) {
  const auto sale = Sale::load(store, setting.sale).get();
  ASSERT_TRUE(sale);
  const auto orders = open_order_store(setting.orders);
  test::expect_clean(store, *sale, *orders);
  EXPECT_EQ(store.run({"XLEN", "{" + setting.sale + "}:dead"}).get().as_integer(), 0);
  check_what_buyers_were_told(setting, *orders);
}

TEST(SaleCrash, FourProcessesKilledAtRandomOnRedis) {
  auto random = random_source();
  test::RedisServer server;
  const test::TempDir folder;
  const test::TempDir journals;
  const CrashSetting setting{.url = server.url(),
                             .sale = "crash",
                             .orders = test::database_url(folder),
                             .journals = journals.path()};
  constexpr int sellers = 2;
  constexpr int all = 4;
  const auto begin = [&](int slot) {
    return slot < sellers ? test::start_seller(setting, slot, sellers)
                          : test::start_worker(setting);
  };
  std::vector<Process> crew;
  for (int slot = 0; slot < all; ++slot) crew.push_back(begin(slot));

  int kills = 0;
  const auto selling = [&] { return crew[0].running() || crew[1].running(); };
  while (selling()) {
    std::this_thread::sleep_for(200ms);
    const auto slot = static_cast<int>(random() % all);
    auto& victim = crew[static_cast<std::size_t>(slot)];
    if (!victim.running()) {
      ASSERT_LT(slot, sellers) << "a worker ended by itself";
      ASSERT_EQ(victim.wait(), 0);
      continue;
    }
    victim.kill();
    victim = begin(slot);
    ++kills;
  }
  EXPECT_EQ(crew[0].wait(), 0);
  EXPECT_EQ(crew[1].wait(), 0);
  std::cout << kills << " kills\n";

  const auto store = open(setting.url);
  auto sale = Sale::load(*store, setting.sale).get();
  const auto patience = std::chrono::steady_clock::now() + 30s;
  while (sale->status().get().waiting > 0 && std::chrono::steady_clock::now() < patience)
    std::this_thread::sleep_for(10ms);
  for (int slot = sellers; slot < all; ++slot) {
    constexpr int ended_while_starting = 128 + 15;  // before it could block SIGTERM
    crew[static_cast<std::size_t>(slot)].terminate();
    const auto status = crew[static_cast<std::size_t>(slot)].wait();
    EXPECT_TRUE(status == 0 || status == ended_while_starting) << status;
  }
  check_all(setting, *store);
}

// One process at a time holds the folder; what it told a buyer under fsync=always is there after
// SIGKILL.
TEST(SaleCrash, OneProcessKilledAtRandomOnTheEmbeddedEngine) {
  auto random = random_source();
  const test::TempDir folder;
  const test::TempDir engine;
  const test::TempDir journals;
  const CrashSetting setting{.url = "embedded:" + engine.str() + "?fsync=always",
                             .sale = "crash",
                             .orders = test::database_url(folder),
                             .journals = journals.path()};
  int kills = 0;
  for (;;) {
    auto shop = test::start_shop(setting);
    // Each life a little longer than the last: a slow build, too, gets through start and reload to
    // its buyers.
    const auto life =
        std::chrono::milliseconds{200 + random() % 200 + 20 * static_cast<unsigned>(kills)};
    if (const auto status = shop.wait_for(life)) {
      ASSERT_EQ(*status, 0);
      break;
    }
    shop.kill();
    ++kills;
  }
  std::cout << kills << " kills\n";
  EXPECT_GT(kills, 0);
  const auto store = open(setting.url);
  check_all(setting, *store);
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  if (const auto status = sluice::test::play_role(argc, argv)) return *status;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
