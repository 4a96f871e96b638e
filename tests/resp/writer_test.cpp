#include "resp/writer.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

namespace sluice::resp {
namespace {

TEST(AppendCommand, IsAnArrayOfBulkStrings) {
  std::string out = "before";
  const std::array<std::string_view, 3> words{"SET", "", std::string_view{"\0\r\n", 3}};
  append_command(out, words);
  EXPECT_EQ(out, std::string("before*3\r\n$3\r\nSET\r\n$0\r\n\r\n$3\r\n\0\r\n\r\n", 34));
  EXPECT_EQ(command_size(words), out.size() - 6);
}

TEST(AppendCommand, KnowsItsSizeAtEveryLength) {
  for (const std::size_t length : {0, 1, 9, 10, 99, 100, 999, 1000, 99'999, 100'000}) {
    const std::string word(length, 'x');
    const std::vector<std::string_view> words(length % 13 + 1, word);
    std::string out;
    append_command(out, words);
    EXPECT_EQ(out.size(), command_size(words)) << length;
  }
}

TEST(AppendCommand, PiecewiseIsTheSame) {
  const std::array<std::string_view, 2> words{"GET", "key"};
  std::string whole;
  std::string pieces;
  append_command(whole, words);
  append_command_header(pieces, 2);
  for (const auto word : words) append_bulk(pieces, word);
  EXPECT_EQ(pieces, whole);
}

template <class Write>
std::string written(int protocol, Write write) {
  std::string out;
  ReplyWriter writer{out, protocol};
  write(writer);
  return out;
}

struct WriterRow {
  const char* name;
  void (*write)(ReplyWriter&);
  std::string resp2;
  std::string resp3;
};

void PrintTo(const WriterRow& row, std::ostream* out) { *out << row.name; }

class ReplyForm : public testing::TestWithParam<WriterRow> {};

TEST_P(ReplyForm, IsThatOfRedis) {
  EXPECT_EQ(written(2, GetParam().write), GetParam().resp2);
  EXPECT_EQ(written(3, GetParam().write), GetParam().resp3);
}

constexpr double infinity = std::numeric_limits<double>::infinity();
const WriterRow writer_rows[] = {
    {"null", [](ReplyWriter& w) { w.null(); }, "$-1\r\n", "_\r\n"},
    {"null_array", [](ReplyWriter& w) { w.null_array(); }, "*-1\r\n", "_\r\n"},
    {"integer", [](ReplyWriter& w) { w.integer(std::numeric_limits<std::int64_t>::min()); },
     ":-9223372036854775808\r\n", ":-9223372036854775808\r\n"},
    {"number", [](ReplyWriter& w) { w.number(0.1); }, "$3\r\n0.1\r\n", ",0.1\r\n"},
    {"whole_number", [](ReplyWriter& w) { w.number(3); }, "$1\r\n3\r\n", ",3\r\n"},
    {"infinity", [](ReplyWriter& w) { w.number(-infinity); }, "$4\r\n-inf\r\n", ",-inf\r\n"},
    {"nan", [](ReplyWriter& w) { w.number(-std::nan("")); }, "$3\r\nnan\r\n", ",nan\r\n"},
    {"boolean", [](ReplyWriter& w) { w.boolean(true), w.boolean(false); }, ":1\r\n:0\r\n",
     "#t\r\n#f\r\n"},
    {"simple", [](ReplyWriter& w) { w.simple("OK"); }, "+OK\r\n", "+OK\r\n"},
    {"bulk", [](ReplyWriter& w) { w.bulk("a\r\n"); }, "$3\r\na\r\n\r\n", "$3\r\na\r\n\r\n"},
    {"verbatim", [](ReplyWriter& w) { w.verbatim("abc"); }, "$3\r\nabc\r\n", "=7\r\ntxt:abc\r\n"},
    {"big_number", [](ReplyWriter& w) { w.big_number("123"); }, "$3\r\n123\r\n", "(123\r\n"},
    {"error", [](ReplyWriter& w) { w.error("ERR a\r\n+OK"); }, "-ERR a  +OK\r\n",
     "-ERR a  +OK\r\n"},
    {"array", [](ReplyWriter& w) { w.array(2); }, "*2\r\n", "*2\r\n"},
    {"set", [](ReplyWriter& w) { w.set(2); }, "*2\r\n", "~2\r\n"},
    {"map", [](ReplyWriter& w) { w.map(2); }, "*4\r\n", "%2\r\n"},
    {"push", [](ReplyWriter& w) { w.push(3); }, "*3\r\n", ">3\r\n"},
};

INSTANTIATE_TEST_SUITE_P(Forms, ReplyForm, testing::ValuesIn(writer_rows),
                         [](const auto& row) { return std::string{row.param.name}; });

TEST(ReplyWriter, WritesATree) {
  const auto tree = Value::aggregate(
      Value::Type::map,
      {Value::bulk_string("k"), Value::array({Value::integer(1), Value{}, Value::boolean(true)})});
  EXPECT_EQ(written(2, [&](ReplyWriter& w) { w.value(tree); }),
            "*2\r\n$1\r\nk\r\n*3\r\n:1\r\n$-1\r\n:1\r\n");
  EXPECT_EQ(written(3, [&](ReplyWriter& w) { w.value(tree); }),
            "%1\r\n$1\r\nk\r\n*3\r\n:1\r\n_\r\n#t\r\n");
}

}  // namespace
}  // namespace sluice::resp
