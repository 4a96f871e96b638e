/// A hold as it stands in a lock hash, prolonged and counted: Mutex and FairMutex.
#pragma once

#include <string>

#include "lock/hold/hold.hpp"

namespace sluice::lock {

const Script& hash_hold_renewal() noexcept;
/// The words for one hold of `key` in that script.
void add_hash_hold(Renewal& renewal, const std::string& key, const Hold& hold,
                   std::uint32_t entries);
/// Resource::ask_recount.
Task<Value> ask_hash_recount(Store& store, const std::string& key, const Hold& hold,
                             std::uint32_t entries);

}  // namespace sluice::lock
