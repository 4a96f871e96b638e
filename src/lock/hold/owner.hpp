/// Identities, and what an owner is in at the moment.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "lock/hold/hold.hpp"

namespace sluice::lock {

/// `<uuid>:<number>`, never twice.
std::string new_owner_id();
/// Names one request to acquire among those of all processes and times.
std::string new_request_id();

struct OwnerState {
  OwnerId id;
  std::mutex mutex;
  std::vector<std::weak_ptr<Hold>> holds;

  /// The hold of this lock that is in force; null: none.
  std::shared_ptr<Hold> find(const Watchdog& watchdog, const Resource& resource);
  void add(const std::shared_ptr<Hold>& hold);

  /// That the owner waits for that lock. False: it does already, by another request.
  bool begin_wait(const Resource& resource);
  void end_wait(const Resource& resource);

 private:
  using Waited = std::pair<const Store*, std::string>;
  std::vector<Waited> waits_for_;
};

}  // namespace sluice::lock
