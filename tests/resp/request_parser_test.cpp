#include "resp/request_parser.hpp"

#include <gtest/gtest.h>

namespace sluice::resp {
namespace {

using State = RequestParser::State;
using Request = std::vector<std::string>;

/// Feeds a connection's bytes in pieces and drops what is done, as a server does. A refusal is the
/// last request.
std::vector<Request> requests_in(std::string_view bytes, std::size_t step,
                                 RequestLimits limits = {}) {
  RequestParser parser{limits};
  std::vector<Request> requests;
  std::string buffer;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(step, bytes.size()))) {
    buffer =
        buffer + std::string{bytes.substr(0, step)};  // moves, so that a kept pointer would dangle
    while (!buffer.empty() && parser.parse(buffer) == State::complete) {
      requests.emplace_back(parser.words().begin(), parser.words().end());
      buffer.erase(0, parser.size());
    }
    if (parser.state() == State::bad) {
      requests.push_back({parser.error()});
      return requests;
    }
  }
  if (!buffer.empty()) requests.push_back({"incomplete"});
  return requests;
}

std::vector<Request> requests_in(std::string_view bytes, RequestLimits limits = {}) {
  return requests_in(bytes, bytes.size(), limits);
}

std::string refused_request(std::string_view bytes, RequestLimits limits = {}) {
  const auto requests = requests_in(bytes, limits);
  return requests.empty() ? "nothing" : requests.back().at(0);
}

TEST(RequestParser, ReadsArraysAndLines) {
  EXPECT_EQ(
      requests_in("*2\r\n$3\r\nGET\r\n$3\r\na\r\n\r\nPING\r\nset k \"a b\"\n*1\r\n$0\r\n\r\n"),
      (std::vector<Request>{{"GET", "a\r\n"}, {"PING"}, {"set", "k", "a b"}, {""}}));
}

TEST(RequestParser, EmptyRequestsHaveNoWords) {
  EXPECT_EQ(requests_in("\r\n*0\r\n*-1\r\n\n  \r\n"), (std::vector<Request>{{}, {}, {}, {}, {}}));
}

constexpr std::string_view mixed_requests =
    "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$12\r\n\r\n*1\r\n$4\r\nPI\r\n\r\nset 'a b' "
    "\"\\x00\"\r\n*0\r\n*1\r\n$4\r\nPING\r\n";

TEST(RequestParser, GivesTheSameInPiecesOfAnySize) {
  const auto whole = requests_in(mixed_requests);
  ASSERT_EQ(whole.size(), 5U);
  EXPECT_EQ(whole[0][2], "\r\n*1\r\n$4\r\nPI");
  for (std::size_t step = 1; step < mixed_requests.size(); ++step)
    EXPECT_EQ(requests_in(mixed_requests, step), whole) << step;
}

TEST(RequestParser, CopiesNothing) {
  const std::string buffer = "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
  RequestParser parser;
  ASSERT_EQ(parser.parse(buffer), State::complete);
  EXPECT_EQ(parser.words()[0].data(), buffer.data() + 8);
  EXPECT_EQ(parser.size(), buffer.size());
}

TEST(RequestParser, TellsHowMuchIsMissing) {
  RequestParser parser;
  EXPECT_EQ(parser.parse("*1\r\n$1000\r\n"), State::incomplete);
  EXPECT_EQ(parser.missing(), 1002U);
  EXPECT_EQ(parser.parse("*1\r\n$1000\r\nabc"), State::incomplete);
  EXPECT_EQ(parser.missing(), 999U);
}

TEST(RequestParser, RefusesInRedisWords) {
  const std::pair<const char*, const char*> rows[] = {
      {"*x\r\n", "Protocol error: invalid multibulk length"},
      {"*01\r\n", "Protocol error: invalid multibulk length"},
      {"*\r\n", "Protocol error: invalid multibulk length"},
      {"*2147483648\r\n", "Protocol error: invalid multibulk length"},
      {"*20000000000000000000\r\n", "Protocol error: invalid multibulk length"},
      {"*1\r\n+OK\r\n", "Protocol error: expected '$', got '+'"},
      {"*1\r\n$-1\r\n", "Protocol error: invalid bulk length"},
      {"*1\r\n$x\r\n", "Protocol error: invalid bulk length"},
      {"*1\r\n$536870913\r\n", "Protocol error: invalid bulk length"},
      {"*1\r\n$1\r\nabc", "Protocol error: expected a line end after a bulk string"},
      {"get 'a\r\n", "Protocol error: unbalanced quotes in request"},
  };
  for (const auto& [bytes, reason] : rows) EXPECT_EQ(refused_request(bytes), reason) << bytes;
}

