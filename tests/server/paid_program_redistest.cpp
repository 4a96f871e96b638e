// The program sluice-serve where orders are paid for: V45, and what it says of what it is to keep.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <mutex>
#include <set>
#include <thread>

#include "server/curl.hpp"
#include "server/receiver.hpp"
#include "server/served.hpp"
#include "server/shop_keys.hpp"
#include "sluice/order_store.hpp"
#include "sluice/payment_provider.hpp"
#include "support/comes_true.hpp"
#include "support/redis_server.hpp"

namespace sluice::server {
namespace {

using namespace std::chrono_literals;
using test::Served;

constexpr const char* provider_secret = "whsec_bWFueSBieXRlcyBvZiBhIHByb3ZpZGVyJ3Mgc2VjcmV0";
constexpr const char* message_secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A process that takes payments, and has somewhere to send things.
class PaidProgram : public testing::Test {
 protected:
  PaidProgram() {
    write_secret("acme", provider_secret);
    write_secret("messages", message_secret);
    write_secret("shop_keys", key_.line);
    std::ofstream{folder_ / "sales.json"}
        << R"([{"name":"tea","stock":1000,"type":"TEA","price":500,"currency":"CNY"}])";
  }
  void write_secret(const char* name, std::string_view text) const {
    std::ofstream{folder_ / name} << text << '\n';
    ::chmod((folder_ / name).c_str(), 0600);
  }
  std::vector<std::string> paid_options() const {
    return {"--store", redis_.url(), "--orders",   orders_url(),
            "--sales", "sales.json", "--payments", "acme=acme"};
  }
  std::string orders_url() const { return "sqlite:" + (folder_ / "orders.db").string(); }

  static test::Answer tell(std::uint16_t port, const std::string& event) {
    const Payment payment{.provider = "acme",
                          .event = event,
                          .sale = "tea",
                          .order = "of " + event,
                          .amount = 500,
                          .currency = "CNY"};
    const auto body = HmacPayments::body_of(payment);
    const auto head = WebhookKeys{{provider_secret}}.sign(event, system_clock().wall(), body);
    return test::ask(port, "POST", "/v1/payments/acme",
                     {{"webhook-id", head.id},
                      {"webhook-timestamp", head.timestamp},
                      {"webhook-signature", head.signature}},
                     body);
  }

