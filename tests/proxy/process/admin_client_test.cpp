#include "proxy/process/admin_client.hpp"

#include <gtest/gtest.h>

#include "proxy/process/admin.hpp"
#include "sluice/error.hpp"

namespace sluice::proxy {
namespace {

using namespace std::chrono_literals;

Errc errc_of(auto&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.errc();
  }
  return Errc{};
}

TEST(AdminClient, AsksOneAfterTheOther) {
  VirtualClock clock;
  Registry registry{1, {}, clock};
  const AdminActions actions;
  auto door = admin_door("127.0.0.1:0", registry, actions);
  const auto address = "127.0.0.1:" + std::to_string(door.listening.port());
  std::vector<Door> doors;
  doors.push_back(std::move(door));
  const SideServer server{std::move(doors), clock};

  AdminClient client{address};
  const std::string_view ping[] = {"PING"}, stats[] = {"STATS"}, wrong[] = {"NOPE"};
  EXPECT_EQ(client.ask(ping).as_text(), "PONG");
  EXPECT_TRUE(client.ask(wrong).is_error());
  EXPECT_TRUE(client.ask(stats).as_text().starts_with("{"));
}

TEST(AdminClient, SaysThatNobodyIsThereOrAnswers) {
  std::string address;
  const std::string_view ping[] = {"PING"};
  {
    const auto silent =
        Listening::open({.host = "127.0.0.1", .port = 0});  // the kernel connects; nobody accepts
    address = "127.0.0.1:" + std::to_string(silent.port());
    EXPECT_EQ(errc_of([&] { AdminClient{address, 10ms}.ask(ping); }), Errc::timeout);
  }
  EXPECT_EQ(errc_of([&] { AdminClient{address, 1s}; }), Errc::connection);
  EXPECT_EQ(errc_of([&] { AdminClient{"nowhere", 1s}; }), Errc::bad_argument);
}

}  // namespace
}  // namespace sluice::proxy
