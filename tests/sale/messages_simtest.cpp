// What orders leave behind reaches those who want it: messages in order, refunds once.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "base/json_value.hpp"
#include "base/sha1.hpp"
#include "sale/archive.hpp"
#include "sale/life.hpp"
#include "sale/payment_simulator.hpp"
#include "sluice/order_messages.hpp"
#include "support/temp_dir.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::Life;

const WebhookKeys message_keys{{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}};

class SaleMessages : public testing::Test {
 protected:
  SaleMessages() { life_.work(); }

  OrderMessages sender() {
    return {life_.orders(), "s", "https://shop.example/s", message_keys,
            [this](const SignedMessage& message) {
              got_.push_back(message);
              return answer_;
            }};
  }
  SaleOrder paid(const std::string& buyer) {
    const auto order = *life_.buy(buyer).order;
    life_.work();
    life_.pay(order, "of " + buyer);
    return order;
  }

  Life life_;
  std::vector<SignedMessage> got_;
  Delivery answer_ = Delivery::done;
};

TEST_F(SaleMessages, AMessageIsASignedCloudEvent) {
  const auto order = paid("ann");
  life_.pass(10s);
  EXPECT_EQ(sender().send_due().done, 1u);
  EXPECT_TRUE(sender().send_due().nothing());
  ASSERT_EQ(got_.size(), 1u);
  EXPECT_EQ(message_keys.refuse(got_[0].head, got_[0].body, life_.now()), "");
  const auto event = JsonValue::parse(got_[0].body, {});
  ASSERT_TRUE(event) << event.error();
  const auto text = [&](const char* name) { return *event->find(name)->as_text(); };
  EXPECT_EQ(text("specversion"), "1.0");
  EXPECT_EQ(text("id"), got_[0].head.id);
  EXPECT_EQ(text("type"), "order.paid");
  EXPECT_EQ(text("source"), "https://shop.example/s");
  EXPECT_EQ(text("subject"), std::to_string(order.id));
  EXPECT_EQ(text("time"), "2026-01-02T15:59:57Z");
  const auto* const data = event->find("data");
  EXPECT_EQ(*data->find("order")->as_text(), order.number);
  EXPECT_EQ(*data->find("amount")->as_integer(), 1499);
  EXPECT_EQ(*data->find("version")->as_integer(), 1);
}

TEST_F(SaleMessages, V48_WhileTheReceiverIsDownAllWaitInOrderUntilHeWantsNoMore) {
  const auto order = paid("ann");
  life_.sale().cancel_units(life_.orders(), {"ann"}, {"r"}, 0, "k");
  answer_ = Delivery::failed;
  for (int minute = 0; minute < 60; ++minute) {
    sender().send_due();
    life_.pass(1min);
  }
  EXPECT_EQ(got_.size(), 4u) << "at once, after 5 s, 5 min and 30 min, and the first alone";
  for (const auto& message : got_) EXPECT_EQ(message.head.id, got_[0].head.id);
  got_.clear();
  answer_ = Delivery::done;
  life_.pass(3h);
  sender().send_due();
  ASSERT_EQ(got_.size(), 2u);
  EXPECT_TRUE(got_[0].head.id.starts_with(std::to_string(order.id) + "-1-")) << got_[0].head.id;
  EXPECT_TRUE(got_[1].head.id.starts_with(std::to_string(order.id) + "-2-")) << got_[1].head.id;

  paid("bob");
  answer_ = Delivery::gone;
  EXPECT_TRUE(sender().send_due().gone);
  paid("cid");
  got_.clear();
  life_.pass(48h);
  EXPECT_TRUE(sender().send_due().nothing()) << "off";
  EXPECT_TRUE(got_.empty());
  answer_ = Delivery::done;
  EXPECT_EQ(sender().replay(), 2);
  sender().send_due();
  EXPECT_EQ(got_.size(), 2u) << "nothing is lost";
}

TEST_F(SaleMessages, SV12_TheFileOfAnArchiveHasTheMoneyOfEachOrder) {
  paid("ann");
  life_.sale().cancel_units(life_.orders(), {"ann"}, {"r"}, 0, "k");
  for (int i = 0; i < 2; ++i)
    send_refunds(life_.store(), life_.orders(), "s", [](const Refund&) { return ""; });
  paid("bob");
  const auto cid = paid("cid");
  life_.sale().cancel_units(life_.orders(), {"cid"}, {"r"}, 0, "k");
  const auto refund = life_.payments().refunds_of("s", cid.id).at(0);
  EXPECT_TRUE(settle_outside(life_.store(), life_.orders(), refund, "zoe", "cash"));
  const test::TempDir folder;
  const auto file = (folder / "orders.csv").string();
  sale::export_orders(life_.orders(), "s", file);
  std::ifstream in{file};
  std::vector<std::string> ends;
  for (std::string line; std::getline(in, line);) ends.push_back(line.substr(line.find(",r")));
  EXPECT_EQ(ends, (std::vector<std::string>{
                      ",request,state,reason,returned,price,currency,paid,refunded,settled",
                      ",r,refunded,,0,1499,CNY,1499,1499,0", ",r,paid,,0,1499,CNY,1499,0,0",
                      ",r,refunded,,0,1499,CNY,1499,0,1499"}));
}

