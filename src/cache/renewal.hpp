/// Keeps the lease of a load that runs: it is renewed each third of its time, for `longest_load`.
///
/// A process that is killed or stands still renews nothing, so others wait no longer than for the
/// lease. One that was taken away, by an invalidation or because it was over, is not taken back.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "cache/common.hpp"

namespace sluice::cache {

/// Threads: any.
class Renewal : public std::enable_shared_from_this<Renewal> {
 public:
  Renewal(std::shared_ptr<Common> common, std::string value_key, std::string owner);

  /// While one is there the lease is renewed.
  class Scope {
   public:
    explicit Scope(Renewal& of) : of_(of) { of_.begin(); }
    ~Scope() { of_.end(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Renewal& of_;
  };

 private:
  void begin();
  void end();
  void plan();
  Task<void> renew();

  const std::shared_ptr<Common> common_;
  const std::string value_key_;
  const std::string owner_;
  Clock& clock_;  // the Store's, which ends later than the Store may
  SteadyTime until_{};
  std::mutex mutex_;
  Clock::TimerId timer_ = 0;
  bool ended_ = false;
};

}  // namespace sluice::cache
