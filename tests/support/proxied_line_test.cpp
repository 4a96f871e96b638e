/// What the proxy makes of the bytes on one line, without sockets.
#include "support/proxied_line.hpp"

#include <gtest/gtest.h>

#include "resp/writer.hpp"

namespace sluice::test {
namespace {

using Kind = Passing::Kind;
using Way = ProxiedLine::Way;

class Line : public testing::Test {
 protected:
  static std::string command(std::initializer_list<std::string_view> words) {
    std::string bytes;
    resp::append_command(bytes, {words.begin(), words.size()});
    return bytes;
  }
  std::string taken(Way way) { return std::exchange(line_.out(way), {}); }
  void ask(std::initializer_list<std::string_view> words) { line_.from_client(command(words)); }

  /// One of `words` that begins so meets the fault, once.
  std::string target_ = "nothing";
  Kind kind_ = Kind::request;
  Fate fate_;
  std::vector<std::string> seen_;  // "request GET", "reply GET", "message channel"
  ProxiedLine line_{
      7, [this](const Passing& passing) {
        static constexpr std::string_view names[] = {"request ", "reply ", "message "};
        const std::string word = passing.words.empty() ? "" : passing.words[0];
        seen_.push_back(std::string{names[static_cast<std::size_t>(passing.kind)]} + word);
        if (word != target_ || passing.kind != kind_) return Fate{};
        target_ = "nothing";
        return fate_;
      }};
};

TEST_F(Line, ForwardsBytesAsTheyCame) {
  const auto asked =
      command({"SET", "k", std::string(70'000, 'v')}) + "PING\r\n\r\n" + command({"GET", "k"});
  for (const char byte : asked) line_.from_client({&byte, 1});
  EXPECT_EQ(taken(Way::to_server), asked);
  const std::string said = "+OK\r\n+PONG\r\n$3\r\nabc\r\n";
  for (const char byte : said) line_.from_server({&byte, 1});
  EXPECT_EQ(taken(Way::to_client), said);
  EXPECT_EQ(seen_, (std::vector<std::string>{"request SET", "request PING", "request GET",
                                             "reply SET", "reply PING", "reply GET"}));
}

TEST_F(Line, TellsMessagesFromAnswersInResp2) {
  ask({"SUBSCRIBE", "c", "d"});
  ask({"UNSUBSCRIBE"});
  ask({"PING"});
  line_.from_server(
      "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nd\r\n:2\r\n");
  line_.from_server("*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nhi\r\n");
  line_.from_server(
      "*3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:1\r\n*3\r\n$11\r\nunsubscribe\r\n$1\r\nd\r\n:0\r\n");
  line_.from_server("+PONG\r\n");
  EXPECT_EQ((std::vector<std::string>{seen_.begin() + 3, seen_.end()}),
            (std::vector<std::string>{"reply SUBSCRIBE", "reply SUBSCRIBE", "message c",
                                      "reply UNSUBSCRIBE", "reply ", "reply PING"}));
}

TEST_F(Line, TellsMessagesFromAnswersInResp3) {
  ask({"SUBSCRIBE", "c"});
  ask({"LRANGE", "k", "0", "-1"});
  line_.from_server(">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nhi\r\n");
  line_.from_server(">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n*1\r\n$1\r\na\r\n");
  EXPECT_EQ((std::vector<std::string>{seen_.begin() + 2, seen_.end()}),
            (std::vector<std::string>{"message c", "reply SUBSCRIBE", "reply LRANGE"}));
}

TEST_F(Line, AnArrayThatLooksLikeAMessageIsAnAnswerToWhoHasNotSubscribed) {
  ask({"LRANGE", "k", "0", "-1"});
  line_.from_server("*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nhi\r\n");
  EXPECT_EQ(seen_.back(), "reply LRANGE");
}

TEST_F(Line, WhatFollowsSomethingHeldWaitsBehindIt) {
  target_ = "GET";
  fate_ = {LineFault::hold};
  ask({"SET", "k", "v"});
  ask({"GET", "k"});
  ask({"DEL", "k"});
  EXPECT_EQ(taken(Way::to_server), command({"SET", "k", "v"}));
  line_.let_go();
  EXPECT_EQ(taken(Way::to_server), command({"GET", "k"}) + command({"DEL", "k"}));
}

TEST_F(Line, CutPassesTheBytesItWasTold) {
  target_ = "GET";
  kind_ = Kind::reply;
  fate_ = {LineFault::cut, 4};
  ask({"GET", "k"});
  line_.from_server("$5\r\nhello\r\n");
  EXPECT_EQ(taken(Way::to_client), "$5\r\n");
  EXPECT_TRUE(line_.ends(Way::to_client));
  EXPECT_TRUE(line_.ends(Way::to_server));
  line_.from_server("+late\r\n");
  EXPECT_EQ(taken(Way::to_client), "");
}

TEST_F(Line, CutAtAByteOfTheStream) {
  line_.cut_at(Way::to_client, 7);
  ask({"PING"});
  ask({"PING"});
  line_.from_server("+PONG\r");
  EXPECT_EQ(taken(Way::to_client), "") << "only whole replies pass";
  line_.from_server("\n+PONG\r\n");
  EXPECT_EQ(taken(Way::to_client), "+PONG\r\n");
  EXPECT_TRUE(line_.ends(Way::to_client));
}

TEST_F(Line, TwiceHidesTheFirstReply) {
  target_ = "INCR";
  fate_ = {LineFault::twice};
  ask({"INCR", "k"});
  EXPECT_EQ(taken(Way::to_server), command({"INCR", "k"}) + command({"INCR", "k"}));
  line_.from_server(":1\r\n:2\r\n");
  EXPECT_EQ(taken(Way::to_client), ":2\r\n");
}

TEST_F(Line, SwallowedLineStaysAndSaysNothing) {
  target_ = "GET";
  kind_ = Kind::reply;
  fate_ = {LineFault::swallow};
  ask({"GET", "k"});
  ask({"GET", "k"});
  line_.from_server("$1\r\na\r\n$1\r\nb\r\n");
  EXPECT_EQ(taken(Way::to_client), "");
  EXPECT_FALSE(line_.ends(Way::to_client));
}

TEST_F(Line, StrandedRequestsOutliveTheirClient) {
  target_ = "SET";
  fate_ = {LineFault::strand};
  ask({"SET", "k", "v"});
  EXPECT_TRUE(line_.client_gone());
  EXPECT_TRUE(line_.stranded());
  EXPECT_FALSE(line_.ends(Way::to_server));
  line_.let_go();
  EXPECT_EQ(taken(Way::to_server), command({"SET", "k", "v"}));
  EXPECT_TRUE(line_.ends(Way::to_server));
}

TEST_F(Line, WhatIsNotRespPassesToTheServerAndNotToTheClient) {
  line_.from_client("*x\r\n");
  EXPECT_EQ(taken(Way::to_server), "*x\r\n");
  line_.from_server("HTTP/1.1 200 OK\r\n");
  EXPECT_TRUE(line_.ends(Way::to_client));
}

}  // namespace
}  // namespace sluice::test
