#include "lock/mutex/wire.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lock/hold/renew.lua.hpp"
#include "lock/mutex/acquire.lua.hpp"
#include "lock/mutex/force_release.lua.hpp"
#include "lock/mutex/recount.lua.hpp"
#include "lock/mutex/release.lua.hpp"

namespace sluice::lock {
namespace {

std::string_view text_of(const fmt::format_int& number) { return {number.data(), number.size()}; }

}  // namespace

Task<Value> ask_acquire(Store& store, const Names& names, std::string_view owner,
                        std::string_view request, std::chrono::milliseconds lease) {
  const fmt::format_int lease_ms{lease.count()};
  return store.run(scripts::lock_mutex_acquire, {names.key, names.token},
                   {owner, text_of(lease_ms), request}, {.repeatable = true});
}

Answer answer_to_acquire(const Value& reply) {
  const auto is_integer = [](const Value& value) { return value.type() == Value::Type::integer; };
  if (is_integer(reply))
    return {.granted = FencingToken{static_cast<std::uint64_t>(reply.as_integer())}};
  if (reply.is_aggregate() && reply.as_items().size() == 1 && is_integer(reply.as_items()[0]))
    return {.granted = std::nullopt,
            .left = std::chrono::milliseconds{reply.as_items()[0].as_integer()}};
  throw Error{Errc::protocol,
              "lock/mutex/acquire answered " + to_string(reply) + ", neither a token nor a time",
              Effect::unknown};
}

Task<Value> ask_recount(Store& store, const Hold& hold, std::uint32_t entries) {
  const fmt::format_int lease_ms{hold.terms.lease.count()};
  const fmt::format_int count{entries};
  return store.run(scripts::lock_mutex_recount, {hold.names->key},
                   {hold.owner, text_of(lease_ms), hold.request, text_of(count)},
                   {.repeatable = true});
}

Task<Value> ask_release(Store& store, const Names& names, std::string_view request,
                        bool repeatable) {
  return store.run(scripts::lock_mutex_release, {names.key}, {request, names.channel},
                   {.repeatable = repeatable});
}

Batch renewal_of(std::span<const std::shared_ptr<Hold>> holds) {
  Batch batch;
  while (!holds.empty()) {
    const auto part = holds.first(std::min(holds.size(), holds_a_script));
    std::vector<std::string> leases;  // what `args` points into
    std::vector<std::string_view> keys;
    std::vector<std::string_view> args;
    leases.reserve(part.size());
    for (const auto& hold : part) {
      keys.push_back(hold->names->key);
      args.push_back(hold->request);
      args.push_back(leases.emplace_back(std::to_string(hold->terms.lease.count())));
    }
    batch.add(scripts::lock_hold_renew, keys, args);
    holds = holds.subspan(part.size());
  }
  return batch;
}

Task<Value> ask_force_release(Store& store, const Names& names) {
  return store.run(scripts::lock_mutex_force_release, {names.key}, {names.channel},
                   {.repeatable = true});
}

}  // namespace sluice::lock
