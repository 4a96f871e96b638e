/// A lock whose hold stands in a hash, one at a time: Mutex and FairMutex. How it is kept, and what
/// operators see of it.
#pragma once

#include <string>
#include <vector>

#include "lock/mutex/names.hpp"
#include "lock/wait/lock_resource.hpp"
#include "sluice/lock_info.hpp"

namespace sluice::lock {

class HashLock : public LockResource {
 public:
  using LockResource::LockResource;

  const Script& renewal() const noexcept override;
  void add_to(Renewal& renewal, const Hold& hold, std::uint32_t entries) const override;
  Task<Value> ask_recount(const Hold& hold, std::uint32_t entries) override;
};

/// What to ask, first of all, for the hold in a lock hash.
void ask_for_hold(Batch& batch, const Names& names);
/// What the answers say; the waiters are left to the caller. Throws Error if any of `replies` is
/// one; wrong_type where the hash of that name is no lock.
LockInfo hold_info(const std::string& name, const std::vector<Value>& replies);

Task<LockInfo> info_of(Store& store, Names names);

}  // namespace sluice::lock
