#include <fmt/format.h>

#include <vector>

#include "lock/fencing/admit.lua.hpp"
#include "lock/fencing/run.lua.hpp"
#include "lock/fencing/token.hpp"
#include "lock/text.hpp"
#include "sluice/fencing.hpp"
#include "sluice/metrics.hpp"
#include "store/key_name.hpp"

namespace sluice {
namespace {

/// Words; Lua hands no more than 8000 values from a table to a function.
constexpr std::size_t longest_command = 7'000;

void check_range(const std::string& name, FencingToken token) {
  lock::check_token(token);
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

Fence::Fence(Store& store, std::string name)
    : store_(store),
      name_(lock::checked_name("a fence", std::move(name))),
      key_(key_with_prefix("sluice_fence", name_)) {}

Task<std::expected<void, StaleToken>> Fence::admit(FencingToken token) {
  using Outcome = std::expected<void, StaleToken>;
  check_range(name_, token);
  const fmt::format_int number{token.value};
  const std::string_view text{number.data(), number.size()};
  auto asked = store_.run(scripts::lock_fencing_admit, {key_}, {text}, {.repeatable = true});
  const Value larger = co_await asked;
  if (larger.is_null()) co_return Outcome{};
  co_return Outcome{std::unexpect, stale(larger)};
}

Task<std::expected<Value, StaleToken>> Fence::run(FencingToken token, Words keys, Words command,
                                                  CallOptions options) {
  check_range(name_, token);
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

Task<std::expected<Value, StaleToken>> Fence::answer(Task<Value> asked) {
  using Outcome = std::expected<Value, StaleToken>;
  Value reply = co_await asked;
  auto& parts = reply.as_items();
  if (parts.at(0).as_integer() == 1)
    co_return parts.size() > 1 ? Outcome{std::move(parts[1])} : Outcome{Value{}};
  co_return Outcome{std::unexpect, stale(parts.at(1))};
}

}  // namespace sluice
