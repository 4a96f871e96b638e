#include "sluice/payment_provider.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/integer.hpp"
#include "base/json.hpp"
#include "base/json_value.hpp"
#include "base/sha1.hpp"
#include "base/text.hpp"
#include "sale/payment_terms.hpp"
#include "sale/payment_text.hpp"
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
  for (const auto& [name, field, longest] : text_members)
    if (auto why = sale::read_text(body, name, longest, payment.*field); !why.empty()) return why;
  if (!sale::is_currency(payment.currency)) return "'currency' is not three capital letters";
  return sale::read_amount(body, "amount", payment.amount);
}

}  // namespace

std::string sale::read_text(const JsonValue& object, std::string_view name, std::size_t longest,
                            std::string& into) {
  const auto* const member = object.find(name);
  const auto* const text = member ? member->as_text() : nullptr;
  if (!text || text->empty() || text->size() > longest)
    return fmt::format("'{}' is not a text of 1 to {} bytes", name, longest);
  into = *text;
  return {};
}

std::string sale::read_amount(const JsonValue& object, std::string_view name, std::int64_t& into) {
  const auto* const amount = object.find(name);
  const auto* const units = amount ? amount->as_integer() : nullptr;
  if (!units || *units < 1) return fmt::format("'{}' is not an integer above 0", name);
  into = *units;
  return {};
}

void sale::check_provider_name(const std::string& name) {
  if (!is_provider_name(name))
    throw Error{Errc::bad_argument,
                fmt::format("a payment provider's name has 1 to 32 letters, digits, '-' or '_'; "
                            "'{}' is none",
                            name)};
}

namespace {

bool is_same_letter(char one, char other) noexcept {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return lower(one) == lower(other);
}

}  // namespace

std::optional<std::string_view> ProviderRequest::field(std::string_view name) const noexcept {
  std::optional<std::string_view> found;
  for (const auto& [other, value] : fields) {
    if (!std::ranges::equal(other, name, is_same_letter)) continue;
    if (found) return std::nullopt;
    found = value;
  }
  return found;
}

/// By a digest: an event may have any bytes.
std::string refund_key(const Refund& refund) {
  if (refund.id != 0 && refund.part.empty()) return fmt::format("{}.{}", refund.id, refund.seq);
  auto key = "payment." + sha1_hex(refund.event);
  if (refund.id != 0 && refund.part != sale::whole_payment) key += "." + refund.part;
  return key;
}

std::string PaymentProvider::refusal_of(int status, std::string_view body) const {
  if (status / 100 == 2) return {};
  return fmt::format("answered {}{}{}", status,
                     status / 100 == 3 ? "; redirects are not followed" : "", sale::words_of(body));
}

std::string sale::words_of(std::string_view body) {
  constexpr std::size_t longest = 200;
  std::string words;
  for (auto left = body; !left.empty() && words.size() < longest;) {
    const auto size = utf8_length(left);
    const bool is_blank = size == 1 && static_cast<unsigned char>(left.front()) <= ' ';
    if (is_blank && !words.empty() && words.back() != ' ') words += ' ';
    if (!is_blank && left.front() != '\x7f') words += left.substr(0, size);
    left.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return words.empty() ? words : ": " + words;
}

HmacPayments::HmacPayments(std::string name, WebhookKeys keys)
    : name_(std::move(name)), keys_(std::move(keys)) {
  sale::check_provider_name(name_);
}

PaymentNotice HmacPayments::read(const ProviderRequest& webhook, WallTime now) const {
  const auto id = webhook.field("webhook-id");
  const auto timestamp = webhook.field("webhook-timestamp");
  const auto signature = webhook.field("webhook-signature");
  if (!id || !timestamp || !signature)
    return {.trust = PaymentNotice::Trust::not_signed,
            .why = "webhook-id, webhook-timestamp and webhook-signature, once each"};
  return read(WebhookHead{.id = std::string{*id},
                          .timestamp = std::string{*timestamp},
                          .signature = std::string{*signature}},
              webhook.body, now);
}

ProviderRequest HmacPayments::refund(const Refund& refund, WallTime now) const {
  const auto key = refund_key(refund);
  auto object = Json::object({{"id", key},
                              {"sale", refund.sale},
                              {"order", refund.order},
                              {"payment", refund.event},
                              {"amount", refund.amount},
                              {"currency", refund.currency}});
  if (refund.id == 0 || !refund.part.empty()) {
    const auto before = parse_integer<std::int64_t>(refund.part.substr(0, refund.part.find('-')));
    object.add("total", before.value_or(0) + refund.amount);
  }
  auto body = object.text();
  auto id = key;
  std::ranges::replace(id, '.', '-');
  auto head = sign(body, id, now);
  return {.fields = {{"Content-Type", "application/json"},
                     {"webhook-id", std::move(head.id)},
                     {"webhook-timestamp", std::move(head.timestamp)},
                     {"webhook-signature", std::move(head.signature)},
                     {"Idempotency-Key", key}},
          .body = std::move(body)};
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
