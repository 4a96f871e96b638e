#include "proxy/memcached/readers.hpp"

#include <gtest/gtest.h>

#include "proxy/support/planning.hpp"

namespace sluice::proxy {
namespace {

using State = RequestReader::State;
using Request = std::vector<std::string>;

Request copied(Words words) { return {words.begin(), words.end()}; }

constexpr std::string_view requests[] = {
    "get a bb ccc\r\n",    "get a\n", "\r\n", "set k 0 0 5\r\na\r\nbc\r\n", "set k 0 0 0\r\n\r\n",
    "ms k 2 T0\r\nxy\r\n", "mn\r\n",
};

TEST(MemcachedRequestReader, FindsTheEndAtEverySplit) {
  for (const auto request : requests) {
    const std::string bytes = std::string{request} + "get next\r\n";
    MemcachedRequestReader whole{{}};
    ASSERT_EQ(whole.read(bytes), State::complete);
    const auto words = copied(whole.words());
    for (std::size_t cut = 0; cut < request.size(); ++cut) {
      MemcachedRequestReader reader{{}};
      ASSERT_EQ(reader.read(std::string{bytes.substr(0, cut)}), State::incomplete)
          << request << cut;
      ASSERT_LE(reader.missing(), request.size() - cut);
      ASSERT_EQ(reader.read(bytes), State::complete) << request << cut;
      ASSERT_EQ(reader.size(), request.size()) << request << cut;
      ASSERT_EQ(copied(reader.words()), words);
    }
  }
}

TEST(MemcachedRequestReader, TheDataAreTheLastWord) {
  MemcachedRequestReader reader{{}};
  ASSERT_EQ(reader.read("set  k 1 0 5 noreply\r\na b\r\n\r\nrest"), State::complete);
  EXPECT_EQ(copied(reader.words()), (Request{"set", "k", "1", "0", "5", "noreply", "a b\r\n"}));
  ASSERT_EQ(reader.read("\r\n"), State::complete);
  EXPECT_EQ(copied(reader.words()), Request{""});
}

TEST(MemcachedRequestReader, SaysWhatIsWrong) {
  const std::pair<std::string, std::string> rows[] = {
      {"\x80\x01",
       "CLIENT_ERROR the binary protocol is not served here: use the text protocol\r\n"},
      {"set k 0 0 3\r\nabcdef\r\n", "CLIENT_ERROR bad data chunk\r\n"},
      {"set k 0 0 200\r\n", "SERVER_ERROR object too large for cache\r\n"},
      {"get a b c d e f\r\n", "CLIENT_ERROR the line has too many words\r\n"},
      {std::string(200, 'x'), "CLIENT_ERROR the line is too long\r\n"},
  };
  for (const auto& [bytes, reply] : rows) {
    MemcachedRequestReader reader{{.whole = 100, .words = 6}};
    EXPECT_EQ(reader.read(bytes), State::bad) << bytes;
    EXPECT_EQ(reader.error_reply(), reply) << bytes;
    EXPECT_EQ(reader.read(bytes), State::bad);
  }
}

TEST(MemcachedRequestReader, StrictLinesEndWithBoth) {
  MemcachedRequestReader reader{{.strict = true}};
  EXPECT_EQ(reader.read("get a\n"), State::incomplete);
  EXPECT_EQ(reader.read("get a\nb\r"), State::incomplete);
  EXPECT_EQ(reader.read("get a\nb\r\n"), State::complete);
  EXPECT_EQ(copied(reader.words()), (Request{"get", "a\nb"}));
}

TEST(MemcachedRequestReader, X18_LinesAreAsLongAsMemcachedReadsThem) {
  for (const auto* const command : {"delete ", "gat 0 ", "nosuch "}) {
    const auto line = command + std::string(2047 - std::string_view{command}.size(), 'k');
    EXPECT_EQ(MemcachedRequestReader{{}}.read(line + "\n"), State::complete) << command;
    EXPECT_EQ(MemcachedRequestReader{{}}.read(line), State::incomplete) << command;
    EXPECT_EQ(MemcachedRequestReader{{}}.read(line + "k"), State::bad) << command;
  }
  EXPECT_EQ(MemcachedRequestReader{{}}.read("gets " + std::string(50'000, 'k') + "\r\n"),
            State::complete);
}

constexpr std::string_view replies[] = {
    "STORED\r\n",
    "END\r\n",
    "VALUE k 0 5\r\na\r\nEN\r\nEND\r\n",
    "VALUE k 0 0\r\n\r\nVALUE l 1 3 77\r\nEND\r\nEND\r\n",
    "VALUE k 0 1\r\nx\r\nSERVER_ERROR out of memory writing get response\r\n",
    "STAT pid 1\r\nSTAT version 1.6\r\nEND\r\n",
    "RESET\r\n",
    "VERSION 1.6.18\r\n",
    "12\r\n",
    "5  \r\n",
    "VA 5 t0 s1\r\nHD\r\n1\r\n",
    "HD O1 kx\r\n",
    "EN\r\n",
    "NF\r\n",
    "NS\r\n",
    "EX\r\n",
    "MN\r\n",
    "ME k exp=-1 la=0\r\n",
    "ERROR\r\n",
    "CLIENT_ERROR bad data chunk\r\n",
    "SERVER_ERROR x\r\n",
    "NOT_STORED\r\n",
    "NOT_FOUND\r\n",
    "EXISTS\r\n",
    "DELETED\r\n",
    "TOUCHED\r\n",
    "OK\r\n",
};

TEST(MemcachedReplyReader, FindsTheEndAtEverySplit) {
  for (const auto reply : replies) {
    const std::string bytes = std::string{reply} + "STORED\r\n";
    for (std::size_t cut = 0; cut < reply.size(); ++cut) {
      MemcachedReplyReader reader{1 << 20};
      ASSERT_EQ(reader.read(std::string{bytes.substr(0, cut)}), State::incomplete) << reply << cut;
      ASSERT_LE(reader.missing(), reply.size() - cut) << reply << cut;
      ASSERT_EQ(reader.read(bytes), State::complete) << reply << cut;
      ASSERT_EQ(reader.size(), reply.size()) << reply << cut;
    }
  }
}

TEST(MemcachedReplyReader, ReadsAStreamByteByByte) {
  std::string stream;
  for (const auto reply : replies) stream += reply;
  MemcachedReplyReader reader{1 << 20};
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

TEST(MemcachedReplyReader, RefusesGarbage) {
  for (const std::string_view bytes :
       {"+OK\r\n", "\r\n", "STORED\n", "stored\r\n", "VALUE k 0\r\n", "VALUE k 0 x\r\n",
        "VALUE k 0 1\r\nxyz", "VA\r\n", "VA -1\r\n", "1x\r\n", "VALUE k 0 1\r\nx\r\nSTORED\r\n",
        "STAT a b\r\nVALUE k 0 1\r\n", "ENDE\r\n"}) {
    MemcachedReplyReader reader{1 << 20};
    EXPECT_EQ(reader.read(bytes), State::bad) << bytes;
  }
  MemcachedReplyReader small{50};
  EXPECT_EQ(small.read("VALUE k 0 100\r\n"), State::bad);
}

}  // namespace
}  // namespace sluice::proxy
