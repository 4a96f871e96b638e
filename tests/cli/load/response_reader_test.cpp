// What a server may answer, and what it may not: bytes of any kind, in any pieces.
#include "cli/load/response_reader.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace sluice::load {
namespace {

using namespace std::chrono_literals;

/// Empty: it was read. Else why not, or "more" where the answer has not ended.
std::string trouble_of(std::string_view bytes) {
  ResponseReader reader;
  reader.consume(bytes);
  if (reader.is_bad()) return reader.why();
  return reader.is_complete() ? "" : "more";
}

constexpr std::string_view refusal =
    "HTTP/1.1 429 Too Many Requests\r\nDate: now\r\nretry-after:  7 \r\nContent-Length: "
    "4\r\n\r\nbusy";

TEST(ResponseReader, ReadsAnAnswerInPiecesOfEverySize) {
  for (std::size_t piece = 1; piece <= refusal.size(); ++piece) {
    ResponseReader reader;
    for (std::size_t at = 0; at < refusal.size(); at += piece) {
      const auto bytes = refusal.substr(at, piece);
      EXPECT_EQ(reader.consume(bytes), bytes.size()) << piece;
    }
    ASSERT_TRUE(reader.is_complete()) << piece << reader.why();
    const auto answer = reader.take();
    EXPECT_EQ(answer.status, 429);
    EXPECT_EQ(answer.retry_after, 7s);
    EXPECT_TRUE(answer.keeps_alive);
    EXPECT_EQ(answer.body, "busy");
    EXPECT_FALSE(reader.has_begun());
  }
}

TEST(ResponseReader, LeavesWhatBelongsToTheNextAnswer) {
  ResponseReader reader;
  const std::string two = "HTTP/1.1 204 No Content\r\n\r\n" + std::string{refusal};
  EXPECT_EQ(reader.consume(two), two.size() - refusal.size());
  EXPECT_EQ(reader.consume("HTTP"), 0U) << "it waits until the answer is taken";
  EXPECT_EQ(reader.take().status, 204);
  EXPECT_EQ(reader.consume(refusal), refusal.size());
  EXPECT_EQ(reader.take().status, 429);
}

TEST(ResponseReader, KnowsWhetherTheConnectionStays) {
  const auto keeps = [](const std::string& head) {
    ResponseReader reader;
    reader.consume(head + "Content-Length: 0\r\n\r\n");
    return reader.take().keeps_alive;
  };
  EXPECT_TRUE(keeps("HTTP/1.1 200 OK\r\n"));
  EXPECT_FALSE(keeps("HTTP/1.1 200 OK\r\nConnection: foo, Close\r\n"));
  EXPECT_FALSE(keeps("HTTP/1.0 200 OK\r\n"));
  EXPECT_TRUE(keeps("HTTP/1.0 200 OK\r\nconnection: keep-alive\r\n"));
}

TEST(ResponseReader, ARetryAfterIsAnHourAtMost) {
  const auto pause = [](const std::string& value) {
    ResponseReader reader;
    reader.consume("HTTP/1.1 503 Busy\r\nRetry-After: " + value + "\r\nContent-Length: 0\r\n\r\n");
    return reader.take().retry_after;
  };
  EXPECT_EQ(pause("0"), 0s);
  EXPECT_EQ(pause("999999999999999999"), 3600s);
  EXPECT_EQ(pause("9999999999999999999999"), std::nullopt);
  EXPECT_EQ(pause("-1"), std::nullopt);
  EXPECT_EQ(pause("Fri, 27 Nov 2026 20:00:00 GMT"), std::nullopt);
}

TEST(ResponseReader, RefusesWhatCannotBeReadForSure) {
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  const std::pair<std::string, std::string_view> cases[] = {
      {"\r\n", "not HTTP"},
      {"SSH-2.0-OpenSSH\r\n", "not HTTP"},
      {"HTTP/2 200\r\n\r\n", "not HTTP/1.1"},
      {"HTTP/1.1 20\r\n\r\n", "three digits"},
      {"HTTP/1.1 2000 OK\r\n\r\n", "three digits"},
      {"HTTP/1.1 +20 OK\r\n\r\n", "three digits"},
      {"HTTP/1.1 100 Continue\r\n\r\n", "final"},
      {"HTTP/1.1 999 Odd\r\n\r\n", "final"},
      {ok + "\r\n", "length"},
      {ok + "Transfer-Encoding: chunked\r\n\r\n", "chunked"},
      {ok + "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx", "twice"},
      {ok + "Content-Length: 1, 1\r\n\r\nx", "no number"},
      {ok + "Content-Length: -1\r\n\r\nx", "no number"},
      {ok + "Content-Length: 0x1\r\n\r\nx", "no number"},
      {ok + "Content-Length: 99999999999999999999\r\n\r\n", "no number"},
      {ok + "Content-Length: 1048577\r\n\r\n", "larger"},
      {ok + "Content-Length : 1\r\n\r\nx", "no field"},
      {ok + "Content-Length: 1\r\n folded\r\n\r\nx", "no field"},
      {ok + ": x\r\n\r\n", "no field"},
      {ok + "a\r\n\r\n", "no field"},
      {ok + "a: \x01\r\n\r\n", "control"},
      {ok + std::string("a: \0\r\n\r\n", 8), "control"},
      {ok + "a: b\nc: d\r\n\r\n", "control"},
      {ok + "a: b\rc: d\r\n\r\n", "control"},
  };
  for (const auto& [bytes, why] : cases)
    EXPECT_NE(trouble_of(bytes).find(why), std::string::npos) << bytes << "\n" << trouble_of(bytes);
}

TEST(ResponseReader, HasLimits) {
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  EXPECT_NE(trouble_of(ok + "a: " + std::string(20 << 10, 'x')).find("16384"), std::string::npos);
  std::string fields;
  for (int i = 0; i < 101; ++i) fields += "a: b\r\n";
  EXPECT_NE(trouble_of(ok + fields + "\r\n").find("100 fields"), std::string::npos);
  EXPECT_EQ(trouble_of(ok + "Content-Length: 1048576\r\n\r\n"), "more");
  ResponseReader reader;  // a head that never ends is not kept
  const std::string much(1 << 20, 'x');
  reader.consume(ok + "a: ");
  EXPECT_LE(reader.consume(much), ResponseReader::largest_head);
  EXPECT_TRUE(reader.is_bad());
  EXPECT_EQ(reader.consume(much), 0U);
}

}  // namespace
}  // namespace sluice::load
