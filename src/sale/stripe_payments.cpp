#include <fmt/format.h>

#include <algorithm>

#include "base/sha256.hpp"
#include "base/text.hpp"
#include "base/url.hpp"
#include "sale/payment_terms.hpp"
#include "sale/payment_text.hpp"
#include "sale/signed_time.hpp"
#include "sluice/error.hpp"
#include "sluice/payment_provider.hpp"

namespace sluice {
namespace {

constexpr std::string_view stripe_field = "Stripe-Signature";
constexpr JsonValue::Limits stripe_limits{.bytes = 64 * 1024, .depth = 16};

/// The key is the secret as it is shown, with its prefix: it is not base64 here.
std::string stripe_signature(std::string_view secret, std::string_view time,
                             std::string_view body) {
  return hex_of(hmac_sha256(secret, fmt::format("{}.{}", time, body)));
}

/// Why "t=1492774577,v1=HEX,v1=HEX,v0=HEX" is not to be trusted; empty: it is.
std::string refusal_of_signature(const std::vector<std::string>& secrets, std::string_view field,
                                 std::string_view body, WallTime now) {
  std::string_view time;
  std::vector<std::string_view> signatures;
  while (!field.empty()) {
    const auto item = field.substr(0, field.find(','));
    field.remove_prefix(std::min(item.size() + 1, field.size()));
    if (item.starts_with("v1=")) signatures.push_back(item.substr(3));
    if (!item.starts_with("t=")) continue;  // of another scheme
    if (!time.empty()) return "Stripe-Signature has two times";
    time = item.substr(2);
  }
  const auto signed_at = sale::signed_time(time);
  if (!signed_at) return "Stripe-Signature has no time";
  bool is_right = false;
  for (const auto& secret : secrets) {
    const auto right = stripe_signature(secret, time, body);
    for (const auto& signature : signatures) is_right |= equal_in_constant_time(signature, right);
  }
  if (!is_right) return "Stripe-Signature is not of these bytes and our secret";
  return sale::refusal_of_time(*signed_at, now);
}

const JsonValue* member_at(const JsonValue& value, std::initializer_list<std::string_view> path) {
  const auto* at = &value;
  for (const auto name : path)
    if (at) at = at->find(name);
  return at;
}

std::string text_at(const JsonValue& value, std::initializer_list<std::string_view> path) {
  const auto* const found = member_at(value, path);
  return found && found->as_text() ? *found->as_text() : std::string{};
}

/// What is wrong with a payment intent; empty: it is read.
std::string read_intent(const JsonValue& intent, const JsonValue& metadata, Payment& payment) {
  std::string why;
  const auto read = [&](const JsonValue& of, std::string_view name, std::size_t longest,
                        std::string& into) {
    if (why.empty()) why = sale::read_text(of, name, longest, into);
  };
  read(intent, "id", 128, payment.event);
  read(metadata, "sale", 128, payment.sale);
  read(metadata, "order", 64, payment.order);
  read(intent, "currency", 3, payment.currency);
  if (!why.empty()) return why;
  for (auto& letter : payment.currency)  // "usd"
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
  if (!sale::is_currency(payment.currency)) return "'currency' is not three letters";
  return sale::read_amount(intent, "amount_received", payment.amount);
}

}  // namespace

StripePayments::StripePayments(std::string name, std::vector<std::string> secrets,
                               std::string api_key)
    : name_(std::move(name)), secrets_(std::move(secrets)), api_key_(std::move(api_key)) {
  constexpr std::size_t shortest = 14;
  constexpr std::size_t most = 2;
  sale::check_provider_name(name_);
  if (secrets_.empty() || secrets_.size() > most ||
      std::ranges::any_of(secrets_, [](const auto& secret) { return secret.size() < shortest; }))
    throw Error{Errc::bad_argument,
                fmt::format("Stripe's webhooks have one signing secret, whsec_..., of {} bytes or "
                            "more, or two while they change",
                            shortest)};
  const auto is_plain = [](unsigned char c) { return c > ' ' && c < 127; };
  if (!std::ranges::all_of(api_key_, is_plain))
    throw Error{Errc::bad_argument, "the API key of Stripe has bytes that no key has"};
}

PaymentNotice StripePayments::read(const ProviderRequest& webhook, WallTime now) const {
  using Trust = PaymentNotice::Trust;
  const auto field = webhook.field(stripe_field);
  if (!field) return {.trust = Trust::not_signed, .why = "Stripe-Signature, once"};
  if (auto why = refusal_of_signature(secrets_, *field, webhook.body, now); !why.empty())
    return {.trust = Trust::not_signed, .why = std::move(why)};
  const auto event = JsonValue::parse(webhook.body, stripe_limits);
  if (!event) return {.why = "the body is no JSON that is taken: " + event.error()};
  PaymentNotice notice{.trust = Trust::good};
  const auto* const intent = member_at(*event, {"data", "object"});
  const auto* const metadata = member_at(*event, {"data", "object", "metadata"});
  if (text_at(*event, {"type"}) != "payment_intent.succeeded") return notice;
  if (!metadata || (!metadata->find("sale") && !metadata->find("order"))) return notice;
  Payment payment{.provider = name_};
  if (auto why = read_intent(*intent, *metadata, payment); !why.empty())
    return {.why = std::move(why)};
  notice.payment = std::move(payment);
  return notice;
}

ProviderRequest StripePayments::refund(const Refund& refund, WallTime) const {
  if (api_key_.empty())
    throw Error{Errc::bad_argument,
                fmt::format("refunds of {} need an API key of Stripe, sk_... or rk_...", name_)};
  return {.fields = {{"Content-Type", "application/x-www-form-urlencoded"},
                     {"Authorization", "Bearer " + api_key_},
                     {"Idempotency-Key", fmt::format("{}.{}", name_, refund_key(refund))}},
          .body = fmt::format("payment_intent={}&amount={}&metadata[sale]={}&metadata[order]={}",
                              percent_encoded(refund.event), refund.amount,
                              percent_encoded(refund.sale), percent_encoded(refund.order))};
}

std::string StripePayments::refusal_of(int status, std::string_view body) const {
  auto why = PaymentProvider::refusal_of(status, body);
  const auto answer = JsonValue::parse(body, stripe_limits);
  if (!answer) return why;
  const auto code = text_at(*answer, {"error", "code"});
  if (code == "charge_already_refunded") return {};
  if (!code.empty())
    return fmt::format("{} {}{}", PaymentProvider::refusal_of(status, {}), code,
                       sale::words_of(text_at(*answer, {"error", "message"})));
  const auto state = text_at(*answer, {"status"});
  if (why.empty() && (state == "failed" || state == "canceled"))
    return fmt::format("says that the refund is {}", state);
  return why;
}

std::string StripePayments::sign(std::string_view body, WallTime at) const {
  const auto time =
      fmt::to_string(std::chrono::floor<std::chrono::seconds>(at).time_since_epoch().count());
  std::string field = "t=" + time;
  for (const auto& secret : secrets_) field += ",v1=" + stripe_signature(secret, time, body);
  return field;
}

}  // namespace sluice
