#include <algorithm>

#include "proxy/redis/redis_protocol.hpp"
#include "resp/letters.hpp"

namespace sluice::proxy {
namespace {

struct Row {
  std::string_view name;
  RedisRoute route;
};

#define ROUTE(name, route, merge) Row{name, {Route::route, SessionVerb::none, Merge::merge}},
#define SESSION(name, verb) Row{name, {Route::session, SessionVerb::verb}},
#define CONSENT(name, route, merge) \
  Row{name, {Route::route, SessionVerb::none, Merge::merge, true}},
#define NEVER(name, reason) \
  Row{name, {Route::refused, SessionVerb::none, Merge::none, false, Never::reason}},
constexpr Row rows[] = {
#include "proxy/redis/routes.def"
};
#undef ROUTE
#undef SESSION
#undef CONSENT
#undef NEVER

const Row* row_of(std::string_view name) noexcept {
  const auto* const row = std::ranges::find(rows, name, &Row::name);
  return row == std::end(rows) ? nullptr : row;
}

}  // namespace

std::optional<RedisRoute> route_of(const resp::CommandSpec& spec) noexcept {
  if (const auto* const row = row_of(spec.name)) return row->route;
  if (spec.name.ends_with("|help")) return RedisRoute{.route = Route::any};
  const auto* const container = row_of(spec.name.substr(0, spec.name.find('|')));
  if (container) return container->route;
  if (spec.has(resp::flag_container)) return RedisRoute{};
  if (spec.first_key == 0 && spec.rule == resp::KeyRule::none) return std::nullopt;
  if (spec.has(resp::flag_blocking))
    return RedisRoute{.route = Route::session, .verb = SessionVerb::blocking};
  return RedisRoute{.route = Route::one};
}

bool is_allowed(std::string_view command, std::span<const std::string> allow) {
  const auto container = command.substr(0, command.find('|'));
  return std::ranges::any_of(allow, [&](std::string name) {
    std::ranges::replace(name, ' ', '|');
    return resp::is_word(name, command) || resp::is_word(name, container);
  });
}

}  // namespace sluice::proxy
