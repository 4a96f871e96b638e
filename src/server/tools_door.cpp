#include "server/tools_door.hpp"

#include <algorithm>

#include "http/asking_page.hpp"
#include "server/problems.hpp"
#include "server/this_machine.hpp"

namespace sluice::server {
namespace {

constexpr std::size_t longest_name = 200;

Unexpected<http::Response> refuse_call(const http::ProblemType& type, std::string_view detail) {
  return Unexpected{http::problem(type, detail)};
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

}  // namespace

Expected<std::string, http::Response> ToolsDoor::caller_of(const http::Request& request) const {
  if (!keys_.is_empty()) return keys_.who_asks(request, Scope::tools);
  if (!has_local_)
    return refuse_call(problems::no_shop_keys,
                       "make one: sluice serve key --id NAME --scopes tools; put the line that it "
                       "shows into a file, and begin the service with --shop-keys FILE; "
                       "--local-operator is for a machine of your own");
  if (http::asking_page(request) == http::AskingPage::anothers)
    return refuse_call(problems::not_same_origin, only_of_our_pages);
  if (!is_local(request)) return refuse_call(problems::other_host, only_local);
  return std::string{};
}

Expected<ToolCall, http::Response> ToolsDoor::call_of(const http::Request& request) const {
  auto caller = caller_of(request);
  if (!caller) return Unexpected{std::move(caller.error())};
  const auto& name = request.parameter("name");
  if (name.size() > longest_name || name.find_first_of("{}") != name.npos ||
      name.starts_with("sluice") || std::ranges::any_of(name, is_control))
    return refuse_call(problems::bad_parameter,
                       "a name has 1 to 200 bytes, no braces and no control characters, and does "
                       "not begin with 'sluice'");
  return ToolCall{std::move(*caller), name};
}

http::Route ToolsDoor::route(http::Route route) const {
  route.credentials = ShopKeys::credentials;
  route.problems.insert(
      route.problems.end(),
      {&problems::bad_parameter, &problems::unknown_key, &problems::not_allowed,
       &problems::no_shop_keys, &problems::other_host, &problems::not_same_origin,
       &problems::wrong_kind, &problems::store_failed, &problems::effect_unknown, &problems::busy});
  return route;
}

http::Response tool_problem_of(const std::exception& failure) {
  const auto* const known = dynamic_cast<const Error*>(&failure);
  if (known && known->errc() == Errc::wrong_type) return http::problem(problems::wrong_kind);
  if (known && known->errc() == Errc::config_mismatch)
    return http::problem(problems::other_definition);
  if (known && known->errc() == Errc::closed && known->effect() == Effect::none)
    return http::problem(problems::no_filter);
  return problem_of(failure);
}

}  // namespace sluice::server
