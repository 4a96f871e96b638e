#include "server/pages/sale_page.hpp"

#include <algorithm>

#include "http/problem.hpp"
#include "server/pages/queue_page.hpp"
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

void put_stock(PageText& text, const SaleView& view) {
  const auto left = std::max<std::int64_t>(view.status.left(), 0);
  text.status << "<p>"_html << left << " of "_html << view.status.stock
              << " left</p>\n<progress max=\""_html << std::max<std::int64_t>(view.status.stock, 1)
              << "\" value=\""_html << left << "\" aria-label=\"What is left\"></progress>\n"_html;
}

/// In the words of the problem that a purchase would be refused with.
void put_refusal(PageText& text, const http::ProblemType& type, std::string_view more = {}) {
  text.status << "<p class=\"state no\">"_html << type.title << "</p>\n"_html;
  if (!more.empty()) text.status << "<p>"_html << more << "</p>\n"_html;
}

void put_opening(PageText& text, const SaleView& view) {
  put_refusal(text, problems::not_started);
  text.again = usual_look;
  if (!view.sale.opens_at) return;
  const auto left =
      std::max(std::chrono::ceil<std::chrono::milliseconds>(*view.sale.opens_at - view.now), 0ms);
  text.status << "<p>It opens "_html << time_html(*view.sale.opens_at) << ".</p>\n"_html;
  text.rest << "<p class=\"big\" data-opens-in-ms=\""_html << left.count() << "\">"_html
            << about(left) << "</p>\n"_html;
  // Half of what is left, so that a clock that is wrong comes right; at the end a moment later.
  text.again = std::clamp<std::chrono::milliseconds>(left / 2 + 500ms, 1s, 60s);
}

void put_buy_form(PageText& text, const SaleView& view) {
  text.rest << "<form class=\"buy\" method=\"post\" action=\""_html << path_of_page(view.sale.name)
            << "/orders\">\n<input type=\"hidden\" name=\"form\" value=\""_html << view.form_token
            << "\">\n<input type=\"hidden\" name=\"wish\" value=\""_html << view.wish
            << "\">\n"_html;
  if (const auto most = most_units(view); most > 1)
    text.rest
        << "<label for=\"units\">How many, up to "_html << most
        << "</label>\n<input type=\"number\" id=\"units\" name=\"units\" value=\"1\" min=\"1\" "
           "max=\""_html
        << most << "\" inputmode=\"numeric\" required>\n"_html;
  text.rest << "<p><button>Buy</button></p>\n</form>\n"_html;
  if (!text.while_seen) text.while_seen = usual_look;
}

void put_latest(PageText& text, const SaleView& view) {
  if (!view.latest || !stands(view.latest->state)) return;
  text.rest << "<p>You have bought: <a href=\""_html << path_of_page(view.sale.name)
            << "/orders/"_html << view.latest->id << "\">order "_html << view.latest->number
            << "</a></p>\n"_html;
}

bool has_bought_all(const SaleView& view) {
  return view.sale.limit == 1 && view.latest && stands(view.latest->state);
}

/// He keeps his place for as long as he looks at the page, where scripts run: a time that moves on
/// would be read out again and again. Without them the page would have to take away what he types:
/// it says the time, comes back when the place is over, and says so.
void put_stay(PageText& text, const SaleView& view) {
  const auto& until = view.place->inside_until;
  if (!until) return;
  if (view.place->stay_until)
    text.rest << "<p>Please buy until "_html << time_html(*view.place->stay_until)
              << ": then it is the next one's turn.</p>\n"_html;
  text.rest << "<noscript><p>Your place is kept until "_html << time_html(*until)
            << ".</p></noscript>\n"_html;
  text.while_seen = view.place->poll_after;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - view.now);
  text.again = std::clamp<std::chrono::milliseconds>(left + 2s, 5s, 24h);
}

/// Whoever sent him here by a link may have named another buyer in it.
void put_who(PageText& text, const SaleView& view) {
  if (view.who.empty()) return;
  text.rest << "<p class=\"soft\">You are here as "_html << view.who << ".</p>\n"_html;
}

/// What he can do while the sale is open, or about to be.
void put_deed(PageText& text, const SaleView& view) {
  const auto page = path_of_page(view.sale.name);
  const bool is_open = view.status.state == SaleState::open;
  if (has_bought_all(view)) return;
  if (!view.is_known) {
    text.rest << "<p>To buy, come here from the shop, where you log in.</p>\n"_html;
    return;
  }
  if (!view.has_room) {
    if (is_open) put_buy_form(text, view);
    return;
  }
  if (!view.place || view.place->state == PlaceState::left) {
    if (view.place && view.place->closed) return put_refusal(text, problems::queue_closed);
    text.status << (view.place ? "<p>Your place in the waiting room is over.</p>\n"_html
                               : "<p>This sale has a waiting room.</p>\n"_html);
    return put_join_form(text, page, view.form_token);
  }
  if (view.place->state == PlaceState::inside) {
    if (!is_open) return;
    text.status << "<p class=\"state\">It is your turn</p>\n"_html;
    put_stay(text, view);
    put_buy_form(text, view);
  } else {
    put_place(text, *view.place);
  }
  put_leave_form(text, page, view.form_token);
}

void put_state(PageText& text, const SaleView& view) {
  switch (view.status.state) {
    case SaleState::not_started: put_opening(text, view); return put_deed(text, view);
    case SaleState::open:
      put_stock(text, view);
      put_deed(text, view);
      if (!text.again && !text.while_seen) text.again = usual_look;
      return;
    case SaleState::sold_out:
      put_refusal(text, problems::sold_out,
                  "What others cancel, or do not pay for, is sold again: this page shows it.");
      text.again = usual_look;
      if (view.place && view.place->state != PlaceState::left) put_deed(text, view);
      return;
    case SaleState::full: put_refusal(text, problems::full, "It goes on tomorrow."); return;
    case SaleState::closed:
    case SaleState::archived: return put_refusal(text, problems::closed);
    case SaleState::recovering:
    case SaleState::not_loaded:
      put_refusal(text, problems::recovering,
                  "This takes a moment. Nothing is lost that you were told.");
      text.again = 2s;
      return;
  }
}

}  // namespace

Html headline(const SaleDefinition& sale) {
  Html head;
  head << "<h1>"_html << sale.name << "</h1>\n"_html;
  if (sale.payment)
    head << "<p class=\"price\">"_html << money_text(sale.payment->price, sale.payment->currency)
         << "</p>\n"_html;
  return head;
}

http::Response sale_page(const SaleView& view) {
  PageText text;
  text.title << view.sale.name;
  text.head = headline(view.sale);
  put_state(text, view);
  put_latest(text, view);
  put_who(text, view);
  return page(200, text);
}

}  // namespace sluice::server
