/// Who may use locks, numbers, ids and Bloom filters over HTTP, and what their names may be.
#pragma once

#include <exception>
#include <string>
#include <vector>

#include "http/response.hpp"
#include "http/routes.hpp"
#include "server/shop_keys.hpp"
#include "sluice/expected.hpp"

namespace sluice::server {

/// Who asks, and for which name.
struct ToolCall {
  std::string caller;  ///< the id of the shop's key; empty where none is needed
  std::string name;
};

/// With keys of the shop: who brings one with the scope `tools`. Without: nobody, or programs of
/// this machine where the service was told so; a page of another site in a browser here is none.
///
/// Threads: any. REQUIRES: the keys live longer.
class ToolsDoor {
 public:
  ToolsDoor(const ShopKeys& keys, bool has_local) : keys_(keys), has_local_(has_local) {}

  /// The name is that of the path. It has no braces: what has some may be a key of a sale.
  Expected<ToolCall, http::Response> call_of(const http::Request& request) const;

  /// Adds the credentials that all of them need, and the problems that all may have.
  http::Route route(http::Route route) const;

 private:
  Expected<std::string, http::Response> caller_of(const http::Request& request) const;

  const ShopKeys& keys_;
  const bool has_local_;
};

/// As problem_of(), and for what a name may be mistaken.
http::Response tool_problem_of(const std::exception& failure);

}  // namespace sluice::server
