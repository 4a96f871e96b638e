// Crowds on one channel. What they cost is counted in bytes of memory that were requested, since
// time says nothing on a machine that is busy: twice as many may cost twice as much.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <functional>
#include <limits>

#include "redis/channels.hpp"
#include "sluice/sluice.hpp"
#include "support/comes_true.hpp"
#include "support/redis_server.hpp"
#include "support/scarcity.hpp"

namespace sluice {
namespace {

/// So many come, hear one message, and go, the first first.
void listen_to_redis(int many) {
  redis::Channels channels;
  std::deque<std::shared_ptr<redis::Handler>> handlers;
  int heard = 0;
  for (int i = 0; i < many; ++i) {
    handlers.push_back(std::make_shared<redis::Handler>([&](const Message&) { ++heard; }));
    channels.add("c", handlers.back());
    channels.add_watcher(handlers.back());
  }
  channels.deliver(redis::Hearer::Kind::classic, {Message::Kind::published, "c", "m"});
  channels.tell_reconnected();
  EXPECT_EQ(heard, 2 * many);
  for (const auto& handler : handlers) {
    channels.remove("c", *handler, [] {});
    channels.remove_watcher(*handler);
  }
  EXPECT_FALSE(channels.any());
}

void listen_in_process(int many) {
  const auto store = open("embedded:");
  std::deque<Listener> listeners;
  int heard = 0;
  for (int i = 0; i < many; ++i)
    listeners.push_back(store->subscribe("c", [&](const Message&) { ++heard; }).get());
  store->run({"PUBLISH", "c", "m"}).get();
  EXPECT_EQ(heard, many);
  while (!listeners.empty()) listeners.pop_front();
}

Task<void> pass(Latch& latch, std::atomic<int>& through) {
  co_await latch.wait();
  ++through;
}

void wait_at_a_latch(int many, const std::string& url) {
  const auto store = open(url);
  Latch latch{*store, "l"};
  latch.try_set_count(1).get();
  std::atomic<int> through{0};
  for (int i = 0; i < many; ++i) spawn(pass(latch, through));
  EXPECT_EQ(through, 0);
  latch.count_down().get();
  EXPECT_TRUE(test::comes_true([&] { return through == many; })) << through << " of " << many;
}

void wait_in_process(int many) { wait_at_a_latch(many, "embedded:"); }

TEST(Crowd, CO09_TwiceAsManyListenersCostTwiceAsMuchMemory) {
  const std::pair<const char*, void (*)(int)> crowds[] = {{"handlers of redis", listen_to_redis},
                                                          {"handlers here", listen_in_process},
                                                          {"waiters", wait_in_process}};
  for (const auto& [name, crowd] : crowds) {
    std::size_t bytes[3];
    for (const int i : {0, 1, 2}) {
      const test::Scarcity counts{test::Lack::memory, std::numeric_limits<std::size_t>::max(), 0};
      crowd(1000 << i);
      bytes[i] = counts.bytes();
    }
    for (const int i : {1, 2})
      EXPECT_LE(bytes[i], 5 * bytes[i - 1] / 2) << name << ", " << (1000 << i) << " of them";
  }
}

TEST(Crowd, CO09_FiftyThousandWaitForOneLatch) {
  const test::RedisServer server;
  wait_at_a_latch(50'000, server.url());
  wait_in_process(50'000);
}

Task<void> use_a_permit(PermitSemaphore& permits, std::atomic<int>& through) {
  auto held = co_await permits.acquire();
  co_await held.release();
  ++through;
}

/// A grant that is heard too late, behind the questions of so many, is no reason for all to ask
/// again: then the next ones would be late, too, and nobody would be served.
TEST(Crowd, CO02_ThousandsThatComeAtOnceDoNotAskAgainAndAgain) {
  const test::RedisServer server;
  const auto store = open(server.url(), {.command_timeout = std::chrono::seconds{30}});
  PermitSemaphore permits{*store, "permits"};
  permits.ensure_permits(5).get();
  constexpr int many = 5'000;
  std::atomic<int> through{0};
  for (int i = 0; i < many; ++i) spawn(use_a_permit(permits, through));
  EXPECT_TRUE(test::comes_true([&] { return through == many; })) << through << " of " << many;
  const auto text = store->run({"INFO", "commandstats"}).get();
  const auto& stats = text.as_text();
  const auto at = stats.find("cmdstat_evalsha:calls=");
  ASSERT_NE(at, std::string::npos);
  EXPECT_LE(std::stoi(stats.substr(at + 22)), 7 * many / 2);  // a question, a release, a few looks
}

}  // namespace
}  // namespace sluice
