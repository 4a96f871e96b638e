#include <gtest/gtest.h>

#include <deque>

#include "proxy/flow/request.hpp"

namespace sluice::proxy::flow {
namespace {

class Nobody final : public Receiver {
 public:
  void replied(Request&, std::string_view) override {}
  void failed(Request&, Failure) override {}
};

/// A client's queue, one letter a request: r(ead), w(rite); R and W have their outcome.
struct MadeQueue {
  explicit MadeQueue(std::string_view letters) {
    for (const char letter : letters) {
      Request& request = requests.emplace_back();
      request.receiver = &nobody;
      request.read_only = letter == 'r' || letter == 'R';
      request.answered = letter == 'R' || letter == 'W';
      queue.push(request);
    }
  }

  Nobody nobody;
  std::deque<Request> requests;
  ClientQueue queue;
};

bool may(std::string_view letters, Failure failure = Failure::closed) {
  MadeQueue made{letters};
  Request& first = made.requests.front();
  return may_ask_again(first, first, failure);
}

TEST(Retry, OfAReadWithNothingBehind) { EXPECT_TRUE(may("r")); }
TEST(Retry, OfAReadWithReadsBehind) { EXPECT_TRUE(may("rrr")); }
TEST(Retry, NotWithAWriteBehind) { EXPECT_FALSE(may("rrw")); }
TEST(Retry, WithAWriteBehindThatHasItsOutcome) { EXPECT_TRUE(may("rWr")); }
TEST(Retry, NeverOfAWrite) { EXPECT_FALSE(may("w")); }
TEST(Retry, NotWithVeryManyBehind) { EXPECT_FALSE(may(std::string(1000, 'r'))); }

TEST(Retry, OnlyOfWhatBroke) {
  EXPECT_TRUE(may("r", Failure::reset));
  for (const auto failure : {Failure::timed_out, Failure::refused, Failure::host_down,
                             Failure::invalid, Failure::crossed, Failure::overloaded})
    EXPECT_FALSE(may("r", failure));
}

TEST(Retry, Once) {
  MadeQueue made{"r"};
  Request& first = made.requests.front();
  first.retried = true;
  EXPECT_FALSE(may_ask_again(first, first, Failure::closed));
}

TEST(Retry, NotForAClientThatHasGone) {
  MadeQueue made{"r"};
  Request& first = made.requests.front();
  first.receiver = nullptr;
  EXPECT_FALSE(may_ask_again(first, first, Failure::closed));
}

TEST(Retry, AReadBehindCountsForWhatMayWrite) {
  MadeQueue made{"wr"};
  EXPECT_TRUE(has_behind(made.requests.front(), Behind::anything));
  EXPECT_FALSE(has_behind(made.requests.back(), Behind::anything));
}

}  // namespace
}  // namespace sluice::proxy::flow
