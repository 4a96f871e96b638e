// A stream whose peer took no more: what that peer said before. A unix socket and its room.
#include "loop/stream.hpp"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

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

/// The events of `descriptor` that an epoll of this process waits for, as the kernel tells.
unsigned awaited_events(int descriptor) {
  for (const auto& file : std::filesystem::directory_iterator{"/proc/self/fdinfo"}) {
    std::ifstream in{file.path()};
    for (std::string line; std::getline(in, line);) {
      int target = -1;
      unsigned events = 0;
      if (std::sscanf(line.c_str(), "tfd: %d events: %x", &target, &events) == 2 &&
          target == descriptor)
        return events;
    }
  }
  return 0;
}

TEST(UnixSocket, TellsOfRoomOnlyWhileSomethingWaitsForIt) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  Loop loop{system_clock()};
  net::Socket peer{ends[0]};
  Heard stream{loop, net::Socket{ends[1]}, false};
  const auto turn = [&] { loop.turn(std::chrono::milliseconds{0}); };
  turn();
  EXPECT_EQ(awaited_events(ends[1]) & (EPOLLIN | EPOLLOUT), unsigned{EPOLLIN});
  const std::size_t size = std::size_t{4} << 20;
  stream.write(std::string(size, 'x'));
  turn();
  EXPECT_GT(stream.unsent(), 0U);
  EXPECT_NE(awaited_events(ends[1]) & EPOLLOUT, 0U);
  std::vector<char> room(std::size_t{64} << 10);
  std::size_t got = 0;
  for (int i = 0; i < 10'000 && got < size; ++i) {
    got += peer.read_some(room).bytes;
    turn();
  }
  EXPECT_EQ(got, size);
  EXPECT_EQ(stream.unsent(), 0U);
  EXPECT_EQ(awaited_events(ends[1]) & EPOLLOUT, 0U);
}

}  // namespace
}  // namespace sluice::loop
