// Dependencies that stand still, and all other faults of them, at every route of a service.
// SLUICE_LONG=1: the whole matrix; without it a column of it.
#include <sqlite3/soci-sqlite3.h>

#include <cstdlib>

#include "sale/sql/soci.hpp"
#include "server/frozen_shop.hpp"
#include "support/free_port.hpp"

namespace sluice::server {
namespace {

using namespace std::chrono_literals;
using namespace test;

/// Which database, and which of the two is at fault.
struct Column {
  std::string name;
  std::unique_ptr<Dependency> (*orders)();
  std::string_view dependency;

  friend void PrintTo(const Column& column, std::ostream* to) { *to << column.name; }
};

template <class Of>
std::unique_ptr<Dependency> make() {
  return std::make_unique<Of>();
}

bool is_long() { return std::getenv("SLUICE_LONG") != nullptr; }

/// Beyond it a client has given up.
constexpr auto longest_answer = 8s;

class Frozen : public testing::TestWithParam<Column> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(shop_.begins()) << shop_.served().output();
    for (int i = 0; i < 2; ++i)  // warm: as of a service that has run for a while
      for (const auto& answer : shop_.routes().ask_all())
        EXPECT_TRUE(answer.status > 0 && answer.status < 500)
            << answer.operation << ": " << answer.status << ' ' << answer.problem;
  }

  bool is_as_in(const FaultRow& row) const {
    return std::to_string(shop_.ready().status) == row.ready &&
           (row.alert == "-" ? shop_.alerts().empty() : shop_.alerts() == row.alert);
  }

  void try_row(const FaultRow& row) {
    auto& at_fault = row.dependency == "store" ? *store_ : *orders_;
    auto& service = shop_.served().process();
    if (!at_fault.begin(row.fault, service)) return;
    for (int round = 0; round < (is_long() ? 2 : 1); ++round) expect_answers(row);
    EXPECT_TRUE(comes_true([&] { return is_as_in(row); }))
        << "/readyz " << shop_.ready().status << ' ' << shop_.ready().body << "; alerts '"
        << shop_.alerts() << '\'';
    at_fault.end(row.fault, service);
    EXPECT_TRUE(comes_true([&] { return shop_.ready().status == 200 && shop_.alerts().empty(); }))
        << shop_.ready().body << shop_.alerts();
    EXPECT_TRUE(comes_true([&] { return shop_.sold(fmt::format("after{}", ++buyers_)) == 201; }));
  }

  void expect_answers(const FaultRow& row) {
    std::chrono::milliseconds longest{};
    for (const auto& answer : shop_.routes().ask_all()) {
      longest = std::max(longest, answer.took);
      EXPECT_NE(answer.status, 0) << answer.operation << " has no answer";
      EXPECT_NE(answer.status, 500) << answer.operation << ' ' << answer.problem;
      EXPECT_TRUE(answer.status != 503 || answer.says_when) << answer.operation;
      EXPECT_NE(answer.problem, row.dependency == "store" ? "database-failed" : "store-failed")
          << answer.operation << " names what is well";
      EXPECT_LE(answer.took, longest_answer) << answer.operation << ' ' << answer.status;
      if (answer.operation == "buy" && row.buyers != recovers)
        EXPECT_EQ(answer.status, row.buyers == sold ? 201 : 503) << answer.problem;
      // A file that another program writes into is read all the same.
      const bool is_locked_file = GetParam().name == "sqlite" && row.fault == Fault::stands_still;
      if (answer.operation == "console_orders" && !is_locked_file)
        EXPECT_EQ(std::to_string(answer.status), row.operators) << answer.problem;
      if (std::getenv("SLUICE_SHOW"))
        fmt::print("    {:25} {} {:20} {} ms\n", answer.operation, answer.status, answer.problem,
                   answer.took.count());
    }
    fmt::print("  {} {}: longest answer {} ms\n", row.dependency, row.name, longest.count());
  }

  std::unique_ptr<Dependency> store_ = std::make_unique<FaultyRedis>();
  std::unique_ptr<Dependency> orders_ = GetParam().orders();
  FrozenShop shop_{*store_, *orders_};
  int buyers_ = 0;
};

