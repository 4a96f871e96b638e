#include "server/pages/buyers_pages.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/integer.hpp"
#include "base/random.hpp"
#include "http/text.hpp"
#include "server/background.hpp"
#include "server/order_requests.hpp"
#include "server/pages/cookies.hpp"
#include "server/pages/order_page.hpp"
#include "server/pages/refusal_page.hpp"
#include "server/pages/root_page.hpp"
#include "server/pages/sale_page.hpp"
#include "server/pages/which_buyer_page.hpp"
#include "server/problems.hpp"

namespace sluice::server {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view ticket_cookie = "sluice_ticket";
constexpr std::chrono::seconds ticket_lasts = 24h;
constexpr std::size_t longest_wish = 128;
constexpr std::size_t most_of_root = 100;

http::Response see_other(const std::string& place) {
  http::Response response{.status = 303, .media = {}, .body = {}, .fields = {}};
  response.add("Location", place);
  return response;
}

http::Response refused(const http::Response& refusal, const PageReader& reader,
                       const std::string& sale, Html again = {}) {
  return refusal_page(refusal, {.sale = sale, .again = std::move(again)}, reader);
}

/// The same in place of a page that he may have left open.
http::Response not_shown(const http::Response& refusal, const PageReader& reader,
                         const std::string& sale) {
  return refusal_page(refusal, {.sale = sale, .comes_back = true}, reader);
}

using Refuse = http::Response (*)(const http::Response&, const PageReader&, const std::string&);
http::Response refused_form(const http::Response& refusal, const PageReader& reader,
                            const std::string& sale) {
  return refused(refusal, reader, sale);
}

/// Answers with the page of `work`, or of its failure.
Task<void> send_page(Task<http::Response> work, PageReader reader, std::string sale,
                     http::Responder respond, Refuse refuse = &refused_form) {
  http::Response response;
  try {
    response = co_await work;
  } catch (const std::exception& failure) {
    response = refuse(problem_of(failure), reader, sale);
  }
  respond.send(std::move(response));
}

/// The same wish once more: after no answer, or before a turn that came.
Html form_again(const std::string& sale, const Form& form, const PageReader& reader) {
  Html html;
  html << "<form class=\"buy\" method=\"post\" action=\""_html << path_of_page(sale)
       << "/orders\">\n"_html;
  for (const std::string_view name : {"form", "wish", "units"})
    if (!form.value(name).empty())
      html << "<input type=\"hidden\" name=\""_html << name << "\" value=\""_html
           << form.value(name) << "\">\n"_html;
  html << "<p><button>"_html << reader.say("refusal.again") << "</button></p>\n</form>\n"_html;
  return html;
}

Asker own(const BuyerId& buyer) { return {.buyer = buyer, .subject = buyer.value}; }

/// The id of an order that the API has told: the end of its Location.
std::string order_of(const http::Response& bought) {
  for (const auto& [name, value] : bought.fields)
    if (name == "Location") return value.substr(value.rfind('/') + 1);
  return {};
}

/// What pages say to people.
std::vector<const http::ProblemType*> problems_of(std::string_view operation) {
  using namespace problems;
  std::vector<const http::ProblemType*> all{&bad_body,     &unknown_buyer,     &not_yours,
                                            &no_sale,      &too_many_requests, &recovering,
                                            &store_failed, &effect_unknown,    &busy};
  if (operation == "page_join") all.push_back(&queue_closed);
  if (operation == "page_order" || operation == "page_cancel")
    all.insert(all.end(), {&no_order, &order_paid, &database_failed});
  if (operation == "page_buy")
    all.insert(all.end(),
               {&no_idempotency_key, &not_started, &not_inside, &sold_out, &not_enough,
                &already_bought, &too_many_units, &full, &order_ended, &closed, &other_units});
  return all;
}

}  // namespace

void BuyersPages::show_root(http::Request&& request, http::Responder&& respond) {
  const auto offers = shop_.all();
  std::vector<std::string> sales;
  for (std::size_t i = 0; i < std::min(offers.size(), most_of_root); ++i)
    sales.push_back(offers[i]->name());
  respond.send(takes_html(request) ? root_page(sales, PageReader::of(request, options_))
                                   : root_json(sales));
}

void BuyersPages::show_sale(http::Request&& request, http::Responder&& respond) {
  const auto sale = request.parameter("sale");
  auto reader = PageReader::of(request, options_);
  auto offer = offer_of(shop_, request);
  if (!offer) return respond.send(not_shown(offer.error(), reader, {}));
  if (const auto token = request.query("token"))
    return respond.send(greeted(request, sale, *token, reader));
  auto visitor = visitors_.who_looks(request, sale);
  if (!visitor) return respond.send(not_shown(visitor.error(), reader, sale));
  Look look{std::move(*offer), std::move(request), std::move(*visitor), reader};
  spawn(send_page(sale_shown(std::move(look)), std::move(reader), sale, std::move(respond),
                  &not_shown));
}