  test::TempDir folder_;
  test::RedisServer redis_;
  const MadeShopKey key_ = make_shop_key("till", {Scope::orders});
};

// TERM, and in other rounds KILL, comes while a provider tells of payments: what it was answered
// 2xx to is in the database.
TEST_F(PaidProgram, V45_WhatAProviderWasAnsweredIsKept) {
  std::vector<std::string> told;
  for (int round = 0; round < 2; ++round) {
    Served served{folder_, round, paid_options()};
    ASSERT_TRUE(served.begins()) << served.output();
    std::mutex mutex;
    std::size_t before = told.size();
    std::vector<std::jthread> providers;
    for (int thread = 0; thread < 3; ++thread)
      providers.emplace_back([&, thread] {
        for (int i = 0; i < 1000; ++i) try {
            const auto event = fmt::format("evt_{}_{}_{}", round, thread, i);
            const auto answer = tell(served.port(), event);
            if (answer.status == 0) return;  // it has gone
            const std::lock_guard lock{mutex};
            if (answer.status == 204) told.push_back(event);
          } catch (const std::system_error&) {
            return;
          }
      });
    EXPECT_TRUE(test::comes_true([&] {
      const std::lock_guard lock{mutex};
      return told.size() > before + 20;
    }));
    if (round == 0) {
      served.process().terminate();
      EXPECT_EQ(served.process().wait_for(60s), 0) << served.output();
    } else {
      served.process().kill();
    }
  }
  const auto orders = open_order_store(orders_url());
  std::set<std::string> kept;
  for (const auto& one : orders->payments().list("tea", PaymentState::waiting, 100'000))
    kept.insert(one.payment.event);
  for (const auto& event : told) EXPECT_TRUE(kept.contains(event)) << event;
}

TEST_F(PaidProgram, NothingOfASecretIsInItsLog) {
  test::Receiver shop{[](const auto&) { return 500; }};
  auto options = paid_options();
  const auto url = shop.url("/in?token=TOKEN-OF-THE-SHOP");
  options.insert(options.end(),
                 {"--webhooks", url, "--webhook-secrets", "messages", "--refunds", "acme=" + url,
                  "--shop-keys", "shop_keys", "--allow-private-targets"});
  Served served{folder_, 0, options};
  ASSERT_TRUE(served.begins()) << served.output();
  const auto bought = test::ask(served.port(), "POST", "/v1/sales/tea/orders",
                                {{"Sluice-Buyer", "ann"}, {"Idempotency-Key", "k"}});
  const auto path = "/v1/sales/tea/orders/" + bought.text("id");
  const auto key = "Bearer " + key_.key;
  EXPECT_TRUE(test::comes_true([&] {
    return test::ask(served.port(), "GET", path, {{"Authorization", key}}).is_recorded();
  }));
  test::ask(served.port(), "POST", path + "/cancel", {{"Authorization", key}});
  tell(served.port(), "evt_1");
  EXPECT_TRUE(
      test::comes_true([&] { return served.output().find("answered 500") != std::string::npos; }));
  test::ask(served.port(), "GET", path, {{"Authorization", key + "x"}});
  served.process().terminate();
  EXPECT_EQ(served.process().wait(), 0);
  for (const auto& secret :
       {std::string{provider_secret}.substr(6), std::string{message_secret}.substr(6),
        key_.key.substr(8), key_.line.substr(12), std::string{"TOKEN-OF-THE-SHOP"}})
    EXPECT_EQ(served.output().find(secret), std::string::npos) << served.output();
}

TEST_F(PaidProgram, ATargetThatCannotBeMeantIsSaid) {
  const auto with = [&](std::vector<std::string> more) {
    auto options = paid_options();
    options.insert(options.end(), more.begin(), more.end());
    return options;
  };
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes{
      {with({"--webhooks", "https://shop.example/in"}), "--webhook-secrets"},
      {with({"--webhooks", "shop.example", "--webhook-secrets", "messages"}), "it is no URL like"},
      {with({"--webhooks", "https://shop.example", "--webhook-secrets", "whsec_PASS"}), "a file"},
      {with({"--payments", "whsec_PASS"}), "a file"},
      {with({"--payments", "other=whsec_PASS"}), "a file"},
      {with({"--payments", "acme=acme"}), "--payments acme is given twice"},
      {with({"--refunds", "acme=https://a.example", "--refunds", "acme=https://b.example"}),
       "--refunds acme is given twice"},
      {with({"--webhooks", "https://shop.example", "--webhook-secrets", "shop_keys"}), "whsec_"},
      {with({"--webhooks", "ftp://shop.example", "--webhook-secrets", "messages"}), "https"},
      {with({"--webhooks", "https://ann:PASS@shop.example", "--webhook-secrets", "messages"}),
       "user or password"},
      {with({"--webhooks", "http://127.0.0.1/in", "--webhook-secrets", "messages"}),
       "--allow-private-targets"},
      {with({"--webhooks", "http://[::ffff:10.0.0.1]/in", "--webhook-secrets", "messages"}),
       "--allow-private-targets"},
      {with({"--refunds", "acme"}), "NAME=URL"},
      {with({"--refunds", "other=https://x.example"}), "--payments other=FILE"}};
  int number = 0;
  for (const auto& [options, says] : mistakes) {
    Served served{folder_, number++, options};
    EXPECT_FALSE(served.begins()) << says;
    EXPECT_EQ(served.process().wait(), 64) << served.output();
    EXPECT_NE(served.output().find(says), std::string::npos) << served.output();
    EXPECT_EQ(served.output().find("PASS"), std::string::npos) << served.output();
  }
}

}  // namespace
}  // namespace sluice::server
