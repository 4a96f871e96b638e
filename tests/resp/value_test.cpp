#include "sluice/value.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace sluice {
namespace {

std::string refused_value(auto&& read) {
  try {
    read();
    return "nothing refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::protocol);
    EXPECT_EQ(error.effect(), Effect::done);  // the server has answered
    return error.message();
  }
}

TEST(Value, IsNullAtFirst) {
  EXPECT_TRUE(Value{}.is_null());
  EXPECT_EQ(Value{}, Value{});
  EXPECT_NE(Value{}, Value::integer(0));
}

TEST(Value, ReadsIntegersFromTextToo) {
  EXPECT_EQ(Value::integer(-7).as_integer(), -7);
  EXPECT_EQ(Value::bulk_string("9223372036854775807").as_integer(),
            std::numeric_limits<std::int64_t>::max());
  for (const char* text : {"", "1 ", "x", "9223372036854775808", "1.0"})
    EXPECT_NE(refused_value([&] {
                (void)Value::bulk_string(text).as_integer();
              }).find("expected an integer"),
              std::string::npos);
  EXPECT_EQ(refused_value([] { (void)Value::error("7").as_integer(); }),
            "expected an integer in a reply, found error (error) 7");
}

TEST(Value, ReadsNumbersFromIntegersAndText) {
  EXPECT_EQ(Value::number(1.5).as_number(), 1.5);
  EXPECT_EQ(Value::integer(2).as_number(), 2.0);
  EXPECT_EQ(Value::bulk_string("-inf").as_number(), -std::numeric_limits<double>::infinity());
  EXPECT_NE(refused_value([] { (void)Value{}.as_number(); }).find("found null (nil)"),
            std::string::npos);
}

TEST(Value, ReadsBooleansOfBothProtocols) {
  EXPECT_TRUE(Value::boolean(true).as_boolean());
  EXPECT_TRUE(Value::integer(1).as_boolean());
  EXPECT_FALSE(Value::integer(0).as_boolean());
  EXPECT_NE(refused_value([] { (void)Value::bulk_string("1").as_boolean(); }), "nothing refused");
}

TEST(Value, SaysWhatItFoundInstead) {
  EXPECT_EQ(refused_value([] { (void)Value::integer(1).as_text(); }),
            "expected text in a reply, found integer (integer) 1");
  EXPECT_EQ(refused_value([] { (void)Value::simple_string("OK").as_items(); }),
            "expected an array in a reply, found simple string OK");
}

TEST(Value, IsShownOnOneLine) {
  const auto map =
      Value::aggregate(Value::Type::map, {Value::bulk_string("a\n\"b"), Value::number(0.5)});
  EXPECT_EQ(to_string(Value::array({Value{}, Value::boolean(false), map, Value::error("ERR x")})),
            R"([(nil), false, map["a\x0a\"b", (double) 0.5], (error) ERR x])");
  EXPECT_EQ(to_string(Value::bulk_string(std::string(1000, 'x'))),
            '"' + std::string(200, 'x') + "\"... (1000 bytes)");
}

Value nested(std::size_t depth, Value inner) {
  for (std::size_t i = 0; i < depth; ++i) {
    Value::Items items;
    items.push_back(std::move(inner));
    items.push_back(Value::integer(1));
    inner = Value::array(std::move(items));
  }
  return inner;
}

TEST(Value, E12_DeepOnesAreCopiedComparedShownAndEnded) {
  constexpr std::size_t depth = 200'000;
  const Value deep = nested(depth, Value::bulk_string("x"));
  Value copy = deep;
  EXPECT_TRUE(copy == deep);
  EXPECT_FALSE(nested(depth, Value::bulk_string("y")) == deep);
  EXPECT_FALSE(nested(depth - 1, Value::bulk_string("x")) == deep);
  const auto text = to_string(deep);
  EXPECT_TRUE(text.starts_with("[[[["));
  EXPECT_TRUE(text.ends_with("(integer) 1], (integer) 1]"));
  EXPECT_EQ(to_string(deep, 10), std::string(10, '[') + "...");
  copy = Value{copy.as_items()[0]};
  copy = copy.as_items()[1];
  EXPECT_EQ(copy, Value::integer(1));
  EXPECT_LT(refused_value([&] { (void)deep.as_integer(); }).size(), 2000U);
}

TEST(Value, MayBeAssignedAPartOfItself) {
  Value value = Value::array({Value::array({Value::integer(1)}), Value::integer(2)});
  value = value.as_items()[0];
  EXPECT_EQ(value, Value::array({Value::integer(1)}));
  value = Value{std::move(value.as_items()[0])};
  EXPECT_EQ(value, Value::integer(1));
}

TEST(ErrorOfReply, KnowsRedisCodes) {
  const std::pair<const char*, Errc> rows[] = {
      {"WRONGTYPE Operation against a key holding the wrong kind of value", Errc::wrong_type},
      {"NOAUTH Authentication required.", Errc::authentication},
      {"WRONGPASS invalid username-password pair or user is disabled.", Errc::authentication},
      {"NOPERM this user has no permissions to run the 'get' command", Errc::authentication},
      {"ERR AUTH <password> called without any password configured for the default user.",
       Errc::authentication},
      {"READONLY You can't write against a read only replica.", Errc::read_only},
      {"NOREPLICAS Not enough good replicas to write.", Errc::read_only},
      {"OOM command not allowed when used memory > 'maxmemory'.", Errc::out_of_space},
      {"MISCONF Errors writing to the AOF file: No space left on device", Errc::out_of_space},
      {"NOSCRIPT No matching script. Please use EVAL.", Errc::script},
      {"LOADING Redis is loading the dataset in memory", Errc::server},
      {"ERR syntax error", Errc::server},
      {"WRONGTYPES", Errc::server},
  };
  for (const auto& [reply, errc] : rows) {
    EXPECT_EQ(error_of_reply(reply).errc(), errc) << reply;
    EXPECT_EQ(error_of_reply(reply).effect(), Effect::none) << reply;
    EXPECT_EQ(error_of_reply(reply).message(), reply);
  }
}

TEST(ErrorOfReply, IsOneLineWhateverTheServerSays) {
  EXPECT_EQ(error_of_reply("ERR \x1b[2Jno\r\nmore\x7f").message(), "ERR ?[2Jno??more?");
  EXPECT_LT(error_of_reply("ERR " + std::string(1'000'000, 'x')).message().size(), 5000U);
}

TEST(ErrorOfReply, AScriptThatFailsMayHaveWritten) {
  const auto plain = error_of_reply("ERR user_script:1: oops script: 0123, on @user_script:1.");
  EXPECT_EQ(plain.errc(), Errc::script);
  EXPECT_EQ(plain.effect(), Effect::unknown);
  const auto typed =
      error_of_reply("WRONGTYPE Operation against a key script: 0123, on @user_script:1.");
  EXPECT_EQ(typed.errc(), Errc::wrong_type);
  EXPECT_EQ(typed.effect(), Effect::unknown);
}

}  // namespace
}  // namespace sluice