http::Response BuyersPages::greeted(const http::Request& request, const std::string& sale,
                                    const std::string& token, const PageReader& reader) const {
  const auto brought = visitors_.who_is_brought(request, sale, token);
  if (!brought) return refused(brought.error(), reader, sale);
  const auto present = visitors_.known(request, sale);
  if (present && *present != *brought)
    return which_buyer_page(sale, *present, *brought, token, visitors_.form_token(*present, sale),
                            reader);
  auto response = Visitors::greet(request, sale, token);
  if (!reader.cookie.empty()) response.add("Set-Cookie", reader.cookie);
  return response;
}

void BuyersPages::change_buyer(http::Request&& request, http::Responder&& respond) {
  auto sent = sent_of(std::move(request));
  if (!sent) return respond.send(std::move(sent.error()));
  const auto& sale = sent->offer->name();
  const std::string token{sent->form.value("token")};
  const auto brought = visitors_.who_is_brought(sent->request, sale, token);
  respond.send(brought ? Visitors::greet(sent->request, sale, token)
                       : refused(brought.error(), sent->reader, sale));
}

Task<http::Response> BuyersPages::sale_shown(Look look) {
  auto& sale = look.offer->sale();
  SaleView view{.sale = sale.definition()};
  auto asking = sale.status();
  view.status = co_await asking;
  view.now = system_clock().wall();
  if (look.visitor.buyer) {
    const auto& buyer = *look.visitor.buyer;
    view.is_known = true;
    if (visitors_.have_tokens()) view.who = buyer.value;
    view.form_token = visitors_.form_token(buyer, sale.definition().name);
    view.wish = random_hex_128();
    if (view.status.state != SaleState::archived) {
      auto looking = sale.latest(buyer);
      view.latest = co_await looking;
    }
    if (const auto room = queue_.room_of(sale.definition().name)) {
      view.has_room = true;
      auto finding = place_of(look, *room);
      view.place = co_await finding;
    }
  }
  auto response = sale_page(view, look.reader);
  visitors_.keep(response, look.request, look.visitor);
  co_return response;
}

/// A ticket that is not taken any more is none: he joins anew, and finds his place if he has one.
Task<std::optional<RoomPlace>> BuyersPages::place_of(const Look& look, WaitingRoom& room) {
  const auto ticket = cookie_of(look.request, ticket_cookie);
  if (ticket.empty()) co_return std::nullopt;
  auto asking = room.state(ticket, look.visitor.buyer->value);
  auto place = co_await asking;
  if (!place) co_return std::nullopt;
  co_return std::move(*place);
}

Expected<BuyersPages::Sent, http::Response> BuyersPages::sent_of(http::Request&& request) const {
  const auto sale = request.parameter("sale");
  auto reader = PageReader::of(request, options_);
  auto offer = offer_of(shop_, request);
  if (!offer) return Unexpected{refused(offer.error(), reader, {})};
  auto form = Form::of(request);
  if (!form) return Unexpected{refused(form.error(), reader, sale)};
  auto buyer = visitors_.who_sends(request, *form, sale);
  if (!buyer) return Unexpected{refused(buyer.error(), reader, sale)};
  return Sent{std::move(*offer), std::move(request), std::move(*buyer), std::move(*form),
              std::move(reader)};
}

void BuyersPages::join(http::Request&& request, http::Responder&& respond) {
  auto sent = sent_of(std::move(request));
  if (!sent) return respond.send(std::move(sent.error()));
  const auto sale = sent->offer->name();
  const auto reader = sent->reader;
  spawn(send_page(joined(std::move(*sent)), reader, sale, std::move(respond)));
}

Task<http::Response> BuyersPages::joined(Sent sent) {
  const auto& sale = sent.offer->name();
  const auto room = queue_.room_of(sale);
  if (!room) co_return see_other(path_of_page(sale));  // it was removed: nobody waits
  auto entering = room->enter(sent.buyer.value);
  const auto entry = co_await entering;
  if (entry.ticket.empty())
    co_return refused(http::problem(problems::queue_closed), sent.reader, sale);
  auto response = see_other(path_of_page(sale));
  set_cookie(response, sent.request,
             {.name = ticket_cookie,
              .value = entry.ticket,
              .path = path_of_page(sale),
              .max_age = ticket_lasts});
  co_return response;
}

void BuyersPages::leave(http::Request&& request, http::Responder&& respond) {
  auto sent = sent_of(std::move(request));
  if (!sent) return respond.send(std::move(sent.error()));
  const auto sale = sent->offer->name();
  const auto reader = sent->reader;
  spawn(send_page(left(std::move(*sent)), reader, sale, std::move(respond)));
}

