// What one process tells the next of a client.
#include "proxy/flow/handover.hpp"

#include <gtest/gtest.h>

#include "resp/writer.hpp"

namespace sluice::proxy::flow {
namespace {

const HandedClient client{.pool = "alpha",
                          .listen = "127.0.0.1:22121",
                          .redis = true,
                          .id = (std::uint64_t{3} << 40) | 17,
                          .resp = 3,
                          .db = 5,
                          .wants_login = true,
                          .logged_in = true,
                          .muted = 255,
                          .told = "name=x user=ann ",
                          .unread = std::string("*2\r\n$3\r\nGET\r\n$4\r\na\0", 19)};

TEST(HandoverMessage, TellsAllOfAClient) {
  const auto message = read_message(to_message("client", 7, client));
  ASSERT_TRUE(message);
  EXPECT_EQ(message->verb, "client");
  EXPECT_EQ(message->ticket, 7U);
  EXPECT_EQ(message->client, client);
}

TEST(HandoverMessage, OfAClientThatHasSaidNothing) {
  const auto message = read_message(to_message("client", 1, {}));
  ASSERT_TRUE(message);
  EXPECT_EQ(message->client, HandedClient{});
}

TEST(HandoverMessage, OfALaterVersionIsReadAsFarAsItIsKnown) {
  const auto message =
      read_message(resp::command_bytes({"client", "7", "novel", "1", "pool", "alpha", "odd"}));
  ASSERT_TRUE(message);
  EXPECT_EQ(message->client.pool, "alpha");
}

TEST(HandoverMessage, WhatIsNoneIsNotTaken) {
  for (const auto& bytes : std::vector{
           std::string{}, std::string{"nonsense"}, resp::command_bytes({"client"}),
           resp::command_bytes({"client", "x"}), to_message("client", 7, client).substr(0, 60)})
    EXPECT_FALSE(read_message(bytes)) << bytes;
}

}  // namespace
}  // namespace sluice::proxy::flow
