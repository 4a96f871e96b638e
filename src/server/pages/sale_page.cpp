#include "server/pages/sale_page.hpp"

#include <algorithm>

#include "http/problem.hpp"
#include "server/pages/queue_page.hpp"
#include "server/pages/refusal_page.hpp"
#include "server/pages/visitors.hpp"
#include "server/problems.hpp"

namespace sluice::server {
namespace {

using namespace std::chrono_literals;

/// So often a page looks again while nothing is awaited at a known time. One with a form does so
/// where scripts run: without them what is typed would go.
constexpr auto usual_look = 15s;
/// What a form offers; the API takes more.
constexpr std::int64_t most_units_of_form = 99;

std::int64_t most_units(const SaleView& view) {
  auto most = std::min(view.status.left(), most_units_of_form);
  if (view.sale.largest_order > 0) most = std::min(most, view.sale.largest_order);
  if (view.sale.unit_limit > 0) most = std::min(most, view.sale.unit_limit);
  return std::max<std::int64_t>(most, 1);
}

/// What a sale's page is made of: each part puts what it has to say.
struct SalePage {
  PageText& text;
  const SaleView& view;
  const PageReader& reader;
};

void put_stock(const SalePage& page) {
  const auto& [text, view, reader] = page;
  const auto left = std::max<std::int64_t>(view.status.left(), 0);
  text.status << "<p>"_html
              << reader.say("sale.left", {{"left", reader.texts.number(left)},
                                          {"stock", reader.texts.number(view.status.stock)}})
              << "</p>\n<progress max=\""_html << std::max<std::int64_t>(view.status.stock, 1)
              << "\" value=\""_html << left << "\" aria-label=\""_html
              << reader.say("sale.left-label") << "\"></progress>\n"_html;
}

/// In the words of the problem that a purchase would be refused with. `more`: a text; empty: none.
void put_refusal(const SalePage& page, const http::ProblemType& type, std::string_view more = {}) {
  const auto& [text, view, reader] = page;
  text.status << "<p class=\"state no\">"_html << problem_html(reader, type) << "</p>\n"_html;
  if (!more.empty()) text.status << "<p>"_html << reader.say(more) << "</p>\n"_html;
}

void put_opening(const SalePage& page) {
  const auto& [text, view, reader] = page;
  put_refusal(page, problems::not_started);
  text.again = usual_look;
  if (!view.sale.opens_at) return;
  const auto left =
      std::max(std::chrono::ceil<std::chrono::milliseconds>(*view.sale.opens_at - view.now), 0ms);
  text.status << "<p>"_html
              << reader.say("sale.opens", {{"time", reader.texts.time(*view.sale.opens_at)}})
              << "</p>\n"_html;
  text.rest << "<p class=\"big\" data-opens-in-ms=\""_html << left.count() << "\" data-days=\""_html
            << reader.say("sale.days") << "\">"_html << reader.texts.about(left) << "</p>\n"_html;
  // Half of what is left, so that a clock that is wrong comes right; at the end a moment later.
  text.again = std::clamp<std::chrono::milliseconds>(left / 2 + 500ms, 1s, 60s);
}

void put_buy_form(const SalePage& page) {
  const auto& [text, view, reader] = page;
  text.rest << "<form class=\"buy\" method=\"post\" action=\""_html << path_of_page(view.sale.name)
            << "/orders\">\n<input type=\"hidden\" name=\"form\" value=\""_html << view.form_token
            << "\">\n<input type=\"hidden\" name=\"wish\" value=\""_html << view.wish
            << "\">\n"_html;
  if (const auto most = most_units(view); most > 1)
    text.rest
        << "<label for=\"units\">"_html
        << reader.say("sale.units", {{"most", reader.texts.number(most)}})
        << "</label>\n<input type=\"number\" id=\"units\" name=\"units\" value=\"1\" min=\"1\" "
           "max=\""_html
        << most << "\" inputmode=\"numeric\" required>\n"_html;
  text.rest << "<p><button>"_html << reader.say("sale.buy") << "</button></p>\n</form>\n"_html;
  if (!text.while_seen) text.while_seen = usual_look;
}

void put_latest(const SalePage& page) {
  const auto& [text, view, reader] = page;
  if (!view.latest || !stands(view.latest->state)) return;
  Html number;
  number << view.latest->number;
  Html link;
  link << "<a href=\""_html << path_of_page(view.sale.name) << "/orders/"_html << view.latest->id
       << "\">"_html << reader.say("sale.bought-order", {{"number", number}}) << "</a>"_html;
  text.rest << "<p>"_html << reader.say("sale.bought", {{"order", link}}) << "</p>\n"_html;
}

bool has_bought_all(const SaleView& view) {
  return view.sale.limit == 1 && view.latest && stands(view.latest->state);
}

/// He keeps his place for as long as he looks at the page, where scripts run: a time that moves on
/// would be read out again and again. Without them the page would have to take away what he types:
/// it says the time, comes back when the place is over, and says so.
void put_stay(const SalePage& page) {
  const auto& [text, view, reader] = page;
  const auto& until = view.place->inside_until;
  if (!until) return;
  if (view.place->stay_until)
    text.rest << "<p>"_html
              << reader.say("sale.until", {{"time", reader.texts.time(*view.place->stay_until)}})
              << "</p>\n"_html;
  text.rest << "<noscript><p>"_html
            << reader.say("sale.kept", {{"time", reader.texts.time(*until)}})
            << "</p></noscript>\n"_html;
  text.while_seen = view.place->poll_after;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - view.now);
  text.again = std::clamp<std::chrono::milliseconds>(left + 2s, 5s, 24h);
}

/// Whoever sent him here by a link may have named another buyer in it.
void put_who(const SalePage& page) {
  const auto& [text, view, reader] = page;
  if (view.who.empty()) return;
  Html who;
  who << view.who;
  text.rest << "<p class=\"soft\">"_html << reader.say("sale.who", {{"buyer", who}})
            << "</p>\n"_html;
}

/// What he can do before a waiting room, or in it.
void put_room(const SalePage& page) {
  const auto& [text, view, reader] = page;
  const auto place = path_of_page(view.sale.name);
  if (!view.place || view.place->state == PlaceState::left) {
    if (view.place && view.place->closed) return put_refusal(page, problems::queue_closed);
    text.status << "<p>"_html << reader.say(view.place ? "room.over" : "room.is") << "</p>\n"_html;
    return put_join_form(text, place, view.form_token, reader);
  }
  if (view.place->state == PlaceState::inside) {
    if (view.status.state != SaleState::open) return;
    text.status << "<p class=\"state\">"_html << reader.say("room.turn") << "</p>\n"_html;
    put_stay(page);
    put_buy_form(page);
  } else {
    put_place(text, *view.place, reader);
  }
  put_leave_form(text, place, view.form_token, reader);
}

/// What he can do while the sale is open, or about to be.
void put_deed(const SalePage& page) {
  const auto& [text, view, reader] = page;
  if (has_bought_all(view)) return;
  if (!view.is_known) {
    text.rest << "<p>"_html << reader.say("sale.login") << "</p>\n"_html;
    return;
  }
  if (view.has_room) return put_room(page);
  if (view.status.state == SaleState::open) put_buy_form(page);
}

void put_state(const SalePage& page) {
  const auto& [text, view, reader] = page;
  switch (view.status.state) {
    case SaleState::not_started: put_opening(page); return put_deed(page);
    case SaleState::open:
      put_stock(page);
      put_deed(page);
      if (!text.again && !text.while_seen) text.again = usual_look;
      return;
    case SaleState::sold_out:
      put_refusal(page, problems::sold_out, "sale.sold-again");
      text.again = usual_look;
      if (view.place && view.place->state != PlaceState::left) put_deed(page);
      return;
    case SaleState::full: put_refusal(page, problems::full, "sale.tomorrow"); return;
    case SaleState::closed:
    case SaleState::archived: return put_refusal(page, problems::closed);
    case SaleState::recovering:
    case SaleState::not_loaded:
      put_refusal(page, problems::recovering, "sale.moment");
      text.again = 2s;
      return;
  }
}

/// What the shop says of it.
void put_look(const SalePage& page) {
  const auto& [text, view, reader] = page;
  const auto* const look = reader.options.front.find(view.sale.name);
  if (!look) return;
  const auto& language = reader.texts.language();
  if (const auto& picture = look->picture; !picture.url.empty()) {
    text.head << "<img class=\"picture\" src=\""_html << picture.url << "\" alt=\""_html
              << look->picture_text.in(language) << "\">\n"_html;
    text.pictures_from = picture.origin.empty() ? "'self'" : picture.origin;
  }
  if (!look->text.empty())
    text.head << "<p class=\"about\">"_html << look->text.in(language) << "</p>\n"_html;
}

}  // namespace

Html headline(const SaleDefinition& sale, const PageReader& reader) {
  Html head;
  head << "<h1>"_html << reader.name_of(sale.name) << "</h1>\n"_html;
  if (sale.payment)
    head << "<p class=\"price\">"_html
         << reader.texts.money(sale.payment->price, sale.payment->currency) << "</p>\n"_html;
  return head;
}

http::Response sale_page(const SaleView& view, const PageReader& reader) {
  PageText text;
  text.title << reader.name_of(view.sale.name);
  text.head = headline(view.sale, reader);
  const SalePage parts{text, view, reader};
  put_look(parts);
  put_state(parts);
  put_latest(parts);
  put_who(parts);
  return page(200, text, reader);
}

}  // namespace sluice::server
