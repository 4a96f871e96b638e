#include "proxy/redis/readers.hpp"

#include <gtest/gtest.h>

#include "proxy/support/planning.hpp"

namespace sluice::proxy {
namespace {

using State = ReplyReader::State;

constexpr std::string_view replies[] = {
    "+OK\r\n",
    "-ERR no\r\n",
    ":-12\r\n",
    "$-1\r\n",
    "*-1\r\n",
    "$0\r\n\r\n",
    "$5\r\na\r\nbc\r\n",
    "*0\r\n",
    "*2\r\n$1\r\na\r\n*2\r\n:1\r\n*1\r\n+x\r\n",
    "_\r\n",
    "#t\r\n",
    ",1.5\r\n",
    "(12345678901234567890\r\n",
    "!5\r\nERR x\r\n",
    "=7\r\ntxt:abc\r\n",
    "%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n:2\r\n",
    "~2\r\n:1\r\n:2\r\n",
    ">2\r\n+message\r\n$1\r\nx\r\n",
    "|1\r\n+ttl\r\n:3\r\n*2\r\n:1\r\n|1\r\n+a\r\n%1\r\n+b\r\n+c\r\n:2\r\n",
    "%0\r\n",
    "|0\r\n+x\r\n",
};

TEST(RedisReplyReader, FindsTheEndAtEverySplit) {
  for (const auto reply : replies) {
    const std::string bytes = std::string{reply} + "+NEXT\r\n";
    for (std::size_t cut = 0; cut <= reply.size(); ++cut) {
      RedisReplyReader reader{1 << 20};
      if (cut < reply.size()) {
        ASSERT_EQ(reader.read(std::string{bytes.substr(0, cut)}), State::incomplete)
            << reply << cut;
        ASSERT_LE(reader.missing(), reply.size() - cut) << reply << cut;
        ASSERT_GE(reader.missing(), 1U);
      }
      ASSERT_EQ(reader.read(bytes), State::complete) << reply << cut;
      ASSERT_EQ(reader.size(), reply.size()) << reply << cut;
      ASSERT_EQ(reader.is_push(), reply.starts_with('>')) << reply;
    }
  }
}

TEST(RedisReplyReader, ReadsAStreamByteByByte) {
  std::string stream;
  for (const auto reply : replies) stream += reply;
  RedisReplyReader reader{1 << 20};
  std::string buffer;
  std::vector<std::string> found;
  for (const char byte : stream) {
    buffer = buffer + byte;
    while (!buffer.empty() && reader.read(buffer) == State::complete) {
      found.push_back(buffer.substr(0, reader.size()));
      buffer.erase(0, reader.size());
    }
  }
  EXPECT_EQ(found, (std::vector<std::string>{std::begin(replies), std::end(replies)}));
}

TEST(RedisReplyReader, NestingCostsNothing) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "*1\r\n";
  RedisReplyReader reader{1 << 20};
  EXPECT_EQ(reader.read(deep), State::incomplete);
  deep += ":1\r\n";
  EXPECT_EQ(reader.read(deep), State::complete);
  EXPECT_EQ(reader.size(), deep.size());
}

TEST(RedisReplyReader, RefusesGarbage) {
  for (const std::string_view bytes : {"x",
                                       "HTTP/1.1 400\r\n",
                                       "\r\n",
                                       "+a\n",
                                       "+a\rb\r\n",
                                       ":\r\n",
                                       ":x\r\n",
                                       ":1 \r\n",
                                       "$\r\n",
                                       "$-2\r\n",
                                       "$+1\r\n",
                                       "$1x\r\n",
                                       "$1\r\nab\r\n",
                                       "$1\r\na\rx",
                                       "*-2\r\n",
                                       "%-1\r\n",
                                       "*9999999999\r\n",
                                       "$9999999999999\r\n",
                                       "$?\r\n",
                                       "*?\r\n",
                                       ";4\r\n",
                                       ".\r\n",
                                       "#x\r\n",
                                       "_x\r\n",
                                       ",\r\n",
                                       "$99999999999999999999999\r\n",
                                       "*1\rx"}) {
    RedisReplyReader reader{1 << 20};
    EXPECT_EQ(reader.read(bytes), State::bad) << bytes;
    EXPECT_EQ(reader.read(bytes), State::bad) << bytes;
  }
}

TEST(RedisReplyReader, HoldsItsLimits) {
  RedisReplyReader small{100};
  EXPECT_EQ(small.read("$95\r\n"), State::bad);
  RedisReplyReader fits{100};
  EXPECT_EQ(fits.read("$90\r\n"), State::incomplete);
  RedisReplyReader line{80'000};  // a line may be as long as any reply
  EXPECT_EQ(line.read("+" + std::string(70'000, 'a')), State::incomplete);
  EXPECT_EQ(line.read("+" + std::string(80'000, 'a')), State::bad);
  EXPECT_TRUE(line.is_too_long());
}

TEST(RedisWire, StepsOverAttributes) {
  EXPECT_EQ(without_attributes("|1\r\n+a\r\n|1\r\n+b\r\n+c\r\n:1\r\n:7\r\n"), ":7\r\n");
  EXPECT_EQ(reply_size("|1\r\n+a\r\n:1\r\n:7\r\n+more\r\n"), 16U);
}

constexpr std::string_view edge_requests[] = {
    "*2\r\n$3\r\nGET\r\n$1\r\na\r\n",
    "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$12\r\n\r\n*1\r\n$4\r\nPI\r\n",
    "*4\r\n$4\r\nMGET\r\n$1\r\na\r\n$0\r\n\r\n$10\r\nabcdefghij\r\n",
    "set k 'a b'\r\n",
    "*0\r\n",
};

TEST(RedisRequestReader, FindsTheEndAtEverySplit) {
  const auto protocol = make_redis_protocol(redis_settings());
  for (const auto request : edge_requests) {
    const std::string bytes = std::string{request} + "*1\r\n$4\r\nPING\r\n";
    const auto whole = protocol->request_reader();
    ASSERT_EQ(whole->read(bytes), State::complete);
    const std::vector<std::string> words{whole->words().begin(), whole->words().end()};
    for (std::size_t cut = 0; cut < request.size(); ++cut) {
      const auto reader = protocol->request_reader();
      ASSERT_EQ(reader->read(std::string{bytes.substr(0, cut)}), State::incomplete)
          << request << cut;
      ASSERT_EQ(reader->read(bytes), State::complete) << request << cut;
      ASSERT_EQ(reader->size(), request.size());
      ASSERT_EQ((std::vector<std::string>{reader->words().begin(), reader->words().end()}), words);
    }
  }
}

TEST(RedisRequestReader, SaysWhatIsWrong) {
  auto settings = redis_settings();
  settings.request_size_limit = 100;
  settings.request_words_limit = 4;
  const auto protocol = make_redis_protocol(settings);
  const std::pair<const char*, const char*> rows[] = {
      {"*1\r\n+OK\r\n", "-ERR Protocol error: expected '$', got '+'\r\n"},
      {"*5\r\n", "-ERR Protocol error: invalid multibulk length\r\n"},
      {"*1\r\n$101\r\n", "-ERR Protocol error: invalid bulk length\r\n"},
      {"*2\r\n$60\r\n123456789012345678901234567890123456789012345678901234567890\r\n$60\r\n",
       "-ERR Protocol error: too big request\r\n"},
  };
  for (const auto& [bytes, reply] : rows) {
    const auto reader = protocol->request_reader();
    EXPECT_EQ(reader->read(bytes), State::bad) << bytes;
    EXPECT_EQ(reader->error_reply(), reply) << bytes;
  }
}

TEST(RedisRequestReader, ServersGetArraysAlone) {
  RedisRequestReader reader{{}, false};
  const std::pair<std::string, std::string> rows[] = {
      {"*2\r\n$3\r\nGET\r\n$1\r\na\r\n", "*2\r\n$3\r\nGET\r\n$1\r\na\r\n"},
      {"GET a\r\n", "*2\r\n$3\r\nGET\r\n$1\r\na\r\n"},
      {"  get\t'a\\'b' \"\\x20\"\n", "*3\r\n$3\r\nget\r\n$3\r\na'b\r\n$1\r\n \r\n"},
  };
  for (const auto& [bytes, wire] : rows) {
    ASSERT_EQ(reader.read(bytes), RequestReader::State::complete) << bytes;
    EXPECT_EQ(reader.wire(bytes + "rest"), wire) << bytes;
  }
}

TEST(RedisRequestReader, OddHeadersAreRefused) {
  for (const auto* const bytes :
       {"*01\r\n", "*+1\r\n", "* 1\r\n", "*1 \r\n", "*1\r\r\n", "*1\r\n$04\r\n", "*1\r\n$+4\r\n",
        "*1\r\n$ 4\r\n", "*1\r\n$-1\r\n", "*1\r\n$4\r\nPINGxx", "*1\r\n$4\nPING\n*\r\n", "*1\r\n\r",
        "*1\r\n\n"}) {
    RedisRequestReader reader{{}, false};
    ASSERT_EQ(reader.read(bytes), RequestReader::State::bad) << bytes;
    const auto reply = reader.error_reply();
    EXPECT_TRUE(reply.starts_with("-ERR Protocol error: ")) << reply;
    EXPECT_EQ(reply.find_first_of("\r\n"), reply.size() - 2) << reply;
  }
}

TEST(RedisRequestReader, X04_ANulInATypedLineIsRefused) {
  RedisRequestReader reader{{}, false};
  EXPECT_EQ(reader.read(std::string_view{"GET x\0\r\n", 8}), RequestReader::State::bad);
  EXPECT_EQ(reader.error_reply(), "-ERR Protocol error: a NUL in inline request\r\n");
}

TEST(RedisRequestReader, X25_StrictClosesAndWaitsAsTwemproxy) {
  const auto state = [](std::string_view bytes) {
    return RedisRequestReader{{}, true}.read(bytes);
  };
  for (const auto* const bytes : {"*2\n", "*2\n$3\nGET\n$1\na\n", "*2\r\n$3\n", "*x", "*2\rx",
                                  "*2\r\n$3x", "*2\r\n$\r\n", "\n", " *2\r\n"})
    EXPECT_EQ(state(bytes), RequestReader::State::bad) << bytes;
  for (const auto* const bytes : {"*", "*2", "*2\r", "*2\r\n$3", "*99999999999", "*99999999999\r\n",
                                  "*2000000\r\n$4\r\nMGET\r\n$1\r\na\r\n"})
    EXPECT_EQ(state(bytes), RequestReader::State::incomplete) << bytes;
  resp::RequestLimits limits;
  limits.words = 2;
  EXPECT_EQ(RedisRequestReader(limits, true).read("*3\r\n$4\r\nMGET\r\n$1\r\na\r\n$1\r\na\r\n"),
            RequestReader::State::bad);
}

}  // namespace
}  // namespace sluice::proxy
