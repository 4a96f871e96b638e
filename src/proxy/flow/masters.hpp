/// The masters of a pool whose servers are watched by Sentinels: where each is now, by its name. A
/// thread of its own asks, as topology::SentinelWatch decides; workers look here ten times a
/// second.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/descriptor.hpp"
#include "net/endpoint.hpp"
#include "proxy/config/config.hpp"
#include "topology/sentinel_watch.hpp"

namespace sluice::proxy::flow {

struct PoolTls;

/// Threads: any.
class Masters {
 public:
  struct Place {
    std::uint64_t turn = 0;  ///< how often it has changed
    std::string host;        ///< as the Sentinels tell it; empty: no master is known
    std::vector<net::Address> addresses;
  };

  Masters(std::shared_ptr<const PoolSettings> settings, std::shared_ptr<const PoolTls> tls);
  ~Masters();

  /// Whether other settings make no difference here.
  bool serves(const PoolSettings& settings) const;
  Place of(std::string_view name) const;
  /// A connection to this master broke.
  void doubt(std::string_view name);

 private:
  class Line;
  enum class Use : std::uint8_t { asks_sentinel, hears_sentinel, asks_server };
  struct LineKey {
    Use use;
    topology::Endpoint to;
    friend auto operator<=>(const LineKey&, const LineKey&) = default;
  };
  struct Master {
    Master(std::string of, topology::SentinelWatch by)
        : name(std::move(of)), watch(std::move(by)) {}
    const std::string name;
    topology::SentinelWatch watch;
    std::optional<topology::Endpoint> told{};
  };
  friend class Line;

  void run();
  SteadyTime act(SteadyTime now);
  void tell(Master& master);
  void listen(const Master& master);
  void wait(SteadyTime until);
  void forget_lines(SteadyTime now);
  Line& line(const LineKey& key);
  void failed(std::size_t master, std::uint64_t question, std::string_view why);
  void answered(std::size_t master, std::uint64_t question, const std::vector<Value>& replies);
  void heard(std::string_view message);
  void is_back(const topology::Endpoint& sentinel);

  const std::shared_ptr<const PoolSettings> settings_;
  const std::shared_ptr<const PoolTls> tls_;
  std::vector<Master> masters_;                     // the thread's
  std::map<LineKey, std::unique_ptr<Line>> lines_;  // the thread's
  Descriptor wake_;
  mutable std::mutex mutex_;
  std::map<std::string, Place, std::less<>> places_;
  std::vector<std::string> doubted_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace sluice::proxy::flow
