#include "sluice/webhook.hpp"

#include <fmt/format.h>

#include "base/base64.hpp"
#include "base/integer.hpp"
#include "base/sha256.hpp"
#include "sale/signed_time.hpp"
#include "sluice/error.hpp"

namespace sluice {
namespace {

constexpr std::string_view prefix = "whsec_";
constexpr std::string_view version = "v1,";
constexpr std::size_t longest_message_id = 128;
constexpr std::size_t most_signatures = 16;

std::string key_of(std::string_view secret) {
  constexpr std::size_t least = 24;
  constexpr std::size_t most = 64;
  if (secret.starts_with(prefix)) {
    const auto key = from_base64(secret.substr(prefix.size()));
    if (key && key->size() >= least && key->size() <= most) return *key;
  }
  throw Error{Errc::bad_argument,
              fmt::format("the secret of a webhook is '{}' and base64 of {} to {} random bytes",
                          prefix, least, most)};
}

std::string signature_of(std::string_view key, const WebhookHead& head, std::string_view body) {
  return base64(hmac_sha256(key, fmt::format("{}.{}.{}", head.id, head.timestamp, body)));
}

}  // namespace

WebhookKeys::WebhookKeys(const std::vector<std::string>& secrets) {
  constexpr std::size_t most = 2;
  if (secrets.empty() || secrets.size() > most)
    throw Error{Errc::bad_argument,
                fmt::format("a webhook has {} secrets, it must have 1, or {} while they change",
                            secrets.size(), most)};
  for (const auto& secret : secrets) keys_.push_back(key_of(secret));
}

WebhookHead WebhookKeys::sign(std::string id, WallTime at, std::string_view body) const {
  const auto second = std::chrono::floor<std::chrono::seconds>(at).time_since_epoch().count();
  WebhookHead head{.id = std::move(id), .timestamp = fmt::to_string(second), .signature = {}};
  for (const auto& key : keys_)
    head.signature += fmt::format("{}{}{}", head.signature.empty() ? "" : " ", version,
                                  signature_of(key, head, body));
  return head;
}

std::string WebhookKeys::refuse(const WebhookHead& head, std::string_view body,
                                WallTime now) const {
  if (head.id.empty() || head.id.size() > longest_message_id || head.id.contains('.'))
    return "webhook-id is missing, or none";
  const auto signed_at = sale::signed_time(head.timestamp);
  if (!signed_at) return "webhook-timestamp is missing, or none";

  bool is_right = false;
  std::string_view rest = head.signature;
  for (std::size_t looked = 0; looked < most_signatures && !rest.empty(); ++looked) {
    const auto one = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    if (!one.starts_with(version)) continue;  // of a version to come
    for (const auto& key : keys_)
      is_right |= equal_in_constant_time(one.substr(version.size()), signature_of(key, head, body));
  }
  if (!is_right) return "webhook-signature is missing, or not of these bytes and our secret";
  return sale::refusal_of_time(*signed_at, now);
}

std::optional<WallTime> sale::signed_time(std::string_view text) {
  constexpr std::int64_t last_second = 253'402'300'799;  // of the year 9999
  const auto second = parse_integer<std::int64_t>(text);
  if (!second || *second < 0 || *second > last_second || fmt::to_string(*second) != text)
    return std::nullopt;
  return WallTime{std::chrono::seconds{*second}};
}

std::string sale::refusal_of_time(WallTime signed_at, WallTime now) {
  if (signed_at < now - WebhookKeys::tolerance) return "it was signed more than five minutes ago";
  if (signed_at > now + WebhookKeys::tolerance)
    return "it was signed more than five minutes from now";
  return {};
}

}  // namespace sluice