Task<http::Response> BuyersPages::left(Sent sent) {
  const auto& sale = sent.offer->name();
  const auto ticket = cookie_of(sent.request, ticket_cookie);
  if (const auto room = queue_.room_of(sale); room && !ticket.empty()) {
    auto leaving = room->leave(ticket, sent.buyer.value);
    co_await leaving;
  }
  auto response = see_other(path_of_page(sale));
  set_cookie(response, sent.request,
             {.name = ticket_cookie, .value = {}, .path = path_of_page(sale), .max_age = 0s});
  co_return response;
}

void BuyersPages::buy(http::Request&& request, http::Responder&& respond) {
  auto sent = sent_of(std::move(request));
  if (!sent) return respond.send(std::move(sent.error()));
  const auto sale = sent->offer->name();
  const auto wish = sent->form.value("wish");
  if (wish.empty() || wish.size() > longest_wish)
    return respond.send(refused(http::problem(problems::no_idempotency_key), sent->reader, sale));
  const auto word = sent->form.value("units");
  const auto units =
      word.empty() ? std::optional<std::int64_t>{1} : parse_integer<std::int64_t>(word);
  if (!units || *units < 1)
    return respond.send(refused(http::problem(problems::bad_body), sent->reader, sale));
  Purchase purchase{.offer = sent->offer,
                    .buyer = sent->buyer,
                    .wish = RequestId{std::string{wish}},
                    .units = *units,
                    .ticket = cookie_of(sent->request, ticket_cookie)};
  const auto reader = sent->reader;
  spawn(send_page(bought(std::move(*sent), std::move(purchase)), reader, sale, std::move(respond)));
}

Task<http::Response> BuyersPages::bought(Sent sent, Purchase purchase) {
  const auto& sale = sent.offer->name();
  http::Response answer;
  try {
    auto serving = serve_at_counter(queue_, std::move(purchase));
    answer = co_await serving;
  } catch (const std::exception& failure) {
    answer = problem_of(failure);
  }
  if (answer.status == 200 || answer.status == 201)
    co_return see_other(fmt::format("{}/orders/{}", path_of_page(sale), order_of(answer)));
  const bool may_repeat = answer.status == 503;
  Html again;
  if (may_repeat) again = form_again(sale, sent.form, sent.reader);
  co_return refused(answer, sent.reader, sale, std::move(again));
}

void BuyersPages::show_order(http::Request&& request, http::Responder&& respond) {
  const auto sale = request.parameter("sale");
  const auto reader = PageReader::of(request, options_);
  auto offer = offer_of(shop_, request);
  if (!offer) return respond.send(not_shown(offer.error(), reader, {}));
  const auto visitor = visitors_.who_looks(request, sale);
  if (!visitor) return respond.send(not_shown(visitor.error(), reader, sale));
  if (!visitor->buyer || visitor->is_new)
    return respond.send(refused(http::problem(problems::no_order), reader, sale));
  in_background(
      threads_, visitor->buyer->value, std::move(respond),
      [this, offer = *offer, buyer = *visitor->buyer, reader,
       word = request.parameter("order")](OrderStore& orders) {
        const auto found = find_order(*offer, orders, own(buyer), word);
        if (!found)
          return not_shown(not_found(offer->sale(), orders, own(buyer)), reader, offer->name());
        return order_page(offer->sale().definition(), *found,
                          visitors_.form_token(buyer, offer->name()),
                          pay_at(offer->sale().definition(), *found), reader);
      },
      sale, {}, [reader, sale](const auto& refusal) { return not_shown(refusal, reader, sale); });
}

/// The token says whose order it is and what is to pay, so that the checkout believes no address.
std::string BuyersPages::pay_at(const SaleDefinition& sale, const ShownOrder& shown) const {
  const auto& order = shown.order;
  if (options_.checkout.empty() || !sale.payment || order.state != OrderState::awaiting ||
      !shown.is_recorded || !shown.money || !shown.money->pay_by)
    return {};
  const auto token = keys_.sign({.subject = order.buyer.value,
                                 .audience = "checkout:" + sale.name,
                                 .expires = *shown.money->pay_by,
                                 .more = {{"order", order.number},
                                          {"amount", std::to_string(shown.money->due)},
                                          {"currency", sale.payment->currency}}});
  return fmt::format("{}{}sale={}&order={}&token={}", options_.checkout,
                     options_.checkout.contains('?') ? '&' : '?', http::escape(sale.name),
                     http::escape(order.number), token);
}

