/// The rings of proxies, as their metrics tell.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "server/operate_call.hpp"
#include "sluice/clock.hpp"

namespace sluice::server {

struct ProxyServer {
  std::string name;  ///< as its pool calls it
  bool is_alive = false;
  double requests = 0;                      ///< since the proxy began
  std::optional<std::int64_t> weight = {};  ///< in the ring; empty: the proxy does not tell
};
struct ProxyPool {
  std::string name;
  std::vector<ProxyServer> servers;
};
/// Reads the text of a proxy's /metrics; lines that it does not know say nothing.
std::vector<ProxyPool> pools_in(std::string_view metrics);

/// Asks all proxies at once, for a second at most, at most every two seconds, however many want to
/// see it. Threads: any; it blocks.
class Proxies {
 public:
  static constexpr std::size_t most = 16;

  /// "http://127.0.0.1:22223": where a proxy has its metrics (`metrics:` in its file). Throws
  /// Error{bad_argument}: more than `most`, or no such URL.
  explicit Proxies(std::vector<std::string> urls);

  /// GET /v1/operate/proxies. REQUIRES: this lives longer.
  OperateCall call();

 private:
  Json look();

  const std::vector<std::string> urls_;
  std::mutex mutex_;
  std::string last_;                  // guarded by mutex_
  std::optional<SteadyTime> looked_;  // guarded by mutex_
};

}  // namespace sluice::server
