#include "server/pages/which_buyer_page.hpp"

#include "server/pages/visitors.hpp"

namespace sluice::server {

http::Response which_buyer_page(const std::string& sale, const BuyerId& present,
                                const BuyerId& brought, const std::string& token,
                                const std::string& form_token, const PageReader& reader) {
  const auto place = path_of_page(sale);
  Html now;
  now << present.value;
  Html then;
  then << brought.value;
  PageText text;
  text.title << reader.name_of(sale);
  text.head << "<h1>"_html << reader.name_of(sale) << "</h1>\n"_html;
  text.status << "<p class=\"state\">"_html
              << reader.say("buyer.question", {{"present", now}, {"brought", then}})
              << "</p>\n<p>"_html << reader.say("buyer.advice", {{"brought", then}})
              << "</p>\n"_html;
  text.rest << "<p><a href=\""_html << place << "\">"_html
            << reader.say("buyer.stay", {{"present", now}})
            << "</a></p>\n<form method=\"post\" action=\""_html << place
            << "/buyer\">\n<input type=\"hidden\" name=\"form\" value=\""_html << form_token
            << "\">\n<input type=\"hidden\" name=\"token\" value=\""_html << token
            << "\">\n<button class=\"quiet\">"_html << reader.say("buyer.go", {{"brought", then}})
            << "</button>\n</form>\n"_html;
  return page(200, text, reader);
}

}  // namespace sluice::server
