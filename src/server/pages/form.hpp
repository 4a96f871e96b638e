/// What a browser sends of a form.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "http/response.hpp"
#include "sluice/expected.hpp"

namespace sluice::server {

class Form {
 public:
  static constexpr std::size_t most_fields = 16;

  /// Refused: another media type, more fields, a field twice, text that is no UTF-8.
  static Expected<Form, http::Response> of(const http::Request& request);

  /// Empty: it has none of that name.
  std::string_view value(std::string_view name) const;

 private:
  std::map<std::string, std::string, std::less<>> fields_;
};

}  // namespace sluice::server
