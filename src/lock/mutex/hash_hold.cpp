#include "lock/mutex/hash_hold.hpp"

#include "lock/hold/hold.hpp"
#include "lock/mutex/hash_hold.lua.hpp"

namespace sluice::lock {
namespace {

std::string held_for(const Hold& hold) {
  const auto time = hold.watchdog->clock().steady() - hold.began;
  return std::to_string(std::chrono::floor<std::chrono::milliseconds>(time).count());
}

}  // namespace

const Script& HashLock::renewal() const noexcept { return scripts::lock_mutex_renew; }

void HashLock::add_to(Renewal& renewal, const Hold& hold, std::uint32_t entries) const {
  renewal.keys.push_back(key());
  for (std::string word :
       {hold.who.request, std::to_string(hold.terms.lease.count()), hold.who.owner,
        std::to_string(entries), hold.who.holder, held_for(hold)})
    renewal.args.push_back(std::move(word));
}

Task<Value> HashLock::ask_recount(const Hold& hold, std::uint32_t entries) {
  return store().run(scripts::lock_mutex_recount, {key()},
                     {hold.who.request, std::to_string(hold.terms.lease.count()), hold.who.owner,
                      std::to_string(entries), hold.who.holder, held_for(hold)},
                     {.repeatable = true});
}

}  // namespace sluice::lock
