#include "http/request.hpp"

#include <algorithm>

#include "http/text.hpp"
#include "sluice/error.hpp"

namespace sluice::http {

const std::string& Request::parameter(std::string_view name) const {
  const auto found = std::ranges::find(parameters_, name,
                                       [](const auto& row) { return std::string_view{row.first}; });
  if (found == parameters_.end())
    throw Error{Errc::bad_argument, "the route has no parameter {" + std::string{name} + "}"};
  return found->second;
}

std::optional<std::string> Request::query(std::string_view name) const {
  auto rest = query_;
  while (!rest.empty()) {
    const auto pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    const auto equals = pair.find('=');
    if (const auto key = unescape(pair.substr(0, equals), true); !key || *key != name) continue;
    return equals == std::string_view::npos ? std::string{}
                                            : unescape(pair.substr(equals + 1), true);
  }
  return {};
}

std::optional<std::string_view> Request::field(std::string_view name) const noexcept {
  for (const auto& field : fields_)
    if (same_word(field.name, name)) return field.value;
  return {};
}

std::size_t Request::count(std::string_view name) const noexcept {
  return static_cast<std::size_t>(std::ranges::count_if(
      fields_, [&](const Field& field) { return same_word(field.name, name); }));
}

}  // namespace sluice::http
