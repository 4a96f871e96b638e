#include "store/subscription.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "store/fake_store.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

std::string payload_of(const std::optional<Message>& message) {
  return message ? message->payload : "(none)";
}

TEST(Subscription, GivesMessagesOfItsChannelInOrder) {
  FakeStore store;
  auto subscription = Subscription::open(store, "news").get();
  store.publish("news", "one");
  store.publish("other", "not mine");
  store.publish("news", "two");
  EXPECT_EQ(payload_of(subscription.next().get()), "one");
  EXPECT_EQ(payload_of(subscription.next().get()), "two");
}

TEST(Subscription, WaitsForAMessage) {
  FakeStore store;
  auto subscription = Subscription::open(store, "news").get();
  std::optional<Message> got;
  const auto take = [](Subscription& from, std::optional<Message>& into) -> Task<void> {
    auto next = from.next();
    into = co_await next;
  };
  spawn(take(subscription, got));
  EXPECT_FALSE(got);
  store.publish("news", "late");
  EXPECT_EQ(payload_of(got), "late");
}

TEST(Subscription, GivesUpAtTheDeadlineAndCanWaitAgain) {
  FakeStore store;
  auto subscription = Subscription::open(store, "news").get();
  bool ended = false;
  std::optional<Message> got;
  const auto take = [](Subscription& from, SteadyTime deadline, bool& done,
                       std::optional<Message>& into) -> Task<void> {
    auto next = from.next(deadline);
    into = co_await next;
    done = true;
  };
  spawn(take(subscription, store.virtual_clock.steady() + 1s, ended, got));
  store.virtual_clock.advance(999ms);
  EXPECT_FALSE(ended);
  store.virtual_clock.advance(1ms);
  EXPECT_TRUE(ended);
  EXPECT_FALSE(got);

  store.publish("news", "after the deadline");  // is kept for the next look
  EXPECT_EQ(payload_of(subscription.next(store.virtual_clock.steady()).get()),
            "after the deadline");
}

TEST(Subscription, ALookWithoutWaitingSetsNoTimer) {
  FakeStore store;
  auto subscription = Subscription::open(store, "news").get();
  EXPECT_FALSE(subscription.next(store.virtual_clock.steady()).get());
  EXPECT_EQ(store.virtual_clock.pending_timers(), 0U);
}

TEST(Subscription, AReaderThatFallsBehindHearsOfAGap) {
  FakeStore store;
  auto subscription = Subscription::open(store, "news").get();
  for (std::size_t i = 0; i < Subscription::most_kept + 1; ++i)
    store.publish("news", std::to_string(i));
  const auto first = subscription.next().get();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->kind, Message::Kind::gap);
  EXPECT_EQ(payload_of(subscription.next().get()), std::to_string(Subscription::most_kept));
  EXPECT_FALSE(subscription.next(store.virtual_clock.steady()).get());
}

TEST(Subscription, PassesTheStoresGapOn) {
  FakeStore store;
  auto subscription = Subscription::open(store, "news").get();
  store.deliver(Message{.kind = Message::Kind::gap, .channel = "news", .payload = {}});
  const auto message = subscription.next().get();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->kind, Message::Kind::gap);
}

TEST(Subscription, EndsWithItsObject) {
  FakeStore store;
  {
    auto subscription = Subscription::open(store, "news").get();
    auto moved = std::move(subscription);
    EXPECT_EQ(store.listeners(), 1U);
    store.publish("news", "to the moved one");
    EXPECT_EQ(payload_of(moved.next().get()), "to the moved one");
  }
  EXPECT_EQ(store.listeners(), 0U);
  store.publish("news", "to nobody");
}

TEST(Subscription, NoMessageIsLostBetweenThreads) {
  FakeStore store;
  auto subscription = Subscription::open(store, "news").get();
  constexpr int messages = 900;  // below most_kept, so that no gap is allowed
  std::jthread publisher{[&] {
    for (int i = 0; i < messages; ++i) store.publish("news", std::to_string(i));
  }};
  for (int i = 0; i < messages; ++i)
    ASSERT_EQ(payload_of(subscription.next().get()), std::to_string(i));
}

}  // namespace
}  // namespace sluice
