#include "store/combiner.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <thread>

namespace sluice {
namespace {

using Batches = std::vector<std::vector<int>>;

/// A sender whose flights land when the test says so.
class Airport {
 public:
  Task<std::vector<std::string>> fly(std::vector<int> requests) {
    Completion& landing = landings_.emplace_back();
    batches.push_back(requests);
    co_await landing;
    if (fail_next) {
      fail_next = false;
      throw Error{Errc::connection, "lost", Effect::unknown};
    }
    std::vector<std::string> replies;
    for (const int request : requests) replies.push_back(std::to_string(request));
    if (drop_a_reply) replies.pop_back();
    co_return replies;
  }
  void land() { landings_[landed_++].complete(); }

  Combiner<int, std::string>::Send sender() {
    return [this](std::vector<int> requests) { return fly(std::move(requests)); };
  }

  Batches batches;
  bool fail_next = false;
  bool drop_a_reply = false;

 private:
  std::deque<Completion> landings_;
  std::size_t landed_ = 0;
};

/// Calls without waiting; "error: ..." stands for an exception.
void call(Combiner<int, std::string>& combiner, int request, std::vector<std::string>& outcomes) {
  const auto run = [](Combiner<int, std::string>& to, int asked,
                      std::vector<std::string>& into) -> Task<void> {
    auto calling = to.call(asked);
    try {
      into.push_back(co_await calling);
    } catch (const Error& error) {
      into.push_back("error: " + error.message());
    }
  };
  spawn(run(combiner, request, outcomes));
}

TEST(Combiner, WhatComesDuringAFlightTravelsTogetherInTheNext) {
  Airport airport;
  Combiner<int, std::string> combiner{nullptr, 100, airport.sender()};
  std::vector<std::string> outcomes;
  call(combiner, 1, outcomes);  // nobody is sending: goes at once and alone
  EXPECT_EQ(airport.batches, (Batches{{1}}));
  call(combiner, 2, outcomes);
  call(combiner, 3, outcomes);
  call(combiner, 4, outcomes);
  EXPECT_EQ(airport.batches.size(), 1U);

  airport.land();
  EXPECT_EQ(airport.batches, (Batches{{1}, {2, 3, 4}}));
  EXPECT_EQ(outcomes, (std::vector<std::string>{"1"}));
  airport.land();
  EXPECT_EQ(outcomes, (std::vector<std::string>{"1", "2", "3", "4"}));

  call(combiner, 5, outcomes);  // idle again: at once
  EXPECT_EQ(airport.batches.size(), 3U);
  airport.land();
  EXPECT_EQ(outcomes.back(), "5");
}

TEST(Combiner, WhatIsGatheredTravelsTogetherAtTheEnd) {
  Airport airport;
  std::vector<std::string> outcomes;
  Combiner<int, std::string> combiner{nullptr, 100, airport.sender()};
  auto gathering = combiner.gather();
  ASSERT_TRUE(gathering);
  for (const int request : {1, 2, 3}) call(combiner, request, outcomes);
  EXPECT_FALSE(combiner.gather()) << "they travel together already";
  EXPECT_EQ(airport.batches, Batches{});
  gathering.reset();
  EXPECT_EQ(airport.batches, (Batches{{1, 2, 3}}));
  EXPECT_FALSE(combiner.gather()) << "they are under way";
  call(combiner, 4, outcomes);
  airport.land();
  EXPECT_EQ(outcomes, (std::vector<std::string>{"1", "2", "3"}));
  EXPECT_EQ(airport.batches, (Batches{{1, 2, 3}, {4}}));
  airport.land();
}

TEST(Combiner, AGatheringOfNobodyHoldsUpNobody) {
  Airport airport;
  std::vector<std::string> outcomes;
  std::optional<Combiner<int, std::string>> combiner{std::in_place, nullptr, 100, airport.sender()};
  combiner->gather();
  call(*combiner, 1, outcomes);
  EXPECT_EQ(airport.batches, (Batches{{1}}));
  airport.land();
  auto late = combiner->gather();
  combiner.reset();
  late.reset();
}

TEST(Combiner, NoBatchIsLargerThanTheLargest) {
  Airport airport;
  Combiner<int, std::string> combiner{nullptr, 2, airport.sender()};
  std::vector<std::string> outcomes;
  for (int i = 0; i < 6; ++i) call(combiner, i, outcomes);
  for (int i = 0; i < 4; ++i) airport.land();
  EXPECT_EQ(airport.batches, (Batches{{0}, {1, 2}, {3, 4}, {5}}));
  EXPECT_EQ(outcomes, (std::vector<std::string>{"0", "1", "2", "3", "4", "5"}));
}

TEST(Combiner, AFailureGoesToEveryCallerOfTheBatchAndToNoOther) {
  Airport airport;
  Combiner<int, std::string> combiner{nullptr, 100, airport.sender()};
  std::vector<std::string> outcomes;
  call(combiner, 1, outcomes);
  call(combiner, 2, outcomes);
  call(combiner, 3, outcomes);
  airport.land();
  call(combiner, 4, outcomes);
  airport.fail_next = true;
  airport.land();
  airport.land();
  EXPECT_EQ(outcomes, (std::vector<std::string>{"1", "error: lost", "error: lost", "4"}));
}

TEST(Combiner, AMissingReplyIsAnErrorAndNotSomebodyElsesReply) {
  Airport airport;
  airport.drop_a_reply = true;
  Combiner<int, std::string> combiner{nullptr, 100, airport.sender()};
  std::vector<std::string> outcomes;
  call(combiner, 1, outcomes);
  airport.land();
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_TRUE(outcomes[0].starts_with("error: a batch was answered")) << outcomes[0];
}

TEST(Combiner, ASenderThatThrowsBeforeItSendsIsAFailureToo) {
  Combiner<int, std::string> combiner{nullptr, 100,
                                      [](std::vector<int>) -> Task<std::vector<std::string>> {
                                        throw Error{Errc::closed, "shut"};
                                      }};
  EXPECT_THROW(combiner.call(1).get(), Error);
  EXPECT_THROW(combiner.call(2).get(), Error);  // and the next is not stuck behind it
}

TEST(Combiner, MayBeGoneAsSoonAsTheLastCallerIsAnswered) {
  Airport airport;
  auto combiner = std::make_unique<Combiner<int, std::string>>(nullptr, 100, airport.sender());
  const auto run = [](std::unique_ptr<Combiner<int, std::string>>& own) -> Task<void> {
    auto calling = own->call(1);
    co_await calling;
    own.reset();
  };
  spawn(run(combiner));
  airport.land();
  EXPECT_EQ(combiner, nullptr);
}

/// Many threads; each sees its own replies, in order, and a flight is never begun before the last
/// one has landed.
void hammer(Combiner<int, int>::Send send, std::size_t largest) {
  constexpr int threads = 6;
  constexpr int calls = 500;
  Combiner<int, int> combiner{nullptr, largest, std::move(send)};
  std::vector<std::jthread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&combiner, t] {
      for (int i = 0; i < calls; ++i) {
        const int asked = t * calls + i;
        ASSERT_EQ(combiner.call(asked).get(), asked + 1);
      }
    });
}

