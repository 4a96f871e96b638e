/// Names are asked for without waiting for each other.
#include "proxy/flow/resolver.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "support/comes_true.hpp"

namespace sluice::proxy::flow {
namespace {

using test::comes_true;

net::Endpoint endpoint(const std::string& host) {
  return {.host = host, .port = 1, .unix_path = {}};
}

/// Hosts that begin with "slow" are not answered before the test says so, "none" there is not.
struct Service {
  std::promise<void> answer;
  std::shared_future<void> answered = answer.get_future().share();
  std::mutex mutex;
  std::multiset<std::string> asked;

  std::vector<net::Address> look_up(const net::Endpoint& wanted) {
    {
      const std::lock_guard lock{mutex};
      asked.insert(wanted.host);
    }
    if (wanted.host.starts_with("slow")) answered.wait();
    if (wanted.host == "none") throw Error{Errc::connection, "cannot find the host 'none'"};
    if (wanted.host == "empty") return {};
    return net::resolve({.host = "127.0.0.1", .port = wanted.port, .unix_path = {}});
  }
  std::size_t times_asked(const std::string& host) {
    const std::lock_guard lock{mutex};
    return asked.count(host);
  }
};

Resolver::Lookup by(const std::shared_ptr<Service>& service) {
  return [service](const net::Endpoint& wanted) { return service->look_up(wanted); };
}

std::future<Resolver::Found> ask(Resolver& resolver, const std::string& host) {
  const auto promise = std::make_shared<std::promise<Resolver::Found>>();
  resolver.ask(endpoint(host), [promise](const auto& found) { promise->set_value(found); });
  return promise->get_future();
}

TEST(Resolver, D05_ASlowNameHoldsUpNoOther) {
  const auto service = std::make_shared<Service>();
  Resolver resolver{by(service)};
  std::vector<std::future<Resolver::Found>> slow;
  for (int i = 0; i < 31; ++i) slow.push_back(ask(resolver, "slow" + std::to_string(i)));
  for (int i = 0; i < 100; ++i)
    EXPECT_TRUE(ask(resolver, "quick" + std::to_string(i)).get().has_value());
  service->answer.set_value();
  for (auto& one : slow) EXPECT_TRUE(one.get().has_value());
}

TEST(Resolver, D05_MoreSlowNamesThanThreadsAreAllAnswered) {
  const auto service = std::make_shared<Service>();
  Resolver resolver{by(service)};
  std::vector<std::future<Resolver::Found>> slow;
  for (int i = 0; i < 500; ++i) slow.push_back(ask(resolver, "slow" + std::to_string(i)));
  service->answer.set_value();
  for (auto& one : slow) EXPECT_TRUE(one.get().has_value());
}

TEST(Resolver, WhoAsksTheSameIsToldTheSame) {
  const auto service = std::make_shared<Service>();
  Resolver resolver{by(service)};
  std::vector<std::future<Resolver::Found>> all;
  for (int i = 0; i < 10; ++i) all.push_back(ask(resolver, "slow"));
  service->answer.set_value();
  for (auto& one : all) EXPECT_TRUE(one.get().has_value());
  EXPECT_EQ(service->times_asked("slow"), 1U);
  EXPECT_TRUE(ask(resolver, "slow").get().has_value());
  EXPECT_EQ(service->times_asked("slow"), 2U);
}

TEST(Resolver, TellsWhyThereIsNoAddress) {
  Resolver resolver{by(std::make_shared<Service>())};
  EXPECT_EQ(ask(resolver, "none").get().error().message(), "cannot find the host 'none'");
  EXPECT_EQ(ask(resolver, "empty").get().error().message(), "there is no host 'empty'");
}

TEST(Resolver, D05_ItsEndDoesNotWaitForASlowName) {
  const auto service = std::make_shared<Service>();
  std::atomic<int> answers{0};
  {
    Resolver resolver{by(service)};
    resolver.ask(endpoint("slow"), [&](const auto&) { ++answers; });
    ASSERT_TRUE(comes_true([&] { return service->times_asked("slow") == 1; }));
  }
  service->answer.set_value();
  EXPECT_TRUE(comes_true([&] { return service.use_count() == 1; })) << "its thread ends";
  EXPECT_EQ(answers, 0);
}

TEST(KnownNames, AskOnceAndKnowForAWhile) {
  const auto service = std::make_shared<Service>();
  Resolver resolver{by(service)};
  std::atomic<int> woken{0};
  KnownNames names{resolver, [&] { ++woken; }};
  EXPECT_TRUE(names.find(endpoint("127.0.0.1"))->has_value()) << "a number is no question";
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(names.find(endpoint("slow")));
  service->answer.set_value();
  EXPECT_TRUE(comes_true([&] { return woken == 1; }));
  EXPECT_EQ(service->times_asked("slow"), 1U);
  EXPECT_TRUE(comes_true([&] { return names.find(endpoint("slow")).has_value(); }));
  EXPECT_EQ(service->times_asked("127.0.0.1"), 0U);
  resolver.end();
}

}  // namespace
}  // namespace sluice::proxy::flow