void BuyersPages::cancel(http::Request&& request, http::Responder&& respond) {
  const auto word = request.parameter("order");
  auto sent = sent_of(std::move(request));
  if (!sent) return respond.send(std::move(sent.error()));
  const auto sale = sent->offer->name();
  in_background(
      threads_, sent->buyer.value, std::move(respond),
      [offer = sent->offer, buyer = sent->buyer, word, reader = sent->reader](OrderStore& orders) {
        const auto& sale = offer->name();
        const auto found = find_order(*offer, orders, own(buyer), word);
        if (!found) return refused(not_found(offer->sale(), orders, own(buyer)), reader, sale);
        const auto ended =
            offer->sale().cancel(orders, buyer, found->order.request, "cancelled by the buyer");
        if (!ended.order) return refused(http::problem(problems::no_order), reader, sale);
        if (stands(ended.order->state))
          return refused(http::problem(problems::order_paid), reader, sale);
        return see_other(fmt::format("{}/orders/{}", path_of_page(sale), ended.order->id));
      },
      sale, {},
      [reader = sent->reader, sale](const auto& refusal) {
        return refused(refusal, reader, sale);
      });
}

void BuyersPages::show_picture(http::Request&& request, http::Responder&& respond) {
  const auto* const picture = options_.front.find_picture(request.parameter("picture"));
  respond.send(picture ? kept_file(picture->media, picture->bytes)
                       : http::problem(http::problems::not_found));
}

void BuyersPages::show_colours(http::Request&&, http::Responder&& respond) {
  respond.send(kept_file("text/css; charset=utf-8", options_.front.colours()));
}

void BuyersPages::add_routes(http::Routes& routes) {
  using Serve = void (BuyersPages::*)(http::Request&&, http::Responder &&);
  struct Row {
    const char* method;
    const char* path;
    const char* operation;
    const char* summary;
    Serve serve;
  };
  static constexpr Row rows[] = {
      {"GET", "/", "page_root", "The sales, for people; as JSON for programs",
       &BuyersPages::show_root},
      {"GET", "/sales/{sale}", "page_sale", "A sale, for people", &BuyersPages::show_sale},
      {"POST", "/sales/{sale}/buyer", "page_change_buyer",
       "A form: goes on as the buyer whom a link brings", &BuyersPages::change_buyer},
      {"POST", "/sales/{sale}/queue", "page_join", "A form: joins the waiting room",
       &BuyersPages::join},
      {"POST", "/sales/{sale}/queue/leave", "page_leave", "A form: leaves the waiting room",
       &BuyersPages::leave},
      {"POST", "/sales/{sale}/orders", "page_buy", "A form: buys", &BuyersPages::buy},
      {"GET", "/sales/{sale}/orders/{order}", "page_order", "A buyer's order, for people",
       &BuyersPages::show_order},
      {"POST", "/sales/{sale}/orders/{order}/cancel", "page_cancel", "A form: cancels an order",
       &BuyersPages::cancel}};
  for (const auto& row : rows) {
    const bool is_form = std::string_view{row.method} == "POST";
    std::vector<http::Answer> answers{
        {is_form ? 303 : 200, is_form ? "To the page that shows it" : "The page",
         is_form ? "" : R"({"type":"string"})", std::string{html_media}}};
    if (std::string_view{row.path} == "/")
      answers.push_back({200, "The page", R"({"type":"object"})", "application/json"});
    routes.add(
        {.method = row.method,
         .path = row.path,
         .operation = row.operation,
         .summary = row.summary,
         .answers = std::move(answers),
         .problems = problems_of(row.operation),
         .problems_media = std::string{html_media},
         .handler = [this, serve = row.serve](http::Request&& request, http::Responder&& respond) {
           (this->*serve)(std::move(request), std::move(respond));
         }});
  }
  add_files(routes);
}

void BuyersPages::add_files(http::Routes& routes) {
  const auto add_file = [&](const char* path, const char* operation, const char* media,
                            http::Handler handler) {
    routes.add({.method = "GET",
                .path = path,
                .operation = operation,
                .summary = "A file of the pages",
                .answers = {{200, "The file", R"({"type":"string"})", media}},
                .handler = std::move(handler)});
  };
  add_file("/sales/assets/buyers.css", "page_style", "text/css",
           [](http::Request&&, http::Responder&& respond) { respond.send(style_sheet()); });
  add_file("/sales/assets/buyers.js", "page_script", "text/javascript",
           [](http::Request&&, http::Responder&& respond) { respond.send(script_file()); });
  add_file("/sales/assets/shop.css", "page_colours", "text/css",
           [this](http::Request&& request, http::Responder&& respond) {
             show_colours(std::move(request), std::move(respond));
           });
  add_file("/sales/assets/pictures/{picture}", "page_picture", "image/*",
           [this](http::Request&& request, http::Responder&& respond) {
             show_picture(std::move(request), std::move(respond));
           });
}

}  // namespace sluice::server
