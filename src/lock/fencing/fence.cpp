#include <fmt/format.h>

#include <vector>

#include "base/keyed_hash.hpp"
#include "lock/fencing/fencing.lua.hpp"
#include "lock/text.hpp"
#include "sluice/fencing.hpp"
#include "sluice/metrics.hpp"
#include "store/key_name.hpp"

namespace sluice {
namespace {

/// Words; Lua hands no more than 8000 values from a table to a function.
constexpr std::size_t longest_command = 7'000;

void check_token(FencingToken token) {
  if (token.value == 0)
    throw Error{Errc::bad_argument, "fencing token 0 is of no hold; pass on Held::token()"};
}

void check_token(const std::string& name, FencingToken token) {
  check_token(token);
  if (token > Fence::largest_token)
    throw Error{Errc::bad_argument,
                fmt::format("fence {}: token {} is above 2^53, where Lua cannot compare it",
                            lock::quoted(name), token.value)};
}

StaleToken stale(const Value& largest) {
  count(metrics().fence_stale);
  return StaleToken{FencingToken{static_cast<std::uint64_t>(largest.as_integer())}};
}

}  // namespace

// --- in the memory of this process ---

FenceGate::FenceGate(std::size_t most) : most_(most) {
  if (most == 0) throw Error{Errc::bad_argument, "a fence gate needs room for one resource"};
}

std::size_t FenceGate::Hash::operator()(std::string_view text) const noexcept {
  return KeyedHash{}(text);
}

Expected<void, StaleToken> FenceGate::admit(std::string_view resource, FencingToken token) {
  check_token(token);
  const std::lock_guard lock{mutex_};
  const auto known = largest_.find(resource);
  if (known == largest_.end()) {
    if (largest_.size() >= most_)
      throw Error{Errc::out_of_space, "the fence gate knows " + std::to_string(most_) +
                                          " resources and has no room for " +
                                          lock::quoted(std::string{resource}) +
                                          ": forget those that nobody writes, or allow more"};
    largest_.emplace(resource, token);
    return {};
  }
  if (token < known->second) {
    count(metrics().fence_stale);
    return Unexpected{StaleToken{known->second}};
  }
  known->second = token;
  return {};
}

bool FenceGate::forget(std::string_view resource) {
  const std::lock_guard lock{mutex_};
  const auto known = largest_.find(resource);
  if (known == largest_.end()) return false;
  largest_.erase(known);
  return true;
}

std::size_t FenceGate::size() const {
  const std::lock_guard lock{mutex_};
  return largest_.size();
}

// --- in Redis ---

Fence::Fence(Store& store, std::string name)
    : store_(store),
      name_(lock::checked_name("a fence", std::move(name))),
      key_(key_with_prefix("sluice_fence", name_)) {}

Task<Expected<void, StaleToken>> Fence::admit(FencingToken token) {
  using Outcome = Expected<void, StaleToken>;
  check_token(name_, token);
  const fmt::format_int number{token.value};
  const std::string_view text{number.data(), number.size()};
  auto asked = store_.run(scripts::lock_fencing_admit, {key_}, {text}, {.repeatable = true});
  const Value larger = co_await asked;
  if (larger.is_null()) co_return Outcome{};
  co_return Unexpected{stale(larger)};
}

Task<Expected<Value, StaleToken>> Fence::run(FencingToken token, Words keys, Words command,
                                             CallOptions options) {
  check_token(name_, token);
  if (command.empty() || command.size() > longest_command)
    throw Error{Errc::bad_argument,
                fmt::format("fence {}: a command of {} words, it must be 1 to {}",
                            lock::quoted(name_), command.size(), longest_command)};
  const fmt::format_int number{token.value};
  std::vector<std::string_view> all_keys{key_};
  all_keys.insert(all_keys.end(), keys.begin(), keys.end());
  std::vector<std::string_view> args{{number.data(), number.size()}};
  args.insert(args.end(), command.begin(), command.end());
  // Taken up here and now: what the Words view need not outlive the call.
  auto asked = store_.run(scripts::lock_fencing_run, Words{all_keys}, Words{args}, options);
  return answer(std::move(asked));
}

Task<Expected<Value, StaleToken>> Fence::answer(Task<Value> asked) {
  using Outcome = Expected<Value, StaleToken>;
  Value reply = co_await asked;
  auto& parts = reply.as_items();
  if (parts.at(0).as_integer() == 1)
    co_return parts.size() > 1 ? Outcome{std::move(parts[1])} : Outcome{Value{}};
  co_return Unexpected{stale(parts.at(1))};
}

}  // namespace sluice
