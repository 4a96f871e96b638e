#include "sluice/payment_provider.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"
#include "base/json_value.hpp"
#include "sale/payment_terms.hpp"
#include "sluice/error.hpp"

namespace sluice {
namespace {

constexpr std::string_view succeeded = "payment.succeeded";

struct TextMember {
  std::string_view name;
  std::string Payment::*field;
  std::size_t longest;
};

constexpr TextMember text_members[] = {
    {"id", &Payment::event, 128},
    {"sale", &Payment::sale, 128},
    {"order", &Payment::order, 64},
    {"currency", &Payment::currency, 3},
};

/// What is wrong with it; empty: it is read.
std::string read_payment(const JsonValue& body, Payment& payment) {
  for (const auto& [name, field, longest] : text_members) {
    const auto* const member = body.find(name);
    const auto* const text = member ? member->as_text() : nullptr;
    if (!text || text->empty() || text->size() > longest)
      return fmt::format("'{}' is not a text of 1 to {} bytes", name, longest);
    payment.*field = *text;
  }
  if (!sale::is_currency(payment.currency)) return "'currency' is not three capital letters";
  const auto* const amount = body.find("amount");
  const auto* const units = amount ? amount->as_integer() : nullptr;
  if (!units || *units < 1) return "'amount' is not an integer above 0";
  payment.amount = *units;
  return {};
}

}  // namespace

HmacPayments::HmacPayments(std::string name, WebhookKeys keys)
    : name_(std::move(name)), keys_(std::move(keys)) {
  if (!sale::is_provider_name(name_))
    throw Error{Errc::bad_argument,
                fmt::format("a payment provider's name has 1 to 32 letters, digits, '-' or '_'; "
                            "'{}' is none",
                            name_)};
}

PaymentNotice HmacPayments::read(const WebhookHead& head, std::string_view body,
                                 WallTime now) const {
  using Trust = PaymentNotice::Trust;
  if (auto why = keys_.refuse(head, body, now); !why.empty())
    return {.trust = Trust::not_signed, .why = std::move(why)};
  const auto value = JsonValue::parse(body, {.bytes = 16 * 1024, .depth = 8});
  if (!value) return {.why = "the body is no JSON that is taken: " + value.error()};
  const auto* const type = value->find("type");
  if (!type || !type->as_text()) return {.why = "'type' is not a text"};
  PaymentNotice notice{.trust = Trust::good};
  if (*type->as_text() != succeeded) return notice;
  Payment payment{.provider = name_};
  if (auto why = read_payment(*value, payment); !why.empty()) return {.why = std::move(why)};
  notice.payment = std::move(payment);
  return notice;
}

std::string HmacPayments::body_of(const Payment& payment) {
  return Json::object({{"id", payment.event},
                       {"type", succeeded},
                       {"sale", payment.sale},
                       {"order", payment.order},
                       {"amount", payment.amount},
                       {"currency", payment.currency}})
      .text();
}

}  // namespace sluice