TEST_P(Frozen, SV06_SV07_EachRouteAnswersInTimeAndReadinessIsAsTheTableSays) {
  for (const auto& row : fault_matrix) {
    const bool is_short = row.fault == Fault::stands_still || row.fault == Fault::full;
    if (row.dependency != GetParam().dependency || (!is_long() && !is_short)) continue;
    SCOPED_TRACE(fmt::format("{} {}", row.dependency, row.name));
    try_row(row);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Frozen,
                         testing::Values(Column{"redis", make<FaultySqlite>, "store"},
                                         Column{"postgresql", make<FaultyPostgresql>, "database"},
                                         Column{"mariadb", make<FaultyMariadb>, "database"},
                                         Column{"sqlite", make<FaultySqlite>, "database"}),
                         [](const auto& column) { return column.param.name; });

/// HAProxy as a shop has it in front: it asks /readyz, and sends buyers to those who are ready.
class Balancer {
 public:
  Balancer(const TempDir& folder, const std::vector<std::pair<std::uint16_t, std::uint16_t>>& to) {
    std::ofstream file{folder / "haproxy.cfg"};
    file << "defaults\n  mode http\n  timeout connect 5s\n  timeout client 30s\n"
         << "  timeout server 30s\nfrontend buyers\n  bind 127.0.0.1:" << port_
         << "\n  default_backend shop\nbackend shop\n  option httpchk GET /readyz\n"
         << "  http-check expect status 200\n  default-server inter 50ms fall 2 rise 1\n";
    for (const auto& [port, health] : to)
      file << fmt::format("  server s{0} 127.0.0.1:{0} check port {1}\n", port, health);
    file.close();
    process_.emplace(
        std::vector<std::string>{"haproxy", "-db", "-f", (folder / "haproxy.cfg").string()},
        ProcessOptions{.directory = {}, .environment = {}, .output = folder / "out"});
  }
  int buy(const std::string& buyer) const try {
    return ask(port_, "POST", "/v1/sales/tea/orders",
               {{"Sluice-Buyer", buyer}, {"Idempotency-Key", "k"}})
        .status;
  } catch (const std::system_error&) {
    return 0;  // it has only begun
  }

 private:
  const std::uint16_t port_ = free_port();
  std::optional<Process> process_;
};

TEST(Behind, SV07_ABalancerSendsBuyersWhileTheDatabaseStandsStill) {
  const TempDir folder;
  FaultyRedis redis;
  FaultyPostgresql postgresql;
  FrozenShop one{redis, postgresql};
  ASSERT_TRUE(one.begins()) << one.served().output();
  FrozenShop other{redis, postgresql};
  ASSERT_TRUE(other.begins()) << other.served().output();
  const Balancer balancer{folder,
                          {{one.served().port(), one.served().health_port()},
                           {other.served().port(), other.served().health_port()}}};
  ASSERT_TRUE(comes_true([&] { return balancer.buy("first") == 201; }));
  postgresql.begin(Fault::stands_still, one.served().process());
  for (auto* const shop : {&one, &other})
    EXPECT_TRUE(comes_true([&] { return shop->ready().body.find("answer") != std::string::npos; }));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(balancer.buy(fmt::format("b{}", i)), 201);
  one.served().process().kill();
  EXPECT_TRUE(comes_true([&] { return balancer.buy("after") == 201; })) << "by the other one";
  postgresql.end(Fault::stands_still, one.served().process());
}

// What a balancer was told is so: buyers who come then are listened to.
TEST(Behind, SV07_WhatIsReadyListens) {
  const TempDir folder;
  for (int start = 0; start < 4; ++start) {
    const auto port = free_port();
    const auto health = free_port();
    const auto local = [](std::uint16_t at) { return fmt::format("127.0.0.1:{}", at); };
    Process process{{built_path("sluice-serve"), "--data", (folder / "data").string(), "--listen",
                     local(port), "--health", local(health), "--notice", "0s"},
                    {.directory = folder.path(), .environment = {}, .output = folder / "out"}};
    EXPECT_TRUE(comes_true([&] {
      try {
        return ask(health, "GET", "/readyz").status == 200;
      } catch (const std::system_error&) {
        return false;
      }
    })) << text_of(folder / "out");
    EXPECT_NO_THROW(EXPECT_EQ(ask(port, "GET", "/v1/sales").status, 200)) << start;
    process.terminate();
    EXPECT_EQ(process.wait(), 0);
  }
}

}  // namespace
}  // namespace sluice::server
