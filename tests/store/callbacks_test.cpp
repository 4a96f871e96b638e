#include "store/callbacks.hpp"

#include <gtest/gtest.h>

#include <future>
#include <stdexcept>

#include "store/fake_store.hpp"

namespace sluice {
namespace {

TEST(Callbacks, RunInOrderOnOneThreadWhateverTheyThrow) {
  const auto callbacks = std::make_shared<Callbacks>(Executor{});
  std::vector<int> order;
  std::thread::id first;
  std::thread::id last;
  callbacks->call([&] {
    order.push_back(1);
    first = std::this_thread::get_id();
    throw 1;
  });
  callbacks->call([&] {
    order.push_back(2);
    last = std::this_thread::get_id();
    throw std::runtime_error{"no matter"};
  });
  callbacks->end();
  EXPECT_EQ(order, (std::vector{1, 2}));
  EXPECT_EQ(first, last);
  EXPECT_NE(first, std::this_thread::get_id());
  callbacks->call([&] { order.push_back(3); });
  EXPECT_EQ(order.size(), 2U) << "it has ended";
}

TEST(Callbacks, AnExecutorThatThrowsIsReported) {
  const auto callbacks = std::make_shared<Callbacks>([](auto) { throw 5; });
  EXPECT_NO_THROW(callbacks->call([] {}));
}

TEST(Callbacks, AMessageThatTheExecutorRefusedComesWithTheNext) {
  std::deque<std::function<void()>> work;
  bool refuses = true;
  const auto callbacks = std::make_shared<Callbacks>([&](auto next) {
    if (refuses) throw 5;
    work.push_back(std::move(next));
  });
  FakeStore store;
  std::vector<std::string> heard;
  const auto listener =
      callbacks
          ->listen([&](const Message& message) { heard.push_back(message.payload); },
                   [&](MessageHandler handler) { return store.listen("c", std::move(handler)); })
          .get();
  store.publish("c", "first");
  refuses = false;
  store.publish("c", "second");
  for (; !work.empty(); work.pop_front()) work.front()();
  EXPECT_EQ(heard, (std::vector<std::string>{"first", "second"}));
}

TEST(Callbacks, MayEndThemselves) {
  auto callbacks = std::make_shared<Callbacks>(Executor{});
  std::promise<void> done;
  callbacks->call([&] {
    callbacks->end();
    done.set_value();
  });
  done.get_future().get();
}

TEST(Callbacks, AHandlerThatDoesNotKeepUpIsToldOfAGap) {
  std::deque<std::function<void()>> work;
  const auto callbacks =
      std::make_shared<Callbacks>([&](auto next) { work.push_back(std::move(next)); });
  FakeStore store;
  std::vector<Message> heard;
  auto listener =
      callbacks
          ->listen([&](const Message& message) { heard.push_back(message); },
                   [&](MessageHandler handler) { return store.listen("c", std::move(handler)); })
          .get();
  for (int i = 0; i < 1500; ++i) store.publish("c", std::to_string(i));
  const auto run_all = [&] {
    while (!work.empty()) {
      const auto next = std::move(work.front());
      work.pop_front();
      next();
    }
  };
  run_all();
  ASSERT_EQ(heard.size(), 1500U - 1024 + 1);
  EXPECT_EQ(heard.front().kind, Message::Kind::gap);
  EXPECT_EQ(heard[1].payload, "1024");
  EXPECT_EQ(heard.back().payload, "1499");
  store.publish("c", "late");
  listener = {};
  run_all();
  EXPECT_EQ(heard.back().payload, "1499") << "the listener is gone";
}

}  // namespace
}  // namespace sluice
