/// Logins that a logout has ended before their time.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "sluice/store.hpp"

namespace sluice::server {

/// Guarantee: this process takes the cookie of a login no more from its end() on; all processes,
///   as soon as the store has the end.
/// Not guaranteed: that another process knows of it while the store is away.
/// Threads: any. REQUIRES: the store lives longer.
/// In Redis: string sluice:service:logout:LOGIN, until the login would have ended by itself.
class EndedLogins {
 public:
  static constexpr std::string_view prefix = "sluice:service:logout:";

  explicit EndedLogins(Store& store) : store_(store) {}

  /// `until` is when it ends by itself.
  void end(const std::string& login, WallTime until);
  /// Tells the other processes what end() has ended. Blocks; throws what the store throws.
  void tell(const std::string& login, WallTime until);

  /// As far as this process knows.
  bool has(const std::string& login) const;
  /// The same, and the store is asked, for half a second at most. Empty: it does not answer.
  std::optional<bool> look_for(const std::string& login, WallTime until);

 private:
  Store& store_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, WallTime> ended_;  // guarded by mutex_; until they end anyway
};

}  // namespace sluice::server
