#include "server/pages/queue_page.hpp"

namespace sluice::server {

void put_place(PageText& text, const RoomPlace& place, const PageReader& reader) {
  auto& status = text.status;
  status << "<p class=\"state\">"_html << reader.say("room.in") << "</p>\n"_html;
  if (place.state == PlaceState::enrolled)
    status << "<p>"_html << reader.say("room.draw") << "</p>\n"_html;
  else
    status << "<p class=\"big\">"_html << reader.texts.number(place.before) << "</p>\n<p>"_html
           << reader.say("room.ahead", {{"position", reader.texts.number(place.position)}})
           << "</p>\n"_html;
  if (place.paused)
    status << "<p>"_html << reader.say("room.paused") << "</p>\n"_html;
  else if (place.eta)
    status << "<p>"_html << reader.say("room.eta", {{"time", reader.texts.about(*place.eta)}})
           << "</p>\n"_html;
  text.rest << "<p class=\"soft\">"_html << reader.say("room.refreshes") << "</p>\n"_html;
  text.again = place.poll_after;
}

void put_join_form(PageText& text, const std::string& page, const std::string& form_token,
                   const PageReader& reader) {
  text.rest << "<form method=\"post\" action=\""_html << page
            << "/queue\">\n<input type=\"hidden\" name=\"form\" value=\""_html << form_token
            << "\">\n<button>"_html << reader.say("room.join") << "</button>\n</form>\n"_html;
}

void put_leave_form(PageText& text, const std::string& page, const std::string& form_token,
                    const PageReader& reader) {
  text.rest << "<form method=\"post\" action=\""_html << page
            << "/queue/leave\">\n<input type=\"hidden\" name=\"form\" value=\""_html << form_token
            << "\">\n<button class=\"quiet\">"_html << reader.say("room.leave")
            << "</button>\n</form>\n"_html;
}

}  // namespace sluice::server
