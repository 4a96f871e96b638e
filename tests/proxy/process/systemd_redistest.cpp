/// The proxy as a service of systemd, which a test plays: Type=notify, NotifyAccess=main.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <cstring>

#include "base/descriptor.hpp"
#include "proxy/support/nutcracker.hpp"
#include "proxy/support/proxy_program.hpp"
#include "support/redis_server.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;

/// Listens at NOTIFY_SOCKET, a path or (@...) an abstract name.
class Manager {
 public:
  explicit Manager(const std::string& name)
      : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket") {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name.front() == '@') address.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(::bind(socket_.number(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    const int on = 1;
    ::setsockopt(socket_.number(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
  }

  /// The next message that systemd would heed: one of `main`. Empty: none came within 20 seconds,
  /// or it is another process's.
  std::string next(pid_t main) {
    pollfd wait{socket_.number(), POLLIN, 0};
    if (::poll(&wait, 1, 20'000) != 1) return {};
    std::array<char, 512> text{};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> control{};
    iovec piece{text.data(), text.size()};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const auto got = ::recvmsg(socket_.number(), &message, 0);
    ucred sender{};
    std::memcpy(&sender, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof sender);
    if (sender.pid != main) return fmt::format("of process {}, not {}", sender.pid, main);
    return {text.data(), static_cast<std::size_t>(got)};
  }

 private:
  Descriptor socket_;
};

class SystemdTest : public testing::TestWithParam<bool> {};

TEST_P(SystemdTest, X20_FollowsToTheSuccessor) {
  const TempDir folder;
  auto name = (folder / "notify").string();
  if (GetParam()) name[0] = '@';
  Manager manager{name};
  RedisServer server;
  ProxyProgram proxy{redis_pool({server.port()}),
                     {.process = {}, .arguments = {}, .environment = {{"NOTIFY_SOCKET", name}}}};
  const auto main = proxy.process().pid();
  EXPECT_EQ(manager.next(main), "READY=1");
  proxy.process().signal(SIGUSR1);
  EXPECT_EQ(manager.next(main), "RELOADING=1");
  EXPECT_EQ(manager.next(main), "READY=1");
  proxy.write_text("nonsense");
  EXPECT_TRUE(proxy.ask({"RELOAD"}).is_error());
  EXPECT_EQ(manager.next(main), "RELOADING=1");
  EXPECT_EQ(manager.next(main), "READY=1") << "also when it was refused";
  EXPECT_TRUE(proxy.ask({"UPGRADE"}).is_error()) << "nothing is told of a successor that failed";

  proxy.write(redis_pool({server.port()}));
  const auto reply = proxy.ask({"UPGRADE"});
  ASSERT_FALSE(reply.is_error()) << reply.as_text();
  const auto successor = proxy.serving_pid();
  EXPECT_EQ(manager.next(main), fmt::format("MAINPID={}", successor));
  EXPECT_EQ(proxy.process().wait_for(20s), 0);
  ASSERT_FALSE(proxy.ask({"RELOAD"}).is_error());
  EXPECT_EQ(manager.next(successor), "RELOADING=1") << "the old one has said nothing more";
  EXPECT_EQ(manager.next(successor), "READY=1");
  ASSERT_FALSE(proxy.ask({"UPGRADE"}).is_error());
  const auto third = proxy.serving_pid();
  EXPECT_EQ(manager.next(successor), fmt::format("MAINPID={}", third));
  ::kill(third, SIGTERM);
  EXPECT_EQ(manager.next(third), "STOPPING=1");
}

INSTANTIATE_TEST_SUITE_P(Sockets, SystemdTest, testing::Bool(),
                         [](const auto& each) { return each.param ? "Abstract" : "Path"; });

TEST(SystemdGoneTest, X20_AManagerThatIsGoneHoldsNothingUp) {
  RedisServer server;
  ProxyProgram proxy{
      redis_pool({server.port()}),
      {.process = {}, .arguments = {}, .environment = {{"NOTIFY_SOCKET", "/nowhere/notify"}}}};
  EXPECT_EQ(PlainClient{proxy.port()}.command({"PING"}).as_text(), "PONG");
  // It serves before it tells the manager.
  const auto has_said = [&] {
    return proxy.log().find("the service manager was not told READY=1") != std::string::npos;
  };
  for (int look = 0; look < 2000 && !has_said(); ++look) ::poll(nullptr, 0, 10);
  EXPECT_TRUE(has_said());
}

}  // namespace
}  // namespace sluice::test
