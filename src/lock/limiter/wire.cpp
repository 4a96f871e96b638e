#include "lock/limiter/wire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "lock/limiter/acquire.lua.hpp"
#include "lock/limiter/set_rate.lua.hpp"
#include "store/key_name.hpp"

namespace sluice::lock {
namespace {

using Kind = RateAnswer::Kind;

constexpr std::array<std::pair<std::string_view, Kind>, 4> kinds{{
    {"granted", Kind::granted},
    {"wait", Kind::wait},
    {"mismatch", Kind::mismatch},
    {"above", Kind::above},
}};

/// What both scripts are told first.
struct Definition {
  explicit Definition(const Rate& rate)
      : permits(fmt::to_string(rate.permits)),
        interval(fmt::to_string(rate.interval.count())),
        kind(1, rate.kind),
        keep_alive(fmt::to_string(rate.keep_alive.count())) {}

  std::string permits;
  std::string interval;
  std::string kind;
  std::string keep_alive;
};

std::string with_client(std::string key, std::string_view client) {
  return client.empty() ? key : key_with_suffix(key, client);
}

}  // namespace

RateKeys::RateKeys(std::string name, std::string_view client)
    : definition(std::move(name)),
      free(with_client(key_with_suffix(definition, "value"), client)),
      log(with_client(key_with_suffix(definition, "permits"), client)) {}

Task<Value> ask_permits(Store& store, const RateKeys& keys, const Rate& rate,
                        const RateRequest& request) {
  const Definition words{rate};
  const std::string counted_by = fmt::to_string(request.counted_by);
  const std::string permits = fmt::to_string(request.permits);
  return store.run(scripts::lock_limiter_acquire, {keys.definition, keys.free, keys.log},
                   {words.permits, words.interval, words.kind, words.keep_alive,
                    request.follow ? "1" : "0", counted_by, permits, request.id},
                   {.repeatable = true});
}

RateAnswer answer_to_permits(const Value& reply) {
  const auto& parts = reply.as_items();
  const auto* const kind =
      std::ranges::find(kinds, parts.at(0).as_text(), &std::pair<std::string_view, Kind>::first);
  if (kind == kinds.end())
    throw Error{Errc::protocol, "lock/limiter/acquire answered " + to_string(reply),
                Effect::unknown};
  RateAnswer answer{.kind = kind->second};
  switch (answer.kind) {
    case Kind::granted:
      answer.left = parts.at(1).as_integer();
      answer.rate = parts.at(2).as_integer();
      break;
    case Kind::wait:
      answer.wait = std::chrono::microseconds{parts.at(1).as_integer()};
      answer.rate = parts.at(2).as_integer();
      break;
    case Kind::mismatch:
      answer.in_force = fmt::format("{} in {} ms, kind {}", parts.at(1).as_text(),
                                    parts.at(2).as_text(), parts.at(3).as_text());
      break;
    case Kind::above: answer.in_force = parts.at(1).as_text(); break;
  }
  return answer;
}

Batch change_of_rate(const RateKeys& keys, const Rate& rate) {
  const Definition words{rate};
  const std::array<std::string_view, 1> definition{keys.definition};
  const std::array<std::string_view, 4> terms{words.permits, words.interval, words.kind,
                                              words.keep_alive};
  const std::array<std::string_view, 3> all{keys.definition, keys.free, keys.log};
  const std::array<std::string_view, 8> look{
      words.permits, words.interval, words.kind, words.keep_alive, "1", "0", "0", ""};
  Batch batch;
  batch.add(scripts::lock_limiter_set_rate, definition, terms);
  batch.add(scripts::lock_limiter_acquire, all, look);
  return batch;
}

}  // namespace sluice::lock
