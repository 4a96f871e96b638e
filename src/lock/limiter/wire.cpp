#include "lock/limiter/wire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <utility>

#include "base/integer.hpp"
#include "base/process.hpp"
#include "base/random.hpp"
#include "lock/limiter/limiter.lua.hpp"
#include "store/key_name.hpp"
#include "store/reply_error.hpp"

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

RateAnswer answer_of(const Value& reply) {
  const auto& parts = reply.as_items();
  const auto* const kind =
      std::ranges::find(kinds, parts.at(0).as_text(), &std::pair<std::string_view, Kind>::first);
  if (kind == kinds.end())
    throw Error{Errc::protocol, "lock/limiter/acquire answered " + to_string(reply),
                Effect::unknown};
  RateAnswer answer;
  answer.kind = kind->second;
  switch (answer.kind) {
    case Kind::granted:
      answer.left = parts.at(1).as_integer();
      answer.rate = parts.at(2).as_integer();
      break;
    case Kind::wait:
      answer.wait = std::chrono::microseconds{parts.at(1).as_integer()};
      answer.rate = parts.at(2).as_integer();
      answer.strangers = parts.at(3).as_integer() == 1;
      break;
    case Kind::mismatch:
      answer.in_force = fmt::format("{} in {} ms, kind {}", parts.at(1).as_text(),
                                    parts.at(2).as_text(), parts.at(3).as_text());
      break;
    case Kind::above: answer.in_force = parts.at(1).as_text(); break;
  }
  return answer;
}

/// 64 random bits of the kernel.
std::uint64_t random_bits() {
  return *parse_integer<std::uint64_t>(random_hex_128().substr(0, 16), 16);
}

}  // namespace

RateKeys::RateKeys(std::string name, std::string_view client)
    : definition(std::move(name)),
      free(with_client(key_with_suffix(definition, "value"), client)),
      log(with_client(key_with_suffix(definition, "permits"), client)) {}

Task<RateAnswer> ask_permits(Store& store, const RateKeys& keys, const Rate& rate,
                             const RateRequest& request) {
  const Definition words{rate};
  const std::string counted_by = fmt::to_string(request.counted_by);
  const std::string permits = fmt::to_string(request.permits);
  auto asked = store.run(scripts::lock_limiter_acquire, {keys.definition, keys.free, keys.log},
                         {words.permits, words.interval, words.kind, words.keep_alive,
                          request.follow ? "1" : "0", counted_by, permits, request.id},
                         {.repeatable = true});
  const Value reply = co_await asked;
  co_return answer_of(reply);
}

Task<Value> give_back_permits(Store& store, const RateKeys& keys, std::int64_t permits,
                              std::string_view id) {
  return store.run(scripts::lock_limiter_give_back, {keys.definition, keys.free, keys.log},
                   {fmt::to_string(permits), id}, {.repeatable = true});
}

Task<std::optional<std::string>> ask_change(Store& store, const RateKeys& keys, const Rate& rate) {
  const Definition words{rate};
  const std::array<std::string_view, 4> terms{words.permits, words.interval, words.kind,
                                              words.keep_alive};
  const std::array<std::string_view, 3> all{keys.definition, keys.free, keys.log};
  const std::array<std::string_view, 8> look{
      words.permits, words.interval, words.kind, words.keep_alive, "1", "0", "0", ""};
  Batch batch;
  batch.add(scripts::lock_limiter_set_rate, all, terms);
  batch.add(scripts::lock_limiter_acquire, all, look);
  const std::vector<Value> replies = co_await store.run(std::move(batch));
  if (replies.at(0).is_error())
    throw error_of_script(replies[0].as_text(), scripts::lock_limiter_set_rate, all);
  if (replies.at(1).is_error())
    throw error_of_script(replies[1].as_text(), scripts::lock_limiter_acquire, all);
  if (replies[0].as_integer() == 1) co_return std::nullopt;
  co_return answer_of(replies.at(1)).in_force;
}

std::string new_permit_id() {
  // Random for each thread, then counted: asks the kernel once. A child draws anew.
  struct Ids {
    std::uint64_t thread = 0;
    std::uint64_t last = 0;
  };
  thread_local Ids ids;
  thread_local unsigned forks = 0;
  if (ids.last == 0 || forks != fork_count()) {
    ids.thread = random_bits();
    forks = fork_count();
  }
  ++ids.last;
  const auto bytes = std::bit_cast<std::array<char, sizeof(Ids)>>(ids);
  return {bytes.data(), bytes.size()};
}

std::string process_client() {
  static std::mutex mutex;
  static auto& id = *new std::string;  // outlives static objects
  static unsigned forks = 0;
  const std::lock_guard lock{mutex};
  if (id.empty() || forks != fork_count()) {
    id = random_uuid();
    forks = fork_count();
  }
  return id;
}

}  // namespace sluice::lock
