#include "server/pages/form.hpp"

#include "http/text.hpp"
#include "server/problems.hpp"

namespace sluice::server {
namespace {

Unexpected<http::Response> refuse_form(std::string_view detail) {
  return Unexpected{http::problem(problems::bad_body, detail)};
}

bool is_form(const http::Request& request) {
  const auto media = request.field("Content-Type").value_or("");
  return http::same_word(http::trimmed(media.substr(0, media.find(';'))),
                         "application/x-www-form-urlencoded");
}

}  // namespace

Expected<Form, http::Response> Form::of(const http::Request& request) {
  if (!is_form(request)) return refuse_form("this page takes the form that it shows");
  Form form;
  std::string_view rest = request.body();
  while (!rest.empty()) {
    const auto pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    const auto equals = std::min(pair.find('='), pair.size());
    auto name = http::unescape(pair.substr(0, equals), true);
    auto value = http::unescape(pair.substr(std::min(equals + 1, pair.size())), true);
    if (!name || !value) return refuse_form("a field of the form is no UTF-8");
    if (form.fields_.size() == most_fields) return refuse_form("the form has too many fields");
    if (!form.fields_.emplace(std::move(*name), std::move(*value)).second)
      return refuse_form("a field of the form stands there twice");
  }
  return form;
}

std::string_view Form::value(std::string_view name) const {
  const auto found = fields_.find(name);
  return found == fields_.end() ? std::string_view{} : found->second;
}

}  // namespace sluice::server
