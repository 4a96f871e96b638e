/// Which keys clients keep copies of, and who is told when one changes: CLIENT TRACKING.
///
/// Threads: under the engine's lock.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/context.hpp"

namespace sluice::port {

class Connection;

/// How a connection wants to be told.
struct Tracking {
  enum class Mode : std::uint8_t {
    all,      ///< of the keys that it has read
    opt_in,   ///< of those read after CLIENT CACHING YES
    opt_out,  ///< of those not read after CLIENT CACHING NO
    prefixes  ///< BCAST: of all keys that begin so
  };
  Mode mode = Mode::all;
  bool skips_own = false;      ///< NOLOOP
  std::uint64_t redirect = 0;  ///< id of the connection that is told; 0: itself
  std::vector<std::string> prefixes;
  std::optional<bool> caching;  ///< for the next command

  /// Whether the keys of the command in hand are kept by the client.
  bool keeps() const noexcept {
    if (mode == Mode::prefixes) return false;
    return mode == Mode::opt_in ? caching.value_or(false) : caching.value_or(true);
  }
};

/// The keys that connections were told of, and the prefixes.
class Trackers {
 public:
  /// Beyond so many keys some are told as if they had changed.
  static constexpr std::size_t most_keys = 1'000'000;

  void begin(Connection& connection);
  void end(Connection& connection);
  void keeps(Connection& connection, std::string_view key);
  bool empty() const noexcept { return connections_.empty(); }
  /// `by`: who has changed it; null: nobody, it has expired.
  void changed(std::string_view key, const engine::Session* by);
  /// Every key may have changed.
  void all_changed();

 private:
  void tell(Connection& connection, const std::string_view* key);
  void forget(std::map<std::string, std::set<std::uint64_t>, std::less<>>::iterator kept,
              const engine::Session* by);

  std::map<std::uint64_t, Connection*> connections_;  // by id
  std::map<std::string, std::set<std::uint64_t>, std::less<>> kept_;
};

}  // namespace sluice::port