TEST_F(SaleMessages, NothingIsSentBeforeTheReceiverWantsIt) {
  paid("ann");
  answer_ = {Delivery::failed, 10min};
  sender().send_due();
  life_.pass(10min - 1s);
  EXPECT_TRUE(sender().send_due().nothing());
  life_.pass(1s);
  answer_ = {Delivery::failed, 1s};
  EXPECT_EQ(sender().send_due().failed, 1u);
  life_.pass(5min - 1s);
  EXPECT_TRUE(sender().send_due().nothing()) << "our own pause is longer";
  life_.pass(1min);
  answer_ = {Delivery::failed, std::chrono::seconds::max()};
  EXPECT_EQ(sender().send_due().failed, 1u);
  life_.pass(24h);
  EXPECT_EQ(sender().send_due().failed, 1u) << "a day is enough";
}

TEST_F(SaleMessages, AfterAWeekAMessageIsDeadAndMayBeReplayed) {
  paid("ann");
  answer_ = Delivery::failed;
  std::size_t dead = 0;
  for (int hour = 0; hour < 7 * 24 && dead == 0; ++hour) {
    dead += sender().send_due().dead;
    life_.pass(1h);
  }
  EXPECT_EQ(dead, 1u);
  EXPECT_EQ(got_.size(), 8u);
  life_.pass(7 * 24h);
  EXPECT_TRUE(sender().send_due().nothing());
  answer_ = Delivery::done;
  EXPECT_EQ(sender().replay(), 1);
  EXPECT_EQ(sender().send_due().done, 1u);
}

TEST_F(SaleMessages, V18_WhoseLeaseIsOverWritesNothing) {
  paid("ann");
  auto& outbox = life_.payments();
  const auto slow = outbox.take_messages("s", 10, 60s);
  ASSERT_EQ(slow.size(), 1u);
  EXPECT_TRUE(outbox.take_messages("s", 10, 60s).empty()) << "it is another's";
  life_.pass(60s);
  const auto quick = outbox.take_messages("s", 10, 60s);
  ASSERT_EQ(quick.size(), 1u);
  EXPECT_FALSE(outbox.message_failed("s", slow[0], std::nullopt));
  EXPECT_FALSE(outbox.message_sent("s", slow[0]));
  EXPECT_TRUE(outbox.message_sent("s", quick[0]));
}

// A reader who stops there passes over no order, also where a batch comes in before an earlier one.
TEST_F(SaleMessages, RecordedUpToIsBelowTheFirstOrderOnItsWay) {
  const auto recorded = [&] { return life_.sale().recorded_up_to().get(); };
  EXPECT_EQ(recorded(), -1);
  const auto first = *life_.buy("ann").order;
  const auto second = *life_.buy("bob").order;
  EXPECT_EQ(recorded(), first.id - 1);
  life_.orders().add_sale("s", 9);
  life_.orders().insert("s", std::span{&second, 1});
  EXPECT_EQ(recorded(), first.id - 1) << "the second is there, the first is not";
  life_.work();
  EXPECT_EQ(recorded(), second.id);
  EXPECT_GT(life_.buy("cid").order->id, second.id);
  EXPECT_GE(recorded(), second.id);
}

TEST_F(SaleMessages, V05_WhatIsNotPaidReopensASaleThatWasSoldOut) {
  life_.buy("ann", "r", 9);
  life_.work();
  EXPECT_EQ(life_.left(), 0);
  life_.pass(32min);
  life_.work();
  EXPECT_EQ(life_.left(), 9);
  EXPECT_EQ(sender().send_due().done, 2u);
  // Of this sale alone: its receiver removes repeats by the id, and gets messages of others, too.
  const auto id = fmt::format("sale-{}-1-", sha1_hex("s").substr(0, 16));
  const auto reopened = std::ranges::find_if(
      got_, [&](const SignedMessage& message) { return message.head.id.starts_with(id); });
  ASSERT_NE(reopened, got_.end());
  const auto event = JsonValue::parse(reopened->body, {});
  EXPECT_EQ(*event->find("type")->as_text(), "sale.reopened");
  EXPECT_EQ(*event->find("subject")->as_text(), "s");
  EXPECT_EQ(*event->find("data")->find("left")->as_integer(), 9);
  life_.expect_sound();
}

TEST_F(SaleMessages, V15_ARefundThatFailsIsSentAgainAndTakenOnce) {
  test::PaymentSimulator provider;
  const auto order = paid("ann");
  life_.sale().cancel_units(life_.orders(), {"ann"}, {"r"}, 0, "k");
  provider.refuses = 2;
  provider.loses_answers = 2;
  const auto send = [&](const Refund& refund) { return provider.refund(refund); };
  std::size_t taken = 0;
  for (int hour = 0; hour < 48; ++hour) {
    taken += send_refunds(life_.store(), life_.orders(), "s", send).done;
    life_.pass(1h);
  }
  EXPECT_EQ(taken, 1u);
  EXPECT_EQ(provider.asked, 5);
  EXPECT_EQ(provider.given_back(), 1499);
  EXPECT_EQ(life_.state(order), OrderState::refunded);
  life_.expect_sound();
}

TEST_F(SaleMessages, WhatThrowsIsSentAgain) {
  paid("ann");
  OrderMessages broken{life_.orders(), "s", "x", message_keys,
                       [](const SignedMessage&) -> Delivery { throw std::runtime_error{"no"}; }};
  EXPECT_EQ(broken.send_due().failed, 1u);
  life_.sale().cancel_units(life_.orders(), {"ann"}, {"r"}, 0, "k");
  const auto order = *life_.orders().find_request("s", {"ann"}, {"r"});
  send_refunds(life_.store(), life_.orders(), "s",
               [](const Refund&) -> std::string { throw std::runtime_error{"no line"}; });
  EXPECT_EQ(life_.payments().refunds_of("s", order.id).at(0).note, "no line");
}

}  // namespace
}  // namespace sluice
