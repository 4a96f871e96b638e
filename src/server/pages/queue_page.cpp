#include "server/pages/queue_page.hpp"

namespace sluice::server {

void put_place(PageText& text, const RoomPlace& place) {
  auto& status = text.status;
  if (place.state == PlaceState::enrolled) {
    status
        << "<p class=\"state\">You are in the waiting room</p>\n<p>All who are here when the sale "
           "opens are drawn in a random order. Coming earlier makes no difference.</p>\n"_html;
  } else {
    status << "<p class=\"state\">You are in the waiting room</p>\n<p class=\"big\">"_html
           << place.before << "</p>\n<p>ahead of you. Your place is number "_html << place.position
           << ".</p>\n"_html;
  }
  if (place.paused)
    status << "<p>Nobody is let in at this moment. You keep your place.</p>\n"_html;
  else if (place.eta)
    status << "<p>Your turn comes in "_html << about(*place.eta) << ".</p>\n"_html;
  text.rest << "<p class=\"soft\">This page refreshes by itself. Leave it open: reloading it, or a "
               "second window, changes nothing about your place.</p>\n"_html;
  text.again = place.poll_after;
}

void put_join_form(PageText& text, const std::string& page, const std::string& form_token) {
  text.rest << "<form method=\"post\" action=\""_html << page
            << "/queue\">\n<input type=\"hidden\" name=\"form\" value=\""_html << form_token
            << "\">\n<button>Join the waiting room</button>\n</form>\n"_html;
}

void put_leave_form(PageText& text, const std::string& page, const std::string& form_token) {
  text.rest << "<form method=\"post\" action=\""_html << page
            << "/queue/leave\">\n<input type=\"hidden\" name=\"form\" value=\""_html << form_token
            << "\">\n<button class=\"quiet\">Give up my place</button>\n</form>\n"_html;
}

}  // namespace sluice::server
