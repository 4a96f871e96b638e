#include "proxy/process/listening_socket.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "sluice/error.hpp"
#include "support/plain_client.hpp"
#include "support/temp_dir.hpp"

namespace sluice::proxy::process {
namespace {

TEST(ListeningSocket, AUnixSocketIsItsOwnersAloneAndGoesWithIt) {
  const test::TempDir directory;
  const auto path = (directory / "s").string();
  {
    const auto listening = ListeningSocket::open({.unix_path = path});
    struct stat found {};
    ASSERT_EQ(::stat(path.c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777, 0600u);
    const test::PlainClient client{path};  // connects, or throws
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(ListeningSocket, WhatIsInUseIsRefusedAndWhatIsLeftOverIsReplaced) {
  const test::TempDir directory;
  const net::Endpoint endpoint{.unix_path = (directory / "s").string()};
  {
    auto first = ListeningSocket::open(endpoint);
    EXPECT_THROW(ListeningSocket::open(endpoint), Error);
    first.hand_on();
  }
  ASSERT_TRUE(std::filesystem::exists(endpoint.unix_path));
  const auto second = ListeningSocket::open(endpoint);
  const test::PlainClient client{endpoint.unix_path};
}

TEST(ListeningSocket, AFileThatIsNoSocketIsNotRemoved) {
  const test::TempDir directory;
  const auto path = directory / "s";
  std::filesystem::create_directory(path);
  EXPECT_THROW(ListeningSocket::open({.unix_path = path.string()}), Error);
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST(ListeningSocket, APortThatIsTakenIsTold) {
  const auto first = ListeningSocket::open({.host = "127.0.0.1", .port = 0});
  ASSERT_NE(first.port(), 0);
  try {
    ListeningSocket::open({.host = "127.0.0.1", .port = first.port()});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::in_use);
  }
}

TEST(ListeningSocket, KnowsWhatIsLocal) {
  EXPECT_TRUE(is_local({.host = "127.8.9.1", .port = 1}));
  EXPECT_TRUE(is_local({.host = "::1", .port = 1}));
  EXPECT_TRUE(is_local({.unix_path = "/x"}));
  EXPECT_FALSE(is_local({.host = "0.0.0.0", .port = 1}));
  EXPECT_FALSE(is_local({.host = "192.0.2.1", .port = 1}));
}

}  // namespace
}  // namespace sluice::proxy::process
