/// Keeps the lease of a load until what it brought is stored: it is renewed each third of its time,
/// for `longest_load`, while this object lives.
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
  Renewal(const Renewal&) = delete;
  Renewal& operator=(const Renewal&) = delete;
  ~Renewal();

  void begin();

 private:
  void plan();
  Task<void> renew();

  const std::shared_ptr<Common> common_;
  const std::string value_key_;
  const std::string owner_;
  Clock& clock_;  // the Store's, which ends later than the Store may
  SteadyTime until_{};
  std::mutex mutex_;
  Clock::TimerId timer_ = 0;
};

}  // namespace sluice::cache
