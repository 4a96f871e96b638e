/// What `sluice proxy top` shows: the difference of two statistics_json(). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/watch/hot_keys.hpp"
#include "proxy/watch/latency_histogram.hpp"

namespace sluice::proxy::watch {

struct TopServer {
  std::string name;
  std::string state;                ///< "up", "ejected" or "probing"
  std::string cause;                ///< why it is ejected
  std::int64_t ejected_s = 0;       ///< for how long
  double requests = 0, errors = 0;  ///< a second
  std::int64_t connections = 0;
  std::int64_t waiting = 0;  ///< requests queued or sent
  LatencyCounts latency;
};

struct TopPool {
  std::string name;
  double requests = 0, errors = 0;
  double limited = 0;  ///< requests a second that were refused or waited, because of rate_limit
  double mirror_mismatches = 0;  ///< a second
  double mirror_lost = 0;        ///< a second: dropped, or not answered
  std::int64_t clients = 0;
  LatencyCounts latency;  ///< of all commands
  std::vector<TopServer> servers;
};

struct TopFrame {
  std::int64_t uptime_s = 0;
  double seconds = 0;  ///< that the rates are of
  std::vector<TopPool> pools;
  std::vector<HotKey> hot_keys;
};

/// Both are from statistics_json(). A pool or server that `before` lacks, or that began anew since,
/// counts from zero. Throws Error{protocol} for text that is no statistics.
TopFrame top_frame(std::string_view before, std::string_view now);

/// A table: a line for each pool and server, then the hot keys. Long names are cut.
std::string top_text(const TopFrame& frame);
/// One line.
std::string top_json(const TopFrame& frame);

}  // namespace sluice::proxy::watch
