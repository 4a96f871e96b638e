/// Messages from program to program, signed as Standard Webhooks 1.0 has it.
///
/// Guarantee: a message that verify() accepts was signed by who knows one of the secrets, within
///   the last five minutes, and in these very bytes. While secrets change, a message carries a
///   signature of each, and either of them is accepted.
/// Not guaranteed: that it comes once. Keep the ids (an inbox), or make it harmless to do it twice.
/// Threads: any; nothing changes after the constructor.
///
///     const WebhookKeys keys{{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}};
///     const auto head = keys.sign("msg_1", clock.wall(), body);
///     if (const auto why = keys.refuse(head, body, clock.wall()); !why.empty()) refuse(why);
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/clock.hpp"

namespace sluice {

/// The three fields of a request's head.
struct WebhookHead {
  std::string id;         ///< webhook-id: the same when the message is sent again
  std::string timestamp;  ///< webhook-timestamp: seconds since 1970
  std::string signature;  ///< webhook-signature: "v1,BASE64", one or several with blanks between
};

class WebhookKeys {
 public:
  /// How far the clocks of two programs may differ, and a message may be late.
  static constexpr std::chrono::minutes tolerance{5};

  /// Secrets as "whsec_" and base64 of 24 to 64 bytes; the first is the newest. One or two: more
  /// are none that rotates. Throws Error{bad_argument}; it does not show the secret.
  explicit WebhookKeys(const std::vector<std::string>& secrets);

  /// With a signature of each secret. REQUIRES: an id without '.', as it parts what is signed.
  WebhookHead sign(std::string id, WallTime at, std::string_view body) const;

  /// Why the message is not to be trusted; empty: it is. `body`: the bytes as they came, before
  /// anything reads them. Looks at the time only where the signature is right.
  std::string refuse(const WebhookHead& head, std::string_view body, WallTime now) const;

 private:
  std::vector<std::string> keys_;
};

}  // namespace sluice
