#include "sluice/metrics.hpp"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

namespace sluice {
namespace {

TEST(Metrics, TheTableShowsWhatIsCounted) {
  for (const auto& row : metrics_table()) {
    if (row.name != "sluice_ids_issued_total") continue;
    const auto before = row.value->load();
    count(metrics().ids_issued, 3);
    EXPECT_EQ(row.value->load(), before + 3);
    return;
  }
  FAIL() << "no row for ids_issued";
}

TEST(Metrics, EveryRowIsACounterWithANameAndHelp) {
  std::set<std::string_view> names;
  for (const auto& row : metrics_table()) {
    EXPECT_TRUE(row.name.starts_with("sluice_")) << row.name;
    EXPECT_TRUE(row.name.ends_with("_total")) << row.name;
    EXPECT_FALSE(row.help.empty()) << row.name;
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " twice";
  }
}

TEST(Frictions, U18_OneCallGivesPrometheusText) {
  count(metrics().lock_acquired, 7);
  metrics().lock_wait.observe(std::chrono::microseconds{3});
  const auto text = prometheus_text({{"service", "a \"shop\""}, {"zone", "x"}});
  const auto labels = std::string{R"({service="a \"shop\"",zone="x"})"};
  EXPECT_NE(text.find("# TYPE sluice_lock_acquired_total counter\nsluice_lock_acquired_total" +
                      labels + ' ' + std::to_string(metrics().lock_acquired.load()) + '\n'),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("sluice_lock_wait_seconds_count" + labels + " 1\n"), std::string::npos);
  EXPECT_NE(text.find(R"(_bucket{service="a \"shop\"",zone="x",le="2e-06"} 0)"), std::string::npos)
      << text;
  EXPECT_NE(text.find(R"(zone="x",le="4e-06"} 1)"), std::string::npos);
  EXPECT_NE(text.find(R"(zone="x",le="+Inf"} 1)"), std::string::npos);
  const auto plain = prometheus_text();
  EXPECT_NE(plain.find("\nsluice_lock_acquired_total "), std::string::npos);
  EXPECT_NE(plain.find("sluice_lock_wait_seconds_bucket{le=\"+Inf\"} 1\n"), std::string::npos);
  for (const auto& row : metrics_table())
    EXPECT_NE(plain.find(std::string{"# HELP "}.append(row.name)), std::string::npos) << row.name;
}

TEST(Metrics, NoCountIsLostBetweenThreads) {
  const auto before = metrics().numbers_issued.load();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([] {
        for (int n = 0; n < 10'000; ++n) count(metrics().numbers_issued);
      });
  }
  EXPECT_EQ(metrics().numbers_issued.load(), before + 40'000);
}

}  // namespace
}  // namespace sluice
