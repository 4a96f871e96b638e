#include "http/routes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "http/text.hpp"
#include "sluice/error.hpp"

namespace sluice::http {
namespace {

/// Deeper paths are nobody's: they are not taken apart.
constexpr std::size_t most_segments = 32;

/// No memory is taken for it.
class Segments {
 public:
  /// "/a/b" as "a", "b"; "/" as one that is empty.
  static Segments of(std::string_view path) {
    Segments segments;
    path.remove_prefix(1);
    for (;;) {
      const auto slash = path.find('/');
      segments.push_back(path.substr(0, slash));
      if (slash == std::string_view::npos) return segments;
      path.remove_prefix(slash + 1);
    }
  }

  void push_back(std::string_view segment) { items_.at(size_++) = segment; }
  void pop_back() { --size_; }
  std::size_t size() const noexcept { return size_; }
  std::string_view operator[](std::size_t at) const noexcept { return items_[at]; }
  auto begin() noexcept { return items_.begin(); }
  auto end() noexcept { return items_.begin() + static_cast<std::ptrdiff_t>(size_); }

 private:
  std::array<std::string_view, most_segments + 1> items_;
  std::size_t size_ = 0;
};

/// The segments without their escapes; `plain` holds those that had some. False: an escape is
/// wrong, or they are not UTF-8.
bool unescape_all(Segments& segments, std::string_view path, std::vector<std::string>& plain) {
  if (path.find('%') == std::string_view::npos)
    return is_utf8(path) && path.find('\0') == std::string_view::npos;
  plain.reserve(segments.size());  // they keep their places
  for (auto& segment : segments) {
    auto text = unescape(segment, false);
    if (!text) return false;
    segment = plain.emplace_back(std::move(*text));
  }
  return true;
}

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

  /// Where the path ends; `values` are those of its parameters, out of `plain`. A literal has one
  /// spelling, as it is `sent`: a proxy in front may deny a path by its bytes.
  const Node* find(const Segments& sent, const Segments& plain, std::size_t at,
                   Segments& values) const {
    if (at == sent.size()) return routes.empty() ? nullptr : this;
    if (const Node* const next = literal(sent[at]))
      if (const Node* const found = next->find(sent, plain, at + 1, values)) return found;
    if (!parameter || sent[at].empty()) return nullptr;
    values.push_back(plain[at]);
    if (const Node* const found = parameter->find(sent, plain, at + 1, values)) return found;
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
  if (std::ranges::count(route.path, '/') > std::ptrdiff_t{most_segments}) refuse("it is too deep");
  std::vector<std::string> parameters;
  for (const auto segment : Segments::of(route.path)) {
    const bool is_parameter =
        segment.starts_with('{') && segment.ends_with('}') && segment.size() > 2;
    if (!is_parameter && segment.find_first_of("{}") != std::string_view::npos)
      refuse("a parameter is a whole segment");
    if (is_parameter) {
      if (!node->parameter) node->parameter = std::make_unique<Node>();
      node = node->parameter.get();
      parameters.emplace_back(segment.substr(1, segment.size() - 2));
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
  parameters_.push_back(std::move(parameters));
  return *this;
}

Routes::Found Routes::find(Request& request) const {
  if (std::ranges::count(request.path(), '/') > std::ptrdiff_t{most_segments}) return {};
  const auto sent = Segments::of(request.path());
  auto path = sent;
  std::vector<std::string> plain;
  if (!unescape_all(path, request.path(), plain))
    return {.route = nullptr, .index = 0, .allow = {}, .is_malformed = true};
  Segments values;
  const Node* const node = root_->find(sent, path, 0, values);
  if (!node) return {};
  Found found;
  for (const auto index : node->routes) {
    const auto& route = routes_[index];
    const bool serves_head = route.method == "GET" && request.method() == "HEAD";
    if (route.method == request.method() || (serves_head && !found.route)) {
      found.route = &route;
      found.index = index;
    }
  }
  if (!found.route) {
    found.allow = methods_of(*node);
    return found;
  }
  const auto& names = parameters_[found.index];
  for (std::size_t i = 0; i < names.size(); ++i)
    request.parameters_.emplace_back(names[i], values[i]);
  return found;
}

std::string Routes::methods_of(const Node& node) const {
  std::string methods;
  for (const auto index : node.routes) {
    if (!methods.empty()) methods += ", ";
    methods += routes_[index].method == "GET" ? "GET, HEAD" : routes_[index].method;
  }
  return methods;
}

}  // namespace sluice::http