TEST(RequestParser, HoldsTheLimitsOfLines) {
  const std::string long_line(65'537, '1');
  EXPECT_EQ(refused_request(long_line), "Protocol error: too big inline request");
  EXPECT_EQ(refused_request(long_line + "\r\n"), "Protocol error: too big inline request");
  EXPECT_EQ(refused_request("*" + long_line), "Protocol error: too big mbulk count string");
  EXPECT_EQ(refused_request("*1\r\n$" + long_line), "Protocol error: too big bulk count string");
  EXPECT_EQ(requests_in(long_line.substr(2) + "\r\n"),
            (std::vector<Request>{{long_line.substr(2)}}));
}

TEST(RequestParser, AStrangerMayAskLittle) {
  const RequestLimits stranger{.authenticated = false};
  EXPECT_EQ(refused_request("*11\r\n", stranger),
            "Protocol error: unauthenticated multibulk length");
  EXPECT_EQ(refused_request("*1\r\n$16385\r\n", stranger),
            "Protocol error: unauthenticated bulk length");
  EXPECT_EQ(requests_in("*2\r\n$4\r\nAUTH\r\n$1\r\np\r\n", stranger),
            (std::vector<Request>{{"AUTH", "p"}}));
  RequestParser parser{stranger};
  parser.set_authenticated(true);
  EXPECT_EQ(parser.parse("*11\r\n"), State::incomplete);
}

TEST(RequestParser, HoldsTheOtherLimits) {
  EXPECT_EQ(refused_request("*4\r\n", {.words = 3}), "Protocol error: invalid multibulk length");
  EXPECT_EQ(refused_request("a b c d\r\n", {.words = 3}),
            "Protocol error: too many words in inline request");
  EXPECT_EQ(refused_request("*1\r\n$6\r\n", {.bulk = 5}), "Protocol error: invalid bulk length");
  EXPECT_EQ(refused_request("*2\r\n$5\r\nhello\r\n$5\r\n", {.whole = 20}),
            "Protocol error: too big request");
}

TEST(RequestParser, StaysBad) {
  RequestParser parser;
  EXPECT_EQ(parser.parse("*x\r\n"), State::bad);
  EXPECT_EQ(parser.parse("*x\r\nPING\r\n"), State::bad);
  EXPECT_EQ(parser.error_at(), 0U);
}

// --- typed lines ---

using Texts = std::vector<std::string>;

/// The words of a line; one word "!" for a line that is refused.
Texts split(std::string_view line) {
  std::string text;
  std::vector<std::string_view> words;
  if (!split_inline(line, text, words)) return {"!"};
  return {words.begin(), words.end()};
}

TEST(InlineWords, AreSplitAtBlanks) {
  EXPECT_EQ(split("set  k\tv "), (Texts{"set", "k", "v"}));
  EXPECT_EQ(split(""), Texts{});
  EXPECT_EQ(split(" \t\v\f\r"), Texts{});
}

TEST(InlineWords, DoubleQuotesAndEscapes) {
  EXPECT_EQ(split(R"(set "a b" "\n\r\t\b\a\"\\\x41\xfF\q")"),
            (Texts{"set", "a b", "\n\r\t\b\a\"\\A\xffq"}));
  EXPECT_EQ(split(R"("")"), Texts{""});
  EXPECT_EQ(split(R"("\x4")"), Texts{"x4"});
  EXPECT_EQ(split(R"("\x00")"), (Texts{std::string(1, '\0')}));
}

TEST(InlineWords, SingleQuotesTakeAllButThemselves) {
  EXPECT_EQ(split(R"('a "b" \n' 'it\'s')"), (Texts{R"(a "b" \n)", "it's"}));
}

TEST(InlineWords, AQuoteMayOpenInAWordButMustCloseIt) {
  EXPECT_EQ(split(R"(ab"c d")"), Texts{"abc d"});
  EXPECT_EQ(split(R"("a"b)"), Texts{"!"});
  EXPECT_EQ(split(R"('a'"b")"), Texts{"!"});
}

TEST(InlineWords, OpenQuotesAreRefused) {
  for (const char* line : {"\"", "'", "\"abc", "a 'b c", R"("\)", R"("\")", R"('\)"})
    EXPECT_EQ(split(line), Texts{"!"}) << line;
}

TEST(InlineWords, ANulEndsTheLine) {
  EXPECT_EQ(split(std::string_view{"a b\0c d", 7}), (Texts{"a", "b"}));
}

}  // namespace
}  // namespace sluice::resp
