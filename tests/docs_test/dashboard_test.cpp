// What Grafana and Prometheus are given: each metric that they ask for is one that the service
// shows.
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

#include "base/json_value.hpp"
#include "docs_test/documents.hpp"
#include "http/counts.hpp"
#include "http/routes.hpp"
#include "sluice/metrics.hpp"

namespace sluice::docs {
namespace {

constexpr const char* dashboard = "share/grafana/sluice-sale.json";
constexpr const char* alerts = "share/prometheus/sluice-sale.rules.yml";

/// Of /metrics of `sluice serve`: what the library counts, and what its HTTP does.
std::set<std::string> shown_metrics() {
  std::set<std::string> names{"sluice_service_trouble", "sluice_service_needs"};  // of tests/server
  const auto text = prometheus_text() + http::metrics_text(http::Routes{}, {});
  const std::regex type{R"(# TYPE (\w+) (\w+))"};
  for (std::sregex_iterator it{text.begin(), text.end(), type}, end; it != end; ++it) {
    names.insert((*it)[1]);
    if ((*it)[2] != "histogram") continue;
    for (const char* const part : {"_bucket", "_sum", "_count"})
      names.insert((*it)[1].str() + part);
  }
  return names;
}

std::set<std::string> metrics_in(const std::string& text) {
  std::set<std::string> names;
  const std::regex name{R"(\bsluice_\w+)"};
  for (std::sregex_iterator it{text.begin(), text.end(), name}, end; it != end; ++it)
    names.insert(it->str());
  return names;
}

const JsonValue& member(const JsonValue& value, std::string_view name) {
  static const JsonValue none;
  const auto* const found = value.find(name);
  EXPECT_NE(found, nullptr) << name;
  return found ? *found : none;
}

TEST(Dashboard, AsksForMetricsThatThereAre) {
  const auto shown = shown_metrics();
  ASSERT_TRUE(shown.contains("sluice_http_request_duration_seconds_bucket"));
  ASSERT_TRUE(shown.contains("sluice_sale_admitted_total"));
  for (const auto* const file : {dashboard, alerts}) {
    const auto asked = metrics_in(read_text(file));
    EXPECT_GT(asked.size(), 4U) << file;
    for (const auto& name : asked)
      EXPECT_TRUE(shown.contains(name)) << file << " asks for " << name;
  }
}

TEST(Dashboard, IsReadAsJsonAndEachPanelAsksSomething) {
  const auto all = JsonValue::parse(read_text(dashboard), {.bytes = 1 << 20, .depth = 16});
  ASSERT_TRUE(all) << all.error();
  std::set<std::int64_t> ids;
  ASSERT_TRUE(member(*all, "panels").as_array());
  for (const auto& panel : *member(*all, "panels").as_array()) {
    ASSERT_TRUE(member(panel, "id").as_integer());
    EXPECT_TRUE(ids.insert(*member(panel, "id").as_integer()).second) << "an id stands twice";
    ASSERT_TRUE(member(panel, "targets").as_array());
    EXPECT_FALSE(member(panel, "targets").as_array()->empty());
    for (const auto& target : *member(panel, "targets").as_array())
      EXPECT_FALSE(metrics_in(*member(target, "expr").as_text()).empty() &&
                   member(target, "expr").as_text()->find("up{") == std::string::npos);
  }
  EXPECT_GT(ids.size(), 8U);
}

TEST(Dashboard, EachAlertStandsInThePageWithWhatToDo) {
  const auto rules = read_text(alerts);
  const auto page = read_text("docs/sale_on_servers.md");
  const std::regex alert{R"(alert: (\w+))"};
  int count = 0;
  for (std::sregex_iterator it{rules.begin(), rules.end(), alert}, end; it != end; ++it, ++count)
    EXPECT_NE(page.find("| `" + (*it)[1].str() + "` |"), std::string::npos) << (*it)[1];
  EXPECT_GT(count, 4);
}

}  // namespace
}  // namespace sluice::docs
