/// A lock whose hold stands in a hash, one at a time: Mutex and FairMutex.
#pragma once

#include <string>

#include "lock/wait/lock_resource.hpp"

namespace sluice::lock {

class HashLock : public LockResource {
 public:
  using LockResource::LockResource;

  const Script& renewal() const noexcept override;
  void add_to(Renewal& renewal, const Hold& hold, std::uint32_t entries) const override;
  Task<Value> ask_recount(const Hold& hold, std::uint32_t entries) override;
};

}  // namespace sluice::lock
