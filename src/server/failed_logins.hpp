/// How often clients may try to log in in vain.
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "sluice/clock.hpp"

namespace sluice::server {

/// Counts failures in each minute, by the network of the client. Beyond `most_networks` all others
/// count together, so that nobody fills the memory and nobody tries without end.
///
/// Threads: any.
class FailedLogins {
 public:
  static constexpr std::size_t most_a_minute = 10;
  static constexpr std::size_t most_networks = 10'000;

  explicit FailedLogins(const Clock& clock) : clock_(clock) {}

  /// How long this client has to wait for its next try; empty: it may try.
  std::optional<std::chrono::nanoseconds> wait(const std::string& client);
  void note(const std::string& client);

 private:
  void begin_minute(SteadyTime now);
  std::size_t& count_of(const std::string& network);

  const Clock& clock_;
  std::mutex mutex_;
  std::optional<SteadyTime> until_;                      // guarded by mutex_; of this minute
  std::unordered_map<std::string, std::size_t> counts_;  // guarded by mutex_
  std::size_t others_ = 0;                               // guarded by mutex_
};

/// An IPv4 address, or the /64 of an IPv6 address, by which a client is known; what is no address
/// is itself.
std::string network_of_client(const std::string& client);

}  // namespace sluice::server
