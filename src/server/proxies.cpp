#include "server/proxies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <thread>

#include "base/integer.hpp"
#include "base/thread.hpp"
#include "base/url.hpp"
#include "server/http_client.hpp"
#include "server/operate_text.hpp"

namespace sluice::server {
namespace {

using namespace std::chrono_literals;

constexpr auto fresh_for = 2s;
constexpr std::size_t most_servers = 1000;  // of a proxy
constexpr std::size_t most_bytes = std::size_t{4} << 20;

struct MetricLine {
  std::string_view name;
  std::map<std::string, std::string, std::less<>> labels;
  double value = 0;

  const std::string& label(std::string_view wanted) const {
    static const std::string none;
    const auto found = labels.find(wanted);
    return found == labels.end() ? none : found->second;
  }
};

/// The value of a label, up to its closing quote, which goes too. Empty: it has none.
std::optional<std::string> value_of_label(std::string_view& rest) {
  std::string value;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    if (rest[i] == '"') {
      rest.remove_prefix(i + 1);
      return value;
    }
    if (rest[i] != '\\') {
      value += rest[i];
    } else if (++i < rest.size()) {
      value += rest[i] == 'n' ? '\n' : rest[i];
    }
  }
  return std::nullopt;
}

/// `name{label="value",...} number`
std::optional<MetricLine> metric_of(std::string_view line) {
  const auto brace = line.find('{');
  if (line.starts_with('#') || brace == line.npos) return std::nullopt;
  MetricLine metric{.name = line.substr(0, brace)};
  line.remove_prefix(brace + 1);
  while (!line.starts_with('}')) {
    const auto quote = line.find("=\"");
    if (quote == line.npos) return std::nullopt;
    auto name = std::string{line.substr(0, quote)};
    line.remove_prefix(quote + 2);
    auto value = value_of_label(line);
    if (!value) return std::nullopt;
    metric.labels.emplace(std::move(name), std::move(*value));
    if (line.starts_with(',')) line.remove_prefix(1);
  }
  line.remove_prefix(std::min(line.find_first_not_of("} "), line.size()));
  const auto number = parse_decimal(line.substr(0, line.find(' ')));
  if (!number || !std::isfinite(*number)) return std::nullopt;
  metric.value = *number;
  return metric;
}

template <class Named>
Named& named(std::vector<Named>& all, const std::string& name) {
  const auto found = std::ranges::find(all, name, &Named::name);
  if (found != all.end()) return *found;
  all.push_back({.name = name});
  return all.back();
}

Json pool_json(const ProxyPool& pool) {
  double all = 0;
  for (const auto& server : pool.servers) all += server.requests;
  auto servers = Json::array();
  for (const auto& server : pool.servers) {
    const auto share = all > 0 ? Json{std::round(1000 * server.requests / all) / 1000} : Json{};
    servers.add(Json::object({{"name", cut(server.name)},
                              {"address", cut(server.name)},
                              {"weight", server.weight ? Json{*server.weight} : Json{}},
                              {"alive", server.is_alive},
                              {"share", share}}));
  }
  return Json::object({{"name", cut(pool.name)}, {"servers", servers}});
}

/// Proxies stand in private networks, and it is the owner who has named them.
HttpClientOptions client_options() {
  return {.connect = 1s, .whole = 1s, .body = most_bytes, .allows_private = true};
}

std::string metrics_at(const std::string& url) {
  const auto answer = HttpClient{client_options()}.get(url);
  if (answer.status != 200)
    throw Error{Errc::connection, fmt::format("it answers {}", answer.status)};
  if (answer.is_cut)
    throw Error{Errc::connection, fmt::format("it answers with more than {} bytes", most_bytes)};
  return answer.body;
}

Json proxy_json(const std::string& url) {
  auto pools = Json::array();
  std::string why;
  try {
    for (const auto& pool : pools_in(metrics_at(url))) pools.add(pool_json(pool));
  } catch (const std::exception& failure) {
    why = failure.what();
  }
  return Json::object(
      {{"url", url}, {"reachable", why.empty()}, {"why", cut(why)}, {"pools", pools}});
}

/// With the path of the metrics, where none is given.
std::string metrics_url(const std::string& word) {
  const auto url = parse_url(word);
  if (url.scheme != "http" || url.servers.size() != 1 || url.servers.front().host.empty() ||
      !url.servers.front().port || !url.user.empty())
    throw Error{Errc::bad_argument,
                fmt::format("--proxy '{}': write where the proxy has its metrics, like "
                            "http://127.0.0.1:22223",
                            word)};
  if (url.path.empty()) return word + "/metrics";
  return url.path == "/" ? word + "metrics" : word;
}

std::vector<std::string> metrics_urls(std::vector<std::string> words) {
  if (words.size() > Proxies::most)
    throw Error{Errc::bad_argument, fmt::format("--proxy: up to {} proxies", Proxies::most)};
  for (auto& word : words) word = metrics_url(word);
  return words;
}

}  // namespace

std::vector<ProxyPool> pools_in(std::string_view metrics) {
  std::vector<ProxyPool> pools;
  std::size_t servers = 0;
  while (!metrics.empty()) {
    const auto end = std::min(metrics.find('\n'), metrics.size());
    const auto metric = metric_of(metrics.substr(0, end));
    metrics.remove_prefix(std::min(end + 1, metrics.size()));
    if (!metric) continue;
    const bool is_state = metric->name == "sluice_proxy_server_state";
    const bool is_weight = metric->name == "sluice_proxy_server_weight";
    if (!is_state && !is_weight && metric->name != "sluice_proxy_server_requests_total") continue;
    auto& pool = named(pools, metric->label("pool"));
    const auto before = pool.servers.size();
    auto& server = named(pool.servers, metric->label("server"));
    servers += pool.servers.size() - before;
    if (is_state && metric->label("state") == "up") server.is_alive = metric->value == 1;
    if (is_weight) server.weight = std::llround(std::clamp(metric->value, 0.0, 1e9));
    if (!is_state && !is_weight) server.requests = metric->value;
    if (servers >= most_servers) break;
  }
  return pools;
}

Proxies::Proxies(std::vector<std::string> urls) : urls_(metrics_urls(std::move(urls))) {}

Json Proxies::look() {
  const std::lock_guard lock{mutex_};
  const auto now = system_clock().steady();
  if (!looked_ || now - *looked_ >= fresh_for) {
    std::vector<Json> answers(urls_.size());
    {
      std::vector<std::jthread> asking;  // each in a thread: one that is away holds up no other
      for (std::size_t i = 0; i < urls_.size(); ++i)
        asking.push_back(start_stoppable_thread([&, i] { answers[i] = proxy_json(urls_[i]); }));
    }
    auto all = Json::array();
    for (const auto& answer : answers) all.add(answer);
    last_ = Json::object({{"proxies", all}}).text();
    looked_ = system_clock().steady();
  }
  return Json::raw(last_);
}

OperateCall Proxies::call() {
  return {
      .method = "GET",
      .path = "/v1/operate/proxies",
      .operation = "console_proxies",
      .summary = "The rings of proxies, as far as they are reachable",
      .answer = {200, "Proxies", R"({"type":"object"})"},
      .subject = "proxies",
      .asks_database = false,
      .serve = [this](Asked&, const BlockingThreads::Orders&) { return http::json(200, look()); }};
}

}  // namespace sluice::server
