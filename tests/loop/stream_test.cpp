// A stream whose peer took no more: what that peer said before.
#include "loop/stream.hpp"

#include <gtest/gtest.h>

#include <string>

#include "support/loopback_pair.hpp"

namespace sluice::loop {
namespace {

class Heard final : public Stream {
 public:
  Heard(Loop& loop, net::Socket socket, bool heeds) : Stream(loop), heeds_(heeds) {
    attach(std::make_unique<net::Socket>(std::move(socket)));
  }
  using Stream::write;

  std::string words;
  bool is_over = false;

 private:
  std::size_t consume(std::string_view bytes) override {
    words += bytes;
    return bytes.size();
  }
  void ended(int) override {
    is_over = true;
    detach();
  }
  bool heeds_last_words() const noexcept override { return heeds_; }

  const bool heeds_;
};

class LastWords : public testing::Test {
 protected:
  /// What is heard of "no" where the write behind it is refused.
  std::string heard(bool heeds) {
    test::LoopbackPair pair;
    Heard stream{loop_, std::move(pair.client), heeds};
    EXPECT_EQ(pair.server.write_some("no").bytes, 2U);
    pair.server = net::Socket{};
    stream.write("more");
    stream.ready({.readable = false, .writable = true, .hung_up = false});
    for (int turn = 0; turn < 10 && !stream.is_over; ++turn)
      loop_.turn(std::chrono::milliseconds{0});
    EXPECT_TRUE(stream.is_over);
    return stream.words;
  }

 private:
  Loop loop_{system_clock()};
};

TEST_F(LastWords, OfAServerAreHeard) { EXPECT_EQ(heard(true), "no"); }
TEST_F(LastWords, OfAClientAreNot) { EXPECT_EQ(heard(false), ""); }

}  // namespace
}  // namespace sluice::loop
