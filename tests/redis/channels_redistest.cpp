// Listening to channels of a real server.
#include <gtest/gtest.h>

#include <bit>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "base/event.hpp"
#include "redis/at_server.hpp"
#include "sluice/log.hpp"
#include "store/subscription.hpp"
#include "support/collected_log.hpp"
#include "support/comes_true.hpp"
#include "support/plain_client.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::at;
using test::comes_true;

constexpr auto patience = 20s;

class Channels : public testing::Test {
 protected:
  SteadyTime soon() const { return std::chrono::steady_clock::now() + patience; }
  /// Waits until the server knows so many subscribers.
  void wait_for_subscribers(int count) {
    for (const auto end = soon(); std::chrono::steady_clock::now() < end;) {
      if (admin.command({"PUBSUB", "NUMSUB", "c"}).as_items().at(1).as_integer() == count) return;
      std::this_thread::yield();
    }
    ADD_FAILURE() << "never " << count << " subscribers";
  }

  test::RedisServer server;
  test::PlainClient admin{server.port()};
  std::unique_ptr<Store> store = redis::open_redis(at(server));
};

TEST_F(Channels, MessagesComeInOrderAndWithoutACaller) {
  constexpr int all = 1000;
  std::vector<int> heard;
  Event last;
  const auto listener = store
                            ->listen("c",
                                     [&](const Message& message) {
                                       heard.push_back(std::stoi(message.payload));
                                       if (heard.size() == all) last.set();
                                     })
                            .get();
  for (int i = 0; i < all; ++i) admin.command({"PUBLISH", "c", std::to_string(i)});
  ASSERT_TRUE(last.wait_until(soon()));
  for (int i = 0; i < all; ++i) ASSERT_EQ(heard[static_cast<std::size_t>(i)], i);
}

