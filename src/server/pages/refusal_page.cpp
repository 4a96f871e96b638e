#include "server/pages/refusal_page.hpp"

#include <algorithm>

#include "base/instant.hpp"
#include "base/integer.hpp"
#include "base/json_value.hpp"
#include "base/random.hpp"
#include "server/pages/visitors.hpp"

namespace sluice::server {
namespace {

/// The service, the store or a proxy is short of something for a moment.
bool passes(int status) { return status == 429 || status >= 500; }

/// When Retry-After says; with a little chance, so that those who were refused together do not come
/// back together.
std::chrono::milliseconds time_to_come_back(const http::Response& refusal) {
  constexpr std::int64_t usual = 5;
  auto seconds = usual;
  for (const auto& [name, value] : refusal.fields)
    if (name == "Retry-After") seconds = parse_integer<std::int64_t>(value).value_or(usual);
  return std::chrono::seconds{seconds} + std::chrono::milliseconds{random_below(2000)};
}

std::string member_of(const JsonValue* object, std::string_view name) {
  const auto* const value = object ? object->find(name) : nullptr;
  return value && value->as_text() ? *value->as_text() : std::string{};
}

/// "sold-out" of "urn:sluice:problem:sold-out": what texts of it are called.
std::string end_of_type(const JsonValue* problem) {
  const auto type = member_of(problem, "type");
  return type.substr(type.rfind(':') + 1);
}

/// What a problem brings with it beside its title.
void put_members(PageText& text, const JsonValue* members, const RefusalView& view,
                 const PageReader& reader) {
  if (const auto advice = "advice." + end_of_type(members); reader.texts.has(advice))
    text.status << "<p>"_html << reader.say(advice) << "</p>\n"_html;
  if (const auto* const left = members ? members->find("left") : nullptr;
      left && left->as_integer())
    text.status << "<p>"_html
                << reader.say("refusal.left", {{"left", reader.texts.number(*left->as_integer())}})
                << "</p>\n"_html;
  if (const auto opens = parse_instant(member_of(members, "opens_at")))
    text.status << "<p>"_html << reader.say("sale.opens", {{"time", reader.texts.time(*opens)}})
                << "</p>\n"_html;
  text.rest << view.again;
  const auto* const order = members ? members->find("order") : nullptr;
  if (const auto id = member_of(order, "id"); !id.empty()) {
    Html link;
    link << "<a href=\""_html << path_of_page(view.sale) << "/orders/"_html << id << "\">"_html
         << member_of(order, "number") << "</a>"_html;
    text.rest << "<p>"_html << reader.say("refusal.order", {{"order", link}}) << "</p>\n"_html;
  }
}

}  // namespace

Html problem_html(const PageReader& reader, const http::ProblemType& type) {
  const auto urn = http::type_of(type);
  return reader.say("problem." + urn.substr(urn.rfind(':') + 1));
}

http::Response refusal_page(const http::Response& refusal, const RefusalView& view,
                            const PageReader& reader) {
  const auto problem = JsonValue::parse(refusal.body, {.bytes = 16 << 10});
  const auto* const members = problem ? &*problem : nullptr;
  const auto key = "problem." + end_of_type(members);
  const auto title = reader.say(reader.texts.has(key) ? key : "problem.internal-error");
  PageText text;
  text.title << title;
  text.head << "<h1>"_html;
  view.sale.empty() ? text.head << title : text.head << reader.name_of(view.sale);
  text.head << "</h1>\n"_html;
  if (!view.sale.empty()) text.status << "<p class=\"state no\">"_html << title << "</p>\n"_html;
  put_members(text, members, view, reader);
  if (!view.sale.empty())
    text.rest << "<p><a href=\""_html << path_of_page(view.sale) << "\">"_html
              << reader.say("refusal.back") << "</a></p>\n"_html;
  if (view.comes_back && passes(refusal.status)) text.again = time_to_come_back(refusal);
  auto response = page(refusal.status, text, reader);
  for (const auto& [name, value] : refusal.fields)
    if (name == "Retry-After" || name == "WWW-Authenticate") response.add(name, value);
  return response;
}

}  // namespace sluice::server
