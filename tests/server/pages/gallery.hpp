/// Every page for buyers in every state that it has, made of invented sales and orders.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "http/response.hpp"
#include "server/pages/order_page.hpp"
#include "server/pages/refusal_page.hpp"
#include "server/pages/root_page.hpp"
#include "server/pages/sale_page.hpp"
#include "server/pages/which_buyer_page.hpp"
#include "server/problems.hpp"

namespace sluice::server {

class Gallery {
 public:
  struct Page {
    std::string name;
    http::Response shown;
  };

  /// `sale`, `buyer`, `number`: what stands on pages beside their texts.
  Gallery(const PagesOptions& options, const Texts& texts, std::string sale, BuyerId buyer,
          std::string number)
      : reader_{.options = options, .texts = texts, .place = "/sales/tea"},
        priced_{.name = std::move(sale),
                .stock = 1'250'000,
                .opens_at = now_ + std::chrono::hours{50},
                .limit = 1,
                .number_type = "T",
                .payment = PaymentTerms{.price = 123'456'700, .currency = "CNY"}},
        buyer_(std::move(buyer)),
        number_(std::move(number)) {
    put_sales();
    put_orders();
    put_refusals();
    pages_.push_back({"root", root_page({priced_.name}, reader_)});
    pages_.push_back({"root without a sale", root_page({}, reader_)});
    pages_.push_back(
        {"which buyer", which_buyer_page(priced_.name, buyer_, buyer_, "token", "form", reader_)});
  }

  const std::vector<Page>& pages() const noexcept { return pages_; }

 private:
  static constexpr std::array sale_states{
      SaleState::not_started, SaleState::open,     SaleState::sold_out,   SaleState::full,
      SaleState::closed,      SaleState::archived, SaleState::recovering, SaleState::not_loaded};
  static constexpr std::array order_states{OrderState::awaiting,  OrderState::paid,
                                           OrderState::cancelled, OrderState::expired,
                                           OrderState::refunding, OrderState::refunded};

  SaleOrder order(OrderState state) const {
    SaleOrder order{};
    order.id = 394'045'412'409'868'289;
    order.number = number_;
    order.buyer = buyer_;
    order.units = 12'000;
    order.state = state;
    order.issued_at = now_;
    return order;
  }

  /// Where somebody can stand who looks at a sale.
  std::vector<std::pair<std::string, SaleView>> standings(SaleState state) const {
    SaleView view{.sale = priced_};
    view.status.state = state;
    view.status.stock = priced_.stock;
    view.status.sold = 1;
    view.now = now_;
    view.form_token = "form";
    view.wish = "wish";
    std::vector<std::pair<std::string, SaleView>> all;
    const auto add = [&](std::string name, auto change) {
      auto changed = view;
      change(changed);
      all.emplace_back(std::move(name), changed);
    };
    add("a stranger", [](SaleView&) {});
    view.is_known = true;
    view.who = buyer_.value;
    add("a buyer", [](SaleView&) {});
    add("with an order", [&](SaleView& his) { his.latest = order(OrderState::awaiting); });
    view.has_room = true;
    add("before the room", [](SaleView&) {});
    const auto in_room = [&](std::string name, RoomPlace place) {
      place.poll_after = std::chrono::seconds{3};
      add(std::move(name), [&](SaleView& his) { his.place = place; });
    };
    using enum PlaceState;
    in_room("enrolled", {.state = enrolled, .eta = std::chrono::hours{50}});
    in_room("waiting", {.state = waiting,
                        .position = 1'234'567,
                        .before = 1'234'566,
                        .eta = std::chrono::seconds{42}});
    in_room("waiting long",
            {.state = waiting, .position = 2, .before = 1, .eta = std::chrono::minutes{40}});
    in_room("waiting, paused", {.state = waiting, .position = 2, .before = 1, .paused = true});
    in_room("soon", {.state = waiting, .position = 2, .before = 1, .eta = std::chrono::seconds{2}});
    in_room("inside", {.state = inside,
                       .inside_until = now_ + std::chrono::minutes{2},
                       .stay_until = now_ + std::chrono::minutes{10}});
    in_room("place over", {.state = left});
    in_room("room closed", {.state = left, .closed = true});
    return all;
  }

  void put_sales() {
    for (const auto state : sale_states)
      for (const auto& [name, view] : standings(state))
        pages_.push_back(
            {fmt::format("sale {}, {}", to_string(state), name), sale_page(view, reader_)});
  }

  void put_orders() {
    auto free = priced_;
    free.payment.reset();
    for (const SaleDefinition* const sale : {&priced_, static_cast<const SaleDefinition*>(&free)})
      for (const auto state : order_states)
        for (const std::int64_t returned : {0, 2}) {
          ShownOrder shown{.order = order(state), .is_recorded = true};
          shown.money = PayableOrder{.order = shown.order, .returned = returned};
          if (sale->payment) shown.money->pay_by = now_ + std::chrono::minutes{15};
          put_order(fmt::format("order {}, {}, {} returned", to_string(state),
                                sale->payment ? "priced" : "free", returned),
                    *sale, shown);
        }
    put_order("order on its way", priced_, {.order = order(OrderState::awaiting)});
  }

  void put_order(std::string name, const SaleDefinition& sale, const ShownOrder& shown) {
    const bool pays =
        shown.is_recorded && sale.payment && shown.order.state == OrderState::awaiting;
    pages_.push_back(
        {std::move(name),
         order_page(sale, shown, "form", pays ? "https://shop.example/pay?token=1" : "", reader_)});
  }

  void put_refusals() {
    Html again;
    again << "<form class=\"buy\" method=\"post\" action=\"/sales/tea/orders\"><p><button>"_html
          << reader_.say("refusal.again") << "</button></p></form>"_html;
    for (const auto* const problem : all_problems) {
      const auto urn = http::type_of(*problem);
      if (!reader_.texts.has("problem." + urn.substr(urn.rfind(':') + 1))) continue;
      const auto refusal = http::problem(
          *problem, "in words of the interface",
          {{"left", 12'000},
           {"opens_at", "2026-11-11T12:00:00Z"},
           {"order", Json::object({{"id", "394045412409868289"}, {"number", number_}})}});
      pages_.push_back({"refusal " + urn,
                        refusal_page(refusal, {.sale = priced_.name, .again = again}, reader_)});
    }
    pages_.push_back({"refusal without a sale",
                      refusal_page(http::problem(problems::no_sale), {.sale = {}}, reader_)});
    pages_.push_back(
        {"refusal of the server", refusal_page(http::problem(http::problems::internal_error),
                                               {.sale = priced_.name}, reader_)});
  }

  static constexpr WallTime now_{std::chrono::seconds{1'795'000'000}};
  const PageReader reader_;
  const SaleDefinition priced_;
  const BuyerId buyer_;
  const std::string number_;
  std::vector<Page> pages_;
};

}  // namespace sluice::server
