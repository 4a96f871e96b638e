#include "server/pages/order_page.hpp"

#include "sale/payment_terms.hpp"
#include "server/pages/sale_page.hpp"
#include "server/pages/visitors.hpp"

namespace sluice::server {
namespace {

using namespace std::chrono_literals;

std::string_view sentence_of(const ShownOrder& shown, bool is_paid_for) {
  switch (shown.order.state) {
    case OrderState::awaiting:
      if (!shown.is_recorded) return "It is yours. We are writing it down.";
      return is_paid_for ? "It is yours. Please pay for it in time." : "It is yours.";
    case OrderState::cancelled: return "This order is cancelled.";
    case OrderState::paid: return "It is paid. Thank you.";
    case OrderState::expired: return "It was not paid in time, and has ended.";
    case OrderState::refunding: return "It has ended, and your money goes back.";
    case OrderState::refunded: return "It has ended, and your money has gone back.";
  }
  return {};
}

std::string_view state_of(const ShownOrder& shown, bool is_paid_for) {
  if (shown.order.state != OrderState::awaiting) return to_string(shown.order.state);
  return is_paid_for ? "not paid yet" : "bought";
}

void put_row(Html& html, std::string_view name, const Html& value) {
  html << "<dt>"_html << name << "</dt><dd>"_html << value << "</dd>\n"_html;
}

template <class Value>
Html one(const Value& value) {
  Html html;
  html << value;
  return html;
}

/// What the units that are left cost. Of an order that has ended nothing is to pay.
void put_price(Html& html, const SaleDefinition& sale, const ShownOrder& shown) {
  const auto& order = shown.order;
  if (!sale.payment || !stands(order.state)) return;
  const auto price = sale::price_of(order.units - shown.money->returned, *sale.payment);
  put_row(html, order.state == OrderState::paid ? "Paid" : "To pay",
          one(std::string_view{money_text(price, sale.payment->currency)}));
}

void put_cancel_form(Html& html, const std::string& place, const std::string& form_token) {
  html << "<form method=\"post\" action=\""_html << place
       << "/cancel\">\n<input type=\"hidden\" name=\"form\" value=\""_html << form_token
       << "\">\n<button class=\"quiet\">Cancel this order</button>\n</form>\n"_html;
}

}  // namespace

http::Response order_page(const SaleDefinition& sale, const ShownOrder& shown,
                          const std::string& form_token, const std::string& pay_at) {
  const auto& order = shown.order;
  const auto sale_place = path_of_page(sale.name);
  PageText text;
  text.title << "Order "_html << order.number << " – "_html << sale.name;
  text.head = headline(sale);
  auto& status = text.status;
  status << "<h2>Order "_html << order.number << "</h2>\n<p class=\"state"_html
         << (stands(order.state) ? ""_html : " no"_html) << "\">"_html
         << sentence_of(shown, sale.payment.has_value()) << "</p>\n<dl>\n"_html;
  put_row(status, "Units", one(order.units));
  if (shown.money) {
    if (shown.money->returned > 0) put_row(status, "Of these returned", one(shown.money->returned));
    put_price(status, sale, shown);
    if (shown.money->pay_by && order.state == OrderState::awaiting)
      put_row(status, "Pay by", time_html(*shown.money->pay_by));
  }
  put_row(status, "Bought", time_html(order.issued_at));
  put_row(status, "State", one(state_of(shown, sale.payment.has_value())));
  status << "</dl>\n"_html;
  if (!pay_at.empty())
    text.rest << "<p><a class=\"deed\" href=\""_html << pay_at << "\">Pay now</a></p>\n"_html;
  if (order.state == OrderState::awaiting)
    put_cancel_form(text.rest, sale_place + "/orders/" + std::to_string(order.id), form_token);
  text.rest << "<p><a href=\""_html << sale_place << "\">Back to the sale</a></p>\n"_html;
  if (!shown.is_recorded)
    text.again = 2s;
  else if (order.state == OrderState::awaiting && sale.payment)
    text.again = 10s;  // its payment may come
  return page(200, text);
}

}  // namespace sluice::server
