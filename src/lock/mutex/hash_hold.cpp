#include "lock/mutex/hash_hold.hpp"

#include <fmt/format.h>

#include "lock/hold/watchdog.hpp"
#include "lock/mutex/hash_hold.lua.hpp"

namespace sluice::lock {

using std::chrono::milliseconds;

namespace {

std::string_view text_of(const fmt::format_int& number) { return {number.data(), number.size()}; }

milliseconds held_for(const Hold& hold) {
  return std::chrono::floor<milliseconds>(hold.watchdog->clock().steady() - hold.began);
}

}  // namespace

const Script& hash_hold_renewal() noexcept { return scripts::lock_mutex_renew; }

void add_hash_hold(Renewal& renewal, const std::string& key, const Hold& hold,
                   std::uint32_t entries) {
  renewal.keys.push_back(key);
  auto& args = renewal.args;
  args.push_back(hold.who.request);
  args.push_back(std::to_string(hold.terms.lease.count()));
  args.push_back(hold.who.owner);
  args.push_back(std::to_string(entries));
  args.push_back(hold.who.holder);
  args.push_back(std::to_string(held_for(hold).count()));
}

Task<Value> ask_hash_recount(Store& store, const std::string& key, const Hold& hold,
                             std::uint32_t entries) {
  const fmt::format_int lease{hold.terms.lease.count()};
  const fmt::format_int count{entries};
  const fmt::format_int held{held_for(hold).count()};
  return store.run(scripts::lock_mutex_recount, {key},
                   {hold.who.request, text_of(lease), hold.who.owner, text_of(count),
                    hold.who.holder, text_of(held)},
                   {.repeatable = true});
}

}  // namespace sluice::lock
