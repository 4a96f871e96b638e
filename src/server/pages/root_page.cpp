#include "server/pages/root_page.hpp"

#include <algorithm>

#include "http/text.hpp"
#include "server/pages/visitors.hpp"

namespace sluice::server {

bool takes_html(const http::Request& request) {
  bool takes = false;
  http::for_each_item(request.field("Accept").value_or(""), [&](std::string_view item) {
    const auto media = http::trimmed(item.substr(0, std::min(item.find(';'), item.size())));
    if (http::same_word(media, http::json_media)) return false;
    takes = takes || http::same_word(media, "text/html");
    return true;
  });
  return takes;
}

http::Response root_page(const std::vector<std::string>& sales, const PageReader& reader) {
  PageText text;
  const auto name = reader.options.front.name(reader.texts);
  text.title = reader.say("root.title");
  text.head << "<h1>"_html << text.title << "</h1>\n"_html;
  if (sales.empty()) text.rest << "<p>"_html << reader.say("root.none") << "</p>\n"_html;
  if (!sales.empty()) text.rest << "<ul>\n"_html;
  for (const auto& sale : sales)
    text.rest << "<li><a href=\""_html << path_of_page(sale) << "\">"_html << reader.name_of(sale)
              << "</a></li>\n"_html;
  if (!sales.empty()) text.rest << "</ul>\n"_html;
  if (name.empty()) {  // a shop that shows itself to buyers does not show them its back door
    Html console;
    console << "<a href=\"/console\">"_html << reader.say("root.console") << "</a>"_html;
    Html document;
    document << "<a href=\"/openapi.json\">/openapi.json</a>"_html;
    text.rest << "<p class=\"soft\">"_html << reader.say("root.operators", {{"link", console}})
              << "<br>"_html << reader.say("root.programs", {{"link", document}}) << "</p>\n"_html;
  }
  return page(200, text, reader);
}

http::Response root_json(const std::vector<std::string>& sales) {
  auto pages = Json::array();
  for (const auto& sale : sales) pages.add(path_of_page(sale));
  return http::json(200, Json::object({{"sales", "/v1/sales"},
                                       {"pages", pages},
                                       {"console", "/console"},
                                       {"openapi", "/openapi.json"}}));
}

}  // namespace sluice::server
