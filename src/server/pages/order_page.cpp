#include "server/pages/order_page.hpp"

#include <fmt/format.h>

#include "sale/payment_terms.hpp"
#include "server/pages/sale_page.hpp"
#include "server/pages/visitors.hpp"

namespace sluice::server {
namespace {

using namespace std::chrono_literals;

/// The text that says how it stands.
std::string_view sentence_of(const ShownOrder& shown, bool is_paid_for) {
  switch (shown.order.state) {
    case OrderState::awaiting:
      if (!shown.is_recorded) return "order.writing";
      return is_paid_for ? "order.to-pay" : "order.yours";
    case OrderState::cancelled: return "order.cancelled";
    case OrderState::paid: return "order.paid";
    case OrderState::expired: return "order.expired";
    case OrderState::refunding: return "order.refunding";
    case OrderState::refunded: return "order.refunded";
  }
  return "order.yours";
}

class OrderRows {
 public:
  OrderRows(Html& html, const PageReader& reader) : html_(html), reader_(reader) {}
  void put(std::string_view name, const Html& value) {
    html_ << "<dt>"_html << reader_.say(name) << "</dt><dd>"_html << value << "</dd>\n"_html;
  }
  void put(std::string_view name, std::int64_t value) { put(name, reader_.texts.number(value)); }
  void put(std::string_view name, WallTime value) { put(name, reader_.texts.time(value)); }

 private:
  Html& html_;
  const PageReader& reader_;
};

/// What was sold, for how much. Of an order that has ended nothing is to pay.
void put_rows(OrderRows rows, const SaleDefinition& sale, const ShownOrder& shown,
              const PageReader& reader) {
  const auto& order = shown.order;
  const auto& money = shown.money;
  rows.put("order.units", order.units);
  if (money && money->returned > 0) rows.put("order.returned", money->returned);
  if (money && sale.payment && stands(order.state))
    rows.put(order.state == OrderState::paid ? "order.row-paid" : "order.row-to-pay",
             reader.texts.money(sale::price_of(order.units - money->returned, *sale.payment),
                                sale.payment->currency));
  if (money && money->pay_by && order.state == OrderState::awaiting)
    rows.put("order.pay-by", *money->pay_by);
  rows.put("order.bought", order.issued_at);
  if (sale.payment)  // without a price nothing is awaited, and the sentence says all
    rows.put("order.state", reader.say(fmt::format("state.{}", to_string(order.state))));
}

void put_cancel_form(Html& html, const std::string& place, const std::string& form_token,
                     const PageReader& reader) {
  html << "<form method=\"post\" action=\""_html << place
       << "/cancel\">\n<input type=\"hidden\" name=\"form\" value=\""_html << form_token
       << "\">\n<button class=\"quiet\">"_html << reader.say("order.cancel")
       << "</button>\n</form>\n"_html;
}

}  // namespace

http::Response order_page(const SaleDefinition& sale, const ShownOrder& shown,
                          const std::string& form_token, const std::string& pay_at,
                          const PageReader& reader) {
  const auto& order = shown.order;
  const auto sale_place = path_of_page(sale.name);
  Html number;
  number << order.number;
  const auto title = reader.say("order.title", {{"number", number}});
  PageText text;
  text.title << title << " – "_html << reader.name_of(sale.name);
  text.head = headline(sale, reader);
  text.status << "<h2>"_html << title << "</h2>\n<p class=\"state"_html
              << (stands(order.state) ? ""_html : " no"_html) << "\">"_html
              << reader.say(sentence_of(shown, sale.payment.has_value())) << "</p>\n<dl>\n"_html;
  put_rows({text.status, reader}, sale, shown, reader);
  text.status << "</dl>\n"_html;
  if (!pay_at.empty())
    text.rest << "<p><a class=\"deed\" href=\""_html << pay_at << "\">"_html
              << reader.say("order.pay-now") << "</a></p>\n"_html;
  if (order.state == OrderState::awaiting)
    put_cancel_form(text.rest, sale_place + "/orders/" + std::to_string(order.id), form_token,
                    reader);
  text.rest << "<p><a href=\""_html << sale_place << "\">"_html << reader.say("refusal.back")
            << "</a></p>\n"_html;
  if (!shown.is_recorded)
    text.again = 2s;
  else if (order.state == OrderState::awaiting && sale.payment)
    text.again = 10s;  // its payment may come
  return page(200, text, reader);
}

}  // namespace sluice::server