TEST(Combiner, ServesManyThreadsWhenFlightsAreOverAtOnce) {
  std::atomic<int> flying{0};
  std::atomic<std::size_t> answered{0};
  hammer(
      [&](std::vector<int> requests) {
        EXPECT_EQ(++flying, 1);
        EXPECT_LE(requests.size(), 4U);
        answered += requests.size();
        for (auto& request : requests) ++request;
        --flying;
        return Task<std::vector<int>>::ready(std::move(requests));
      },
      4);
  EXPECT_EQ(answered, 3000U);
}

TEST(Combiner, ServesManyThreadsWhenAnotherThreadLandsTheFlights) {
  std::atomic<Completion*> in_the_air{nullptr};
  std::atomic<bool> closed{false};
  std::jthread tower{[&] {
    while (!closed) {
      if (Completion* const flight = in_the_air.exchange(nullptr)) {
        flight->complete();
      } else {
        std::this_thread::yield();
      }
    }
  }};
  hammer(
      [&](std::vector<int> requests) -> Task<std::vector<int>> {
        Completion landing;
        EXPECT_EQ(in_the_air.exchange(&landing), nullptr);
        co_await landing;
        for (auto& request : requests) ++request;
        co_return requests;
      },
      1000);
  closed = true;
}

/// A coroutine that runs at once, on the account of the thread that starts it.
struct Started {
  struct promise_type {
    Started get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
  };
};

// The first caller leads flights that are over at once, and a thousand others queue behind it, as
// if requests came faster than flights end. It has to come home before they are all served, and
// they are served all the same.
TEST(Combiner, ALeaderIsRelieved) {
  constexpr int others = 1000;
  Combiner<int, int>* shared = nullptr;
  int flights = 0;
  int served = 0;
  const auto other = [](Combiner<int, int>& asked, int& count) -> Started {
    auto calling = asked.call(0);
    co_await calling;
    ++count;
  };
  Combiner<int, int> combiner{nullptr, 1, [&](std::vector<int> requests) {
                                if (flights++ == 0) {
                                  const Waiter::Scope this_thread{&Waiter::of_this_thread()};
                                  for (int i = 0; i < others; ++i) other(*shared, served);
                                }
                                return Task<std::vector<int>>::ready(std::move(requests));
                              }};
  shared = &combiner;

  EXPECT_EQ(combiner.call(1).get(), 1);
  EXPECT_LE(flights, 1 + decltype(combiner)::most_in_a_row);
  EXPECT_EQ(combiner.call(2).get(), 2);  // behind all the others
  EXPECT_EQ(served, others);
  EXPECT_EQ(flights, others + 2);
}

}  // namespace
}  // namespace sluice
