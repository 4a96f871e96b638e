#include "engine/log/record.hpp"

#include <gtest/gtest.h>

#include "engine/log/manifest.hpp"
#include "resp/writer.hpp"
#include "sluice/error.hpp"

namespace sluice::engine {
namespace {

using Kind = ParsedRecord::Kind;

ParsedRecord parse_record(std::string_view bytes) {
  resp::RequestParser parser{record_limits()};
  return engine::parse_record(bytes, parser);
}

std::string record(std::initializer_list<std::string_view> words) {
  return resp::command_bytes(words);
}

TEST(AppendLogRecord, IsRespAndReadsBack) {
  const auto bytes = record({"SET", "k", std::string_view{"a\0\r\n", 4}});
  EXPECT_EQ(bytes, std::string("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\na\0\r\n\r\n", 30));
  resp::RequestParser parser{record_limits()};
  const auto followed = bytes + "*1\r\n";
  const auto parsed = engine::parse_record(followed, parser);
  EXPECT_EQ(parsed.kind, Kind::record);
  EXPECT_EQ(parsed.size, bytes.size());
  const std::vector<std::string_view> words{parser.words().begin(), parser.words().end()};
  EXPECT_EQ(words, (std::vector<std::string_view>{"SET", "k", std::string_view{"a\0\r\n", 4}}));
}

TEST(AppendLogRecord, IsIncompleteAtEveryCut) {
  const auto bytes = record({"RPUSH", "list", "", "12345678901"});
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_EQ(parse_record(std::string_view{bytes}.substr(0, size)).kind, Kind::incomplete) << size;
}

TEST(AppendLogRecord, SkipsComments) {
  const auto parsed = parse_record("#TS:1700000000\r\n*1\r\n");
  EXPECT_EQ(parsed.kind, Kind::comment);
  EXPECT_EQ(parsed.size, 16U);
  EXPECT_EQ(parse_record("#TS:17").kind, Kind::incomplete);
  EXPECT_EQ(parse_record("#" + std::string(2000, 'x')).kind, Kind::damaged);
}

TEST(AppendLogRecord, SaysWhereTheDamageIs) {
  struct Case {
    std::string_view bytes;
    std::size_t at;
  };
  const Case cases[] = {
      {"SET k v\r\n", 0},
      {"*x\r\n", 0},
      {"*0\r\n", 0},
      {"*-1\r\n", 0},
      {"*1\r\n:3\r\nabc\r\n", 4},
      {"*1\r\n$3\r\nabcd\r\n", 11},
      {"*1\rx", 0},
      {"*99999999999999\r\n", 0},
      {"*1\r\n$99999999999\r\n", 4},
  };
  for (const auto& [bytes, at] : cases) {
    const auto parsed = parse_record(bytes);
    EXPECT_EQ(parsed.kind, Kind::damaged) << bytes;
    EXPECT_EQ(parsed.size, at) << bytes;
  }
}

TEST(AppendLogRecord, PutsSeveralEffectsIntoATransaction) {
  std::string one;
  append_execution(one, {{"SELECT", "0"}, {"SET", "k", "v"}});
  EXPECT_EQ(one, record({"select", "0"}) + record({"SET", "k", "v"}));
  std::string two;
  append_execution(two, {{"SELECT", "0"}, {"SET", "k", "v"}, {"DEL", "l"}});
  EXPECT_EQ(two, record({"MULTI"}) + record({"select", "0"}) + record({"SET", "k", "v"}) +
                     record({"DEL", "l"}) + record({"EXEC"}));
}

TEST(AppendLogManifest, ReadsWhatItWrites) {
  Manifest manifest;
  manifest.base = manifest.next_base({});
  manifest.increments.push_back(manifest.next_increment({}));
  manifest.increments.push_back(manifest.next_increment({}));
  const auto text = to_text(manifest);
  EXPECT_EQ(text,
            "file appendonly.aof.1.base.aof seq 1 type b\n"
            "file appendonly.aof.1.incr.aof seq 1 type i\n"
            "file appendonly.aof.2.incr.aof seq 2 type i\n");
  EXPECT_EQ(to_text(parse_manifest("# written by hand\n" + text)), text);
}

TEST(AppendLogManifest, RefusesWhatMakesNoSense) {
  for (const auto* const text : {
           "",
           "file a seq 1 type b",
           "file a seq 1 type x\n",
           "file a seq 1\n",
           "file a/b seq 1 type b\n",
           "file a seq 0 type i\n",
           "file a seq one type i\n",
           "file a seq 1 type b\nfile b seq 2 type b\n",
           "file a seq 2 type i\nfile b seq 1 type i\n",
           "file a seq 1 type b\n\n",
           "nonsense\n",
       }) {
    try {
      parse_manifest(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::corrupt) << text;
    }
  }
}

TEST(AppendLogManifest, KnowsItsOwnFilesFromOthers) {
  EXPECT_TRUE(is_log_file("appendonly.aof.12.base.aof"));
  EXPECT_TRUE(is_log_file("appendonly.aof.1.incr.aof"));
  for (const auto* const name :
       {"appendonly.aof", "appendonly.aof.manifest", "appendonly.aof.1.incr.aof.bak",
        "appendonly.aof.x.incr.aof", "notes.txt"})
    EXPECT_FALSE(is_log_file(name)) << name;
}

}  // namespace
}  // namespace sluice::engine
