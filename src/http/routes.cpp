#include "http/routes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "http/text.hpp"
#include "sluice/error.hpp"

namespace sluice::http {
namespace {

/// "/a/b" as "a", "b"; "/" as one that is empty.
std::vector<std::string_view> segments_of(std::string_view path) {
  std::vector<std::string_view> segments;
  path.remove_prefix(1);
  for (;;) {
    const auto slash = path.find('/');
    segments.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return segments;
    path.remove_prefix(slash + 1);
  }
}

/// Deeper paths are nobody's: they are not taken apart.
constexpr std::ptrdiff_t most_segments = 32;

}  // namespace

/// The routes that begin alike.
struct Routes::Node {
  std::vector<std::pair<std::string, std::unique_ptr<Node>>> literals;
  std::unique_ptr<Node> parameter;
  std::vector<std::size_t> routes;  // that end here

  Node* literal(std::string_view segment) const noexcept {
    for (const auto& [text, node] : literals)
      if (text == segment) return node.get();
    return nullptr;
  }

  /// Where the path ends; `values` are those of its parameters.
  const Node* find(const std::vector<std::string>& path, std::size_t at,
                   std::vector<std::string_view>& values) const {
    if (at == path.size()) return routes.empty() ? nullptr : this;
    if (const Node* const next = literal(path[at]))
      if (const Node* const found = next->find(path, at + 1, values)) return found;
    if (!parameter || path[at].empty()) return nullptr;
    values.push_back(path[at]);
    if (const Node* const found = parameter->find(path, at + 1, values)) return found;
    values.pop_back();
    return nullptr;
  }
};

Routes::Routes() : root_(std::make_unique<Node>()) {}
Routes::~Routes() = default;
Routes::Routes(Routes&&) noexcept = default;
Routes& Routes::operator=(Routes&&) noexcept = default;

Routes& Routes::add(Route route) {
  const auto refuse = [&](std::string_view why) {
    throw Error{Errc::bad_argument, fmt::format("route {} {}: {}", route.method, route.path, why)};
  };
  if (!route.path.starts_with('/')) refuse("a path begins with '/'");
  if (!route.handler) refuse("it has no handler");
  if (route.operation.empty() || std::ranges::any_of(routes_, [&](const Route& other) {
        return other.operation == route.operation;
      }))
    refuse("its operation has no name of its own");
  Node* node = root_.get();
  for (const auto segment : segments_of(route.path)) {
    const bool is_parameter =
        segment.starts_with('{') && segment.ends_with('}') && segment.size() > 2;
    if (!is_parameter && segment.find_first_of("{}") != std::string_view::npos)
      refuse("a parameter is a whole segment");
    if (is_parameter) {
      if (!node->parameter) node->parameter = std::make_unique<Node>();
      node = node->parameter.get();
    } else if (Node* const known = node->literal(segment)) {
      node = known;
    } else {
      node = node->literals.emplace_back(segment, std::make_unique<Node>()).second.get();
    }
  }
  if (std::ranges::any_of(node->routes,
                          [&](auto other) { return routes_[other].method == route.method; }))
    refuse("it is there already");
  node->routes.push_back(routes_.size());
  routes_.push_back(std::move(route));
  return *this;
}

Routes::Found Routes::find(Request& request) const {
  if (std::ranges::count(request.path(), '/') > most_segments) return {};
  std::vector<std::string> path;
  for (const auto segment : segments_of(request.path())) {
    auto plain = unescape(segment, false);
    if (!plain) return {.route = nullptr, .index = 0, .allow = {}, .is_malformed = true};
    path.push_back(std::move(*plain));
  }
  std::vector<std::string_view> values;
  const Node* const node = root_->find(path, 0, values);
  if (!node) return {};
  Found found;
  for (const auto index : node->routes) {
    const auto& route = routes_[index];
    const bool serves_head = route.method == "GET" && request.method() == "HEAD";
    if (route.method == request.method() || (serves_head && !found.route)) {
      found.route = &route;
      found.index = index;
    }
    if (!found.allow.empty()) found.allow += ", ";
    found.allow += route.method == "GET" ? "GET, HEAD" : route.method;
  }
  if (!found.route || values.empty()) return found;
  std::size_t at = 0;
  for (const auto segment : segments_of(found.route->path))
    if (segment.starts_with('{'))
      request.parameters_.emplace_back(segment.substr(1, segment.size() - 2), values[at++]);
  return found;
}

}  // namespace sluice::http
