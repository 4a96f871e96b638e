#include "resp/reply_parser.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace sluice::resp {
namespace {

/// All replies of `bytes`, which are shown in pieces of `step` bytes.
std::vector<Value> parse(std::string_view bytes, std::size_t step, ReplyLimits limits = {}) {
  ReplyParser parser{limits};
  std::vector<Value> values;
  while (!bytes.empty()) {
    auto piece = bytes.substr(0, step);
    bytes.remove_prefix(piece.size());
    while (auto value = parser.next(piece)) values.push_back(std::move(*value));
    EXPECT_TRUE(piece.empty());
  }
  EXPECT_TRUE(parser.idle());
  return values;
}

Value parse_one(std::string_view bytes) {
  auto values = parse(bytes, bytes.size());
  EXPECT_EQ(values.size(), 1U);
  return values.empty() ? Value{} : std::move(values.front());
}

std::string refusal(std::string_view bytes, ReplyLimits limits = {}) {
  try {
    ReplyParser parser{limits};
    while (parser.next(bytes)) {
    }
    return "nothing refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::protocol);
    return error.message();
  }
}

TEST(ReplyParser, ReadsEveryType) {
  using Type = Value::Type;
  EXPECT_EQ(parse_one("+OK\r\n"), Value::simple_string("OK"));
  EXPECT_EQ(parse_one("+\r\n"), Value::simple_string(""));
  EXPECT_EQ(parse_one("-ERR no\r\n"), Value::error("ERR no"));
  EXPECT_EQ(parse_one("!6\r\nE\r\n no\r\n"), Value::error("E\r\n no"));
  EXPECT_EQ(parse_one(":-9223372036854775808\r\n"),
            Value::integer(std::numeric_limits<std::int64_t>::min()));
  EXPECT_EQ(parse_one(":+7\r\n"), Value::integer(7));
  EXPECT_EQ(parse_one("$0\r\n\r\n"), Value::bulk_string(""));
  EXPECT_EQ(parse_one("$4\r\na\r\nb\r\n"), Value::bulk_string("a\r\nb"));
  EXPECT_EQ(parse_one("=7\r\ntxt:abc\r\n"), Value::text(Type::verbatim, "abc"));
  EXPECT_EQ(parse_one("(12345678901234567890123\r\n"),
            Value::text(Type::big_number, "12345678901234567890123"));
  EXPECT_EQ(parse_one(",3.25\r\n"), Value::number(3.25));
  EXPECT_EQ(parse_one(",1e-7\r\n"), Value::number(1e-7));
  EXPECT_EQ(parse_one(",-inf\r\n"), Value::number(-std::numeric_limits<double>::infinity()));
  EXPECT_TRUE(std::isnan(parse_one(",nan\r\n").as_number()));
  EXPECT_EQ(parse_one("#t\r\n"), Value::boolean(true));
  EXPECT_EQ(parse_one("#f\r\n"), Value::boolean(false));
  for (const char* null : {"_\r\n", "$-1\r\n", "*-1\r\n"})
    EXPECT_TRUE(parse_one(null).is_null()) << null;
}

TEST(ReplyParser, ReadsAggregates) {
  using Type = Value::Type;
  const Value one = Value::integer(1);
  EXPECT_EQ(parse_one("*0\r\n"), Value::array({}));
  EXPECT_EQ(parse_one("*2\r\n:1\r\n*1\r\n:1\r\n"), Value::array({one, Value::array({one})}));
  EXPECT_EQ(parse_one("%1\r\n:1\r\n~1\r\n:1\r\n"),
            Value::aggregate(Type::map, {one, Value::aggregate(Type::set, {one})}));
  EXPECT_EQ(parse_one(">2\r\n+message\r\n:1\r\n"),
            Value::aggregate(Type::push, {Value::simple_string("message"), one}));
}

TEST(ReplyParser, SkipsAttributesWhereverTheyStand) {
  const Value one = Value::integer(1);
  EXPECT_EQ(parse_one("|1\r\n+key-popularity\r\n%1\r\n$1\r\na\r\n,0.19\r\n:1\r\n"), one);
  EXPECT_EQ(parse_one("*2\r\n:1\r\n|1\r\n+ttl\r\n:3600\r\n:1\r\n"), Value::array({one, one}));
  EXPECT_EQ(parse_one("|0\r\n:1\r\n"), one);
}

constexpr std::string_view mixed =
    "*3\r\n$5\r\nhello\r\n:12\r\n*2\r\n$0\r\n\r\n$-1\r\n+OK\r\n%1\r\n$1\r\na\r\n,1.5\r\n|1\r\n+"
    "x\r\n+y\r\n=7\r\ntxt:a\r\n\r\n"
    "!5\r\nERR a\r\n>1\r\n+p\r\n~1\r\n#t\r\n-ERR no\r\n(99\r\n_\r\n";

TEST(ReplyParser, GivesTheSameInPiecesOfAnySize) {
  const auto whole = parse(mixed, mixed.size());
  EXPECT_EQ(whole.size(), 10U);
  for (std::size_t step = 1; step < mixed.size(); ++step)
    EXPECT_EQ(parse(mixed, step), whole) << step;
}

TEST(ReplyParser, GivesTheSameCutAnywhere) {
  const auto whole = parse(mixed, mixed.size());
  for (std::size_t cut = 0; cut <= mixed.size(); ++cut) {
    ReplyParser parser;
    std::vector<Value> values;
    for (auto piece : {mixed.substr(0, cut), mixed.substr(cut)})
      while (auto value = parser.next(piece)) values.push_back(std::move(*value));
    EXPECT_EQ(values, whole) << cut;
  }
}

TEST(ReplyParser, LeavesWhatComesAfterAReply) {
  ReplyParser parser;
  std::string_view input = ":1\r\n:2\r\n:";
  EXPECT_EQ(parser.next(input), Value::integer(1));
  EXPECT_EQ(input, ":2\r\n:");
  EXPECT_EQ(parser.next(input), Value::integer(2));
  EXPECT_TRUE(parser.idle());
  EXPECT_EQ(parser.next(input), std::nullopt);
  EXPECT_TRUE(input.empty());
  EXPECT_FALSE(parser.idle());
}

TEST(ReplyParser, BeginsAnewAfterReset) {
  for (std::string_view begun : {"*2\r\n:1\r\n", "$5\r\nhel", "+O", "|1\r\n"}) {
    ReplyParser parser;
    EXPECT_EQ(parser.next(begun), std::nullopt);
    parser.reset();
    EXPECT_TRUE(parser.idle());
    std::string_view input = "+OK\r\n";
    EXPECT_EQ(parser.next(input), Value::simple_string("OK"));
  }
}

TEST(ReplyParser, RefusesWhatIsNotResp) {
  const std::pair<const char*, const char*> rows[] = {
      {"HTTP/1.1 400\r\n", "expected a type, found 'H'"},
      {"\r\n", "an empty line"},
      {"\x16\x03\r\n", "found byte 0x16"},
      {"+OK\n", "without CR LF"},
      {":\r\n", "invalid integer"},
      {":1 \r\n", "invalid integer"},
      {":+-1\r\n", "invalid integer"},
      {":9223372036854775808\r\n", "invalid integer"},
      {",1,5\r\n", "invalid double"},
      {"#x\r\n", "expected #t or #f"},
      {"_x\r\n", "expected nothing after '_'"},
      {"$x\r\n", "invalid bulk length"},
      {"$-2\r\n", "negative bulk length"},
      {"*-2\r\n", "negative aggregate length"},
      {"%-1\r\n", "negative aggregate length"},
      {"$3\r\nabcd\r\n", "expected a line end after a string"},
      {"=3\r\nabc\r\n", "without its format"},
      {"=4\r\ntxt.\r\n", "without its format"},
      {"$?\r\n", "streamed"},
      {"*?\r\n", "streamed"},
      {";4\r\n", "streamed"},
      {".\r\n", "streamed"},
  };
  for (const auto& [bytes, reason] : rows)
    EXPECT_NE(refusal(bytes).find(reason), std::string::npos) << bytes << ": " << refusal(bytes);
}

TEST(ReplyParser, RefusesACutStringWithTheSameReason) {
  ReplyParser parser;
  std::string_view first = "$3\r\nab";
  std::string_view rest = "cd\r\n";
  EXPECT_EQ(parser.next(first), std::nullopt);
  EXPECT_THROW((void)parser.next(rest), Error);
}

TEST(ReplyParser, NamesTheByte) {
  EXPECT_NE(refusal("+OK\r\n*2\r\n:1\r\n?\r\n").find("at byte 13 "), std::string::npos)
      << refusal("+OK\r\n*2\r\n:1\r\n?\r\n");
}

TEST(ReplyParser, TakesWhatIsWithinItsLimits) {
  const ReplyLimits limits{.bulk = 5, .line = 10, .items = 4, .depth = 2};
  for (const char* const bytes :
       {"$5\r\nhello\r\n", "+1234567\r\n", "*4\r\n:1\r\n:1\r\n:1\r\n:1\r\n",
        "%2\r\n:1\r\n:1\r\n:1\r\n:1\r\n", "*1\r\n*1\r\n:1\r\n"}) {
    const auto values = parse(bytes, 3, limits);
    ASSERT_EQ(values.size(), 1U) << bytes;
    EXPECT_FALSE(values[0].is_error()) << bytes;
  }
}

TEST(ReplyParser, RefusesWhatHasNoEndInSight) {
  const ReplyLimits limits{.line = 10, .items = 4, .passed_over = 7};
  EXPECT_NE(refusal("*5\r\n", limits).find("over the limit of 4"), std::string::npos);
  EXPECT_NE(refusal("%3\r\n", limits).find("over the limit of 2"), std::string::npos);
  EXPECT_NE(refusal("$8\r\n", limits).find("over the limit of 7"), std::string::npos);
  EXPECT_NE(refusal(":12345678901", limits).find("a line longer than 10 bytes"), std::string::npos);
  const ReplyLimits flat{.items = 4, .depth = 1, .passed_over = 7};
  EXPECT_NE(refusal("*4\r\n*4\r\n*4\r\n*4\r\n", flat).find("elements to come are over"),
            std::string::npos);
}

/// What is given for `bytes` by a parser with small limits, in pieces of any size; what comes
/// behind them must be untouched.
Value passed_over(std::string bytes, ReplyLimits limits) {
  bytes += ":42\r\n";
  const auto whole = parse(bytes, bytes.size(), limits);
  for (std::size_t step = 1; step < bytes.size(); ++step)
    EXPECT_EQ(parse(bytes, step, limits), whole) << bytes << step;
  EXPECT_EQ(whole.size(), 2U) << bytes;
  EXPECT_EQ(whole.back(), Value::integer(42)) << bytes;
  return whole.front();
}

TEST(ReplyParser, E12_WhatIsBeyondALimitIsPassedOver) {
  const ReplyLimits limits{.bulk = 5, .line = 10, .items = 4, .depth = 2};
  const std::pair<const char*, const char*> rows[] = {
      {"*1\r\n*1\r\n*1\r\n:1\r\n", "nested deeper than 2"},
      {"*2\r\n*2\r\n*1\r\n:1\r\n:2\r\n$-1\r\n", "nested deeper than 2"},
      {"%1\r\n+a\r\n~2\r\n*2\r\n%1\r\n+a\r\n*0\r\n_\r\n*-1\r\n", "nested deeper than 2"},
      {"*2\r\n:1\r\n*1\r\n|1\r\n+a\r\n*1\r\n*1\r\n:1\r\n#t\r\n", "nested deeper than 2"},
      {"|1\r\n+a\r\n*1\r\n*1\r\n:1\r\n*1\r\n,1\r\n", "nested deeper than 2"},
      {"$6\r\nhello!\r\n", "a string of 6 bytes, above 5"},
      {"*2\r\n!6\r\nhello!\r\n=5\r\ntxt:a\r\n", "a string of 6 bytes, above 5"},
      {"+12345678\r\n", "a line longer than 10 bytes"},
      {"*3\r\n:1\r\n+123456789012345678901\r\n-ERR too long as well\r\n", "a line longer than 10"},
  };
  for (const auto& [bytes, reason] : rows) {
    const Value value = passed_over(bytes, limits);
    ASSERT_TRUE(value.is_error()) << bytes;
    EXPECT_TRUE(value.as_text().starts_with(beyond_a_limit)) << value.as_text();
    EXPECT_NE(value.as_text().find(reason), std::string::npos) << value.as_text();
    EXPECT_EQ(error_of_reply(value.as_text()).effect(), Effect::done);
    EXPECT_EQ(error_of_reply(value.as_text()).errc(), Errc::protocol);
  }
}

TEST(ReplyParser, E12_APushBeyondALimitIsStillNoReply) {
  const ReplyLimits limits{.bulk = 5, .line = 10, .items = 4, .depth = 2};
  const auto push = Value::aggregate(Value::Type::push, {});
  for (const char* const bytes : {">1\r\n*1\r\n*1\r\n:1\r\n", ">2\r\n+a\r\n$6\r\nhello!\r\n",
                                  "|1\r\n+a\r\n*1\r\n*1\r\n:1\r\n>1\r\n,1\r\n"})
    EXPECT_EQ(passed_over(bytes, limits), push) << bytes;
}

TEST(ReplyParser, ALongErrorIsCut) {
  EXPECT_EQ(passed_over("-ERR 456789 0\r\n", {.line = 10}), Value::error("ERR 45678..."));
}

TEST(ReplyParser, AWholeReplyHasALimit) {
  std::string bytes = "*100\r\n";
  for (int i = 0; i < 100; ++i) bytes += "$3\r\nabc\r\n";
  EXPECT_EQ(parse(bytes, 64, {.whole = 10'000}).front().as_items().size(), 100U);
  const Value value = passed_over(bytes, {.whole = 3'000});
  EXPECT_EQ(value.as_text(), std::string{beyond_a_limit} + "larger than 3000 bytes");
}

TEST(ReplyParser, E12_ScriptsMayAnswerAsDeepAsTheyCan) {
  constexpr int depth = 10'000;
  std::string bytes;
  for (int i = 0; i < depth; ++i) bytes += "*1\r\n";
  Value value = parse_one(bytes + ":7\r\n");
  for (int i = 0; i < depth; ++i) value = Value{std::move(value.as_items().at(0))};
  EXPECT_EQ(value, Value::integer(7));
  EXPECT_TRUE(parse_one("*1\r\n" + bytes + ":7\r\n").is_error());
}

TEST(ReplyParser, ReservesLittleForBigAnnouncements) {
  ReplyParser parser;
  std::string bytes;
  for (int i = 0; i < 9'999; ++i) bytes += "*2147483647\r\n";
  bytes += "$536870912\r\n";
  std::string_view input = bytes;
  EXPECT_EQ(parser.next(input), std::nullopt);  // would need terabytes if it believed them
}

}  // namespace
}  // namespace sluice::resp
