// Payments that a person settles, and messages that are sent again.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/integer.hpp"
#include "base/text.hpp"
#include "cli/command_line/exit_code.hpp"
#include "cli/output.hpp"
#include "cli/sale_args.hpp"
#include "sluice/order_messages.hpp"

namespace sluice::cli {
namespace {

PaymentState state_named(const std::string& word) {
  using enum PaymentState;
  for (const auto state :
       {waiting, asking, applied, returned, flagged, refunding, refunded, settled})
    if (to_string(state) == word) return state;
  throw Error{Errc::bad_argument,
              "a payment is waiting, asking, applied, returned, flagged, refunding, refunded or "
              "settled"};
}

Json json_of(const KeptPayment& kept) {
  return Json::object({{"provider", kept.payment.provider},
                       {"event", kept.payment.event},
                       {"sale", kept.payment.sale},
                       {"order", kept.payment.order},
                       {"amount", kept.payment.amount},
                       {"currency", kept.payment.currency},
                       {"state", to_string(kept.state)},
                       {"note", kept.note},
                       {"failure", kept.failure}});
}

std::string text_of(const KeptPayment& kept) {
  const auto& payment = kept.payment;
  return fmt::format("{} '{}': {} {} for order '{}' of sale '{}': {}{}{}{}{}", payment.provider,
                     payment.event, payment.amount, payment.currency, payment.order, payment.sale,
                     to_string(kept.state), kept.note.empty() ? "" : "; ", kept.note,
                     kept.failure.empty() ? "" : "; ", kept.failure);
}

}  // namespace

int list_payments(const Globals& globals, const SaleArgs& args) {
  constexpr std::size_t most = 500;
  const auto state = state_named(args.state);
  const auto store = open_store_of_sale(globals);
  const auto orders = open_orders(args, *store, true);
  const auto& sale = args.definition.name;
  std::vector<KeptPayment> all;
  for (const auto& rows : sale.empty() ? std::vector{sale} : rows_of(*orders, sale))
    for (std::optional<PaymentPlace> after;;) {
      auto page = orders->payments().list(rows, state, most, after);
      if (!page.empty()) after = {page.back().payment.provider, page.back().payment.event};
      const bool is_last = page.size() < most;
      std::ranges::move(page, std::back_inserter(all));
      if (is_last) break;
    }
  auto json = Json::array();
  std::string text;
  for (const auto& kept : all) {
    json.add(json_of(kept));
    text += text_of(kept) + "\n";
  }
  print(globals.json, Json::object({{"ok", true}, {"payments", json}}),
        fmt::format("{}{} payment(s) are {}", text, all.size(), args.state));
  return exit_ok;
}

int settle_payment(const Globals& globals, const SaleArgs& args) {
  const auto store = open_store_of_sale(globals);
  const auto orders = open_orders(args, *store, true);
  const auto to = args.refunds ? PaymentState::refunding : PaymentState::settled;
  const PaymentPlace place{args.provider, args.event};
  const auto result = args.refunds
                          ? orders->payments().settle_payment(place, to, args.by, args.reason)
                          : settle_outside(*store, *orders, place, args.by, args.reason);
  const bool is_done = result.payment && (result.now || result.payment->state == to);
  print(globals.json,
        Json::object({{"ok", is_done},
                      {"now", result.now},
                      {"payment", result.payment ? json_of(*result.payment) : Json{}}}),
        !result.payment ? "there is no such payment"
        : is_done       ? text_of(*result.payment)
                        : "it needs nobody: " + text_of(*result.payment));
  return is_done ? exit_ok : exit_refused;
}

namespace {

/// "7598123:2", as lists have it.
MessagePlace place_of(const std::string& word) {
  const auto colon = std::min(word.find(':'), word.size() - 1);
  const auto order = parse_integer<std::int64_t>(std::string_view{word}.substr(0, colon));
  const auto seq = parse_integer<std::int64_t>(std::string_view{word}.substr(colon + 1));
  if (order && seq) return {*order, *seq};
  throw Error{Errc::bad_argument, "a message is named by its order and its version: ID:VERSION"};
}

}  // namespace

int replay_messages(const Globals& globals, const SaleArgs& args) {
  const auto store = open_store_of_sale(globals);
  const auto orders = open_orders(args, *store, true);
  const bool is_one = !args.message.empty();
  std::int64_t again = 0;
  const auto all = rows_of(*orders, args.definition.name);
  for (const auto& rows : all)
    again += is_one ? orders->payments().resend_message(rows, place_of(args.message))
                    : orders->payments().replay_messages(rows);
  for (const auto& rows : again > 0 ? all : std::vector<std::string>{})
    again += orders->payments().resume_messages(rows);  // where the receiver had stopped them
  const bool is_done = !is_one || again > 0;
  print(globals.json, Json::object({{"ok", is_done}, {"replayed", again}}),
        !is_done ? "there is no such message that was not delivered"
                 : fmt::format("{} message(s) of sale '{}' that were not delivered are sent again",
                               again, args.definition.name));
  return is_done ? exit_ok : exit_refused;
}

std::vector<Option> payments_options(SaleArgs& args, const Option& orders) {
  return {{"--state", "STATE",
           "flagged, waiting (for an order that is not there), asking, applied, returned, "
           "refunding, refunded or settled",
           into_word(args.state)},
          orders};
}

std::vector<Option> settle_options(SaleArgs& args, const Option& orders) {
  return {{"--provider", "NAME", "Of the payment", into_word(args.provider), true},
          {"--event", "ID", "Of the payment", into_word(args.event), true},
          {"--by", "NAME", "Who settles it; kept with it", into_word(args.by), true},
          {"--reason", "TEXT", "Why; kept with it", into_word(args.reason), true},
          {"--refund", "",
           "Its money goes back, by the provider's queue; else it was handled "
           "outside",
           into(args.refunds)},
          orders};
}

std::vector<Option> replay_options(SaleArgs& args, const Option& orders) {
  return {{"--message", "ID:VERSION",
           "This one alone, of that order; also one that waits for its next attempt",
           into_word(args.message)},
          orders};
}

}  // namespace sluice::cli
