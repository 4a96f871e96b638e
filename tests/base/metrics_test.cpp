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