TEST_F(Channels, HandlersOfOneChannelShareASubscriptionThatEndsWithTheLast) {
  std::atomic<int> heard{0};
  const auto hear = [&](const Message&) { ++heard; };
  auto first = store->listen("c", hear).get();
  auto second = store->listen("c", hear).get();
  wait_for_subscribers(1);
  const auto await = [&](int many) {
    const auto end = soon();
    while (heard < many && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    EXPECT_EQ(heard, many);
  };
  store->run({"PUBLISH", "c", "m"}).get();
  await(2);
  first = {};
  store->run({"PUBLISH", "c", "m"}).get();
  await(3);
  second = {};
  wait_for_subscribers(0);
}

TEST_F(Channels, ListeningAgainAtOnceLosesNothing) {
  for (int i = 0; i < 200; ++i) {
    auto subscription = Subscription::open(*store, "c").get();
    EXPECT_EQ(store->run({"PUBLISH", "c", "m"}).get().as_integer(), 1);
    EXPECT_TRUE(subscription.next(soon()).get());
  }
}

TEST_F(Channels, AListenerThatEndsWaitsForItsHandler) {
  Event entered;
  Event go_on;
  std::atomic<bool> left{false};
  auto listener = store
                      ->listen("c",
                               [&](const Message&) {
                                 entered.set();
                                 go_on.wait();
                                 left = true;
                               })
                      .get();
  admin.command({"PUBLISH", "c", "m"});
  entered.wait();
  std::jthread release{[&] { go_on.set(); }};
  listener = {};
  EXPECT_TRUE(left);
}

TEST_F(Channels, AHandlerMayEndItsOwnListener) {
  Listener listener;
  Event heard;
  std::atomic<int> count{0};
  listener = store
                 ->listen("c",
                          [&](const Message&) {
                            ++count;
                            listener = {};
                            heard.set();
                          })
                 .get();
  admin.command({"PUBLISH", "c", "m"});
  ASSERT_TRUE(heard.wait_until(soon()));
  wait_for_subscribers(0);
  EXPECT_EQ(count, 1);
}

TEST_F(Channels, AHandlerThatThrowsHarmsNobody) {
  std::mutex mutex;
  std::string logged;
  set_log_sink([&](LogLevel, std::string_view text) {
    const std::lock_guard lock{mutex};
    logged += text;
  });
  const auto listener =
      store->listen("c", [](const Message&) { throw std::runtime_error{"handler's fault"}; }).get();
  admin.command({"PUBLISH", "c", "m"});
  auto subscription = Subscription::open(*store, "c").get();
  admin.command({"PUBLISH", "c", "m"});
  EXPECT_TRUE(subscription.next(soon()).get());
  const auto is_logged = [&] {
    const std::lock_guard lock{mutex};
    return logged.find("handler's fault") != std::string::npos;
  };
  const auto end = soon();
  while (!is_logged() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  set_log_sink({});
  const std::lock_guard lock{mutex};
  EXPECT_NE(logged.find("handler's fault"), std::string::npos) << logged;
}

TEST_F(Channels, AfterARestartHandlersHearOfTheGapAndThenOfNewMessages) {
  auto subscription = Subscription::open(*store, "c").get();
  for (int i = 0; i < 3; ++i) {
    server.restart();
    const auto gap = subscription.next(soon()).get();
    ASSERT_TRUE(gap);
    EXPECT_EQ(gap->kind, Message::Kind::gap);
    EXPECT_EQ(gap->channel, "c");
    EXPECT_EQ(store->run({"PUBLISH", "c", "m"}, {.timeout = patience}).get().as_integer(), 1);
    const auto message = subscription.next(soon()).get();
    ASSERT_TRUE(message);
    EXPECT_EQ(message->payload, "m");
  }
}

TEST_F(Channels, ASilentServerIsNoticedWhenSomebodyListens) {
  auto options = at(server);
  options.idle = 20ms;
  options.command_timeout = 250ms;
  Event noticed;
  set_log_sink([&](LogLevel, std::string_view text) {
    if (text.find("silent for too long") != std::string_view::npos) noticed.set();
  });
  const auto before = metrics().redis_reconnects.load();
  const auto watching = redis::open_redis(options);
  const auto subscribed = [&]() -> std::optional<Subscription> {
    try {
      return Subscription::open(*watching, "c").get();
    } catch (const Error&) {  // a slow server
      return std::nullopt;
    }
  };
  auto subscription = subscribed();
  while (!subscription) subscription = subscribed();
  server.stop();
  EXPECT_TRUE(noticed.wait_until(soon()));
  server.cont();
  const auto gap = subscription->next(soon()).get();
  set_log_sink({});
  ASSERT_TRUE(gap);
  EXPECT_EQ(gap->kind, Message::Kind::gap);
  EXPECT_GT(metrics().redis_reconnects.load(), before);
}

TEST_F(Channels, ACallerThatWaitsForAMessageIsEndedByItsDeadline) {
  auto subscription = Subscription::open(*store, "c").get();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(subscription.next(begin + 50ms).get());
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 50ms);
}

TEST_F(Channels, AUserWhoMayNotListenIsTold) {
  admin.command({"ACL", "SETUSER", "deaf", "on", ">word", "~*", "resetchannels", "+@all"});
  auto options = at(server);
  options.user = "deaf";
  options.password = "word";
  const auto deaf = redis::open_redis(options);
  const auto error = test::failure_of([&] { deaf->listen("c", [](const Message&) {}).get(); });
  EXPECT_EQ(error.errc(), Errc::authentication);
  EXPECT_EQ(deaf->run({"PING"}).get().as_text(), "PONG");
}

/// The rights change while the Store listens to four channels: of each subset the others are heard,
/// and those of the subset again when they are allowed again.
TEST_F(Channels, D12_AForbiddenChannelIsSilentAlone) {
  const std::vector<std::string> all{"a", "b", "c", "d"};
  const auto allow = [&](unsigned forbidden) {
    std::vector<std::string> words{"ACL", "SETUSER", "u",  "on",
                                   ">p",  "+@all",   "~*", "resetchannels"};
    for (std::size_t i = 0; i < all.size(); ++i)
      if ((forbidden >> i & 1U) == 0) words.push_back("&" + all[i]);
    EXPECT_EQ(admin.command(words).as_text(), "OK");
  };
  allow(0);
  test::CollectedLog log;
  auto options = at(server);
  options.user = "u";
  options.password = "p";
  const auto limited = redis::open_redis(options);
  std::vector<Subscription> subscriptions;
  for (const auto& channel : all)
    subscriptions.push_back(Subscription::open(*limited, channel).get());
  const auto hears_gap = [&](std::size_t i) {
    const auto gap = subscriptions[i].next(soon()).get();
    return gap && gap->kind == Message::Kind::gap;
  };
  for (unsigned forbidden = 1; forbidden < 16; ++forbidden) {
    allow(forbidden);  // the server ends the connection that has subscribed them
    for (std::size_t i = 0; i < all.size(); ++i) {
      if ((forbidden >> i & 1U) != 0) continue;
      ASSERT_TRUE(hears_gap(i)) << all[i] << " of " << forbidden;
      admin.command({"PUBLISH", all[i], "m"});
      EXPECT_EQ(subscriptions[i].next(soon()).get()->payload, "m") << all[i] << " of " << forbidden;
    }
    EXPECT_TRUE(comes_true([&] {
      return log.count("is not subscribed any more: NOPERM") ==
             static_cast<std::size_t>(std::popcount(forbidden));
    })) << log.text();
    allow(0);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if ((forbidden >> i & 1U) == 0) continue;
      EXPECT_TRUE(hears_gap(i)) << all[i] << " of " << forbidden;
    }
    log.clear();
  }
  // Who listens anew to a forbidden one is told.
  allow(1);
  EXPECT_TRUE(comes_true([&] { return log.count("'a' is not subscribed any more") > 0; }));
  EXPECT_EQ(test::failure_of([&] { Subscription::open(*limited, "a").get(); }).errc(),
            Errc::authentication);
}

}  // namespace
}  // namespace sluice
