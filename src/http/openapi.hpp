/// OpenAPI 3.1 of a table of routes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "http/routes.hpp"

namespace sluice::http {

/// What the table of routes does not say.
struct ApiDocument {
  std::string title = "Sluice";
  std::string version = "1";
  /// Names and JSON Schemas, for `{"$ref":"#/components/schemas/NAME"}`.
  std::vector<std::pair<std::string, std::string>> schemas;
  /// Names and security schemes: `{"type":"http","scheme":"bearer"}`.
  std::vector<std::pair<std::string, std::string>> credentials;
};

/// JSON. Each route is in it, with all that it answers.
std::string openapi(const Routes& routes, const ApiDocument& document);

}  // namespace sluice::http
