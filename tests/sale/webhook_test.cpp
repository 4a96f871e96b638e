#include "sluice/webhook.hpp"

#include <gtest/gtest.h>

#include "sluice/error.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

const std::string secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const std::string newer = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";
constexpr WallTime at{1'614'265'330s};
const std::string body = R"({"test": 2432232314})";

// The example of the Standard Webhooks libraries.
TEST(Webhook, IsSignedAsTheStandardHasIt) {
  const auto head = WebhookKeys{{secret}}.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", at, body);
  EXPECT_EQ(head.timestamp, "1614265330");
  EXPECT_EQ(head.signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
  EXPECT_EQ(WebhookKeys{{secret}}.refuse(head, body, at), "");
}

TEST(Webhook, V11_ForgedStaleOrReplayedOnesAreRefused) {
  const WebhookKeys keys{{secret}};
  const auto head = keys.sign("msg_1", at, body);
  const auto with = [&](auto change) {
    auto other = head;
    change(other);
    return keys.refuse(other, body, at);
  };
  EXPECT_NE(keys.refuse(head, body + " ", at), "");
  EXPECT_NE(keys.refuse(head, "", at), "");
  EXPECT_NE(with([](auto& h) { h.id = "msg_2"; }), "");
  EXPECT_NE(with([](auto& h) { h.id = "msg_1.1614265330"; }), "");
  EXPECT_NE(with([](auto& h) { h.id.clear(); }), "");
  EXPECT_NE(with([](auto& h) { h.timestamp = "1614265331"; }), "");
  for (const auto* const text :
       {"", "01614265330", "+1614265330", "-1", "1e9", "9223372036854775807"})
    EXPECT_NE(with([&](auto& h) { h.timestamp = text; }), "") << text;
  EXPECT_NE(with([](auto& h) { h.signature.clear(); }), "");
  EXPECT_NE(with([](auto& h) { h.signature = h.signature.substr(3); }), "");
  EXPECT_NE(with([](auto& h) { h.signature.replace(0, 2, "v2"); }), "");
  EXPECT_NE(with([](auto& h) { h.signature.pop_back(); }), "");
  EXPECT_NE(WebhookKeys{{newer}}.refuse(head, body, at), "");
  EXPECT_EQ(keys.refuse(head, body, at + 5min), "");
  EXPECT_NE(keys.refuse(head, body, at + 5min + 1s), "");
  EXPECT_EQ(keys.refuse(head, body, at - 5min), "");
  EXPECT_NE(keys.refuse(head, body, at - 5min - 1s), "");
}

TEST(Webhook, WhileSecretsChangeBothAreGood) {
  const WebhookKeys before{{secret}};
  const WebhookKeys meanwhile{{newer, secret}};
  const WebhookKeys after{{newer}};
  EXPECT_EQ(before.refuse(meanwhile.sign("m", at, body), body, at), "");
  EXPECT_EQ(after.refuse(meanwhile.sign("m", at, body), body, at), "");
  EXPECT_EQ(meanwhile.refuse(before.sign("m", at, body), body, at), "");
  EXPECT_NE(after.refuse(before.sign("m", at, body), body, at), "");
  auto many = before.sign("m", at, body);
  many.signature = "v1a,AAAA v1,AAAA " + many.signature;
  EXPECT_EQ(before.refuse(many, body, at), "") << "among others";
}

TEST(Webhook, ASecretThatIsNoneIsRefusedAndNotShown) {
  const std::vector<std::vector<std::string>> wrong{{},
                                                    {secret, newer, secret},
                                                    {"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"},
                                                    {"whsec_c2hvcnQ="},
                                                    {"whsec_not base64"}};
  for (const auto& secrets : wrong) {
    try {
      const WebhookKeys keys{secrets};
      ADD_FAILURE() << secrets.size();
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::bad_argument);
      EXPECT_EQ(error.message().find("c2hvcnQ"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace sluice
