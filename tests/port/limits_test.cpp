// What clients cost and what they may do to others: bytes of any kind, half requests, many who are
// idle, readers who do not read.
#include <malloc.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <fstream>
#include <thread>

#include "port/port_under_test.hpp"
#include "proxy/storm/mutation.hpp"
#include "proxy/storm/redis_words.hpp"
#include "proxy/support/asking.hpp"
#include "proxy/support/listening.hpp"
#include "support/sanitized.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;
using Texts = std::vector<std::string>;

/// All that the process has allocated.
std::size_t allocated() {
  const auto info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

void allow_descriptors() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// A client that does nothing wrong, and may be killed or paused by others.
class Bystander {
 public:
  explicit Bystander(std::uint16_t port, std::string login) : port_(port), login_(std::move(login)) {}

  void expect_own_replies(const std::string& after) {
    for (int tries = 0;; ++tries) try {
        if (!client_) {
          client_.emplace(port_);
          if (!login_.empty()) ask(*client_, login_);
        }
        const auto word = fmt::format("word{}", ++asked_);
        const auto replies = ask_all(*client_, {"CLIENT UNPAUSE", "ECHO " + word, "PING"});
        EXPECT_EQ(replies[1], fmt::format("${} {}", word.size(), word)) << after;
        EXPECT_EQ(replies[2], "+PONG") << after;
        return;
      } catch (const std::system_error&) {
        ASSERT_LT(tries, 5) << after;
        client_.reset();
      }
  }

 private:
  std::uint16_t port_;
  std::string login_;
  std::optional<PlainClient> client_;
  int asked_ = 0;
};

class HostilePort : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Before, HostilePort, testing::Bool(),
                         [](const auto& login) { return login.param ? "Login" : "Nothing"; });

TEST_P(HostilePort, BytesOfAnyKindHurtNobodyElse) {
  const std::string password = GetParam() ? "sesame" : "";
  const PortUnderTest port{{.password = password, .threads = 2}};
  Bystander bystander{port.port(), GetParam() ? "AUTH sesame" : ""};
  for (unsigned seed = 1; seed <= rounds(1500U) && !testing::Test::HasFailure(); ++seed) {
    Random random{seed};
    std::string bytes;
    if (GetParam() && one_in(random, 2)) bytes += request("AUTH sesame");
    for (auto left = up_to(random, 12); left > 0; --left) bytes += redis_request(random);
    if (one_in(random, 2)) mutate_bytes(bytes, random);
    const auto stranger = connect_to(port.port());
    static_cast<void>(::send(stranger.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
    if (one_in(random, 3)) ::shutdown(stranger.number(), SHUT_WR);
    if (one_in(random, 8)) bystander.expect_own_replies(fmt::format("seed {}", seed));
  }
}

TEST(PortBeforeLogin, AllTogetherKeepLittle) {
  PortUnderTest port{{.password = "sesame"}};
  std::string much = "*10\r\n";
  for (int i = 0; i < 9; ++i) much += "$16384\r\n" + std::string(16384, 'x') + "\r\n";
  PlainClient known{port.port()};
  ASSERT_EQ(ask(known, "AUTH sesame"), "+OK");
  const auto before = allocated();
  std::vector<PlainClient> strangers;
  for (int i = 0; i < 150; ++i) {
    strangers.emplace_back(port.port());
    strangers.back().send(much);
  }
  ASSERT_TRUE(comes_true([&] { return port.clients() < 151; })) << "nobody was closed";
  EXPECT_EQ(ask(known, "SET k " + std::string(100'000, 'v')), "+OK");
  if (!is_sanitized) EXPECT_LT(allocated() - before, std::size_t{24} << 20);
  strangers.clear();
  ASSERT_TRUE(comes_true([&] { return port.clients() == 1; }));
  PlainClient patient{port.port()};  // the budget is whole again
  patient.send(much + "$4\r\nlast\r\n");
  EXPECT_EQ(text_of(patient.read()), "-NOAUTH Authentication required.");
}

TEST(PortBeforeLogin, RequestsAreAsSmallAsRedisWantsThem) {
  const PortUnderTest port{{.password = "sesame"}};
  EXPECT_EQ(talk(port.port(), "*11\r\n", "").bytes,
            "-ERR Protocol error: unauthenticated multibulk length\r\n");
  EXPECT_EQ(talk(port.port(), "*2\r\n$4\r\nAUTH\r\n$16385\r\n", "").bytes,
            "-ERR Protocol error: unauthenticated bulk length\r\n");
}

TEST(PortClients, ThousandsThatAreIdleAreSmall) {
  allow_descriptors();
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const auto many = std::min<std::size_t>(rounds(10'000U), (limit.rlim_cur - 200) / 2);
  PortUnderTest port{{.most_clients = 20'000}};
  PlainClient known{port.port()};
  EXPECT_EQ(ask(known, "PING"), "+PONG");
  std::vector<Descriptor> idle;
  idle.reserve(many);
  const std::string asked = request("GET k") + request("SET k " + std::string(100, 'x'));
  const auto before = allocated();
  while (idle.size() < many) {
    idle.push_back(connect_to(port.port()));
    ::send(idle.back().number(), asked.data(), asked.size(), 0);
    if (idle.size() % 100 == 0) ask(known, "PING");  // the backlog has an end
  }
  ASSERT_TRUE(comes_true([&] { return port.clients() == many + 1; }));
  ask(known, "PING");
  const auto each = (allocated() - before) / many;
  RecordProperty("bytes_each", static_cast<int>(each));

  if (!is_sanitized) EXPECT_LE(each, 1536U);
  EXPECT_EQ(ask(known, "GET k").size(), 105U);
}

/// Pipelines whose replies nobody reads: the requests behind them wait.
TEST(PortClients, ThatDoNotReadCostABoundedMemory) {
  PortUnderTest port;
  PlainClient known{port.port()};
  ask(known, "SET big " + std::string(100'000, 'x'));
  const auto before = allocated();
  const auto lazy = connect_to(port.port());
  std::string gets;
  for (int i = 0; i < 2'000; ++i) gets += request("GET big");  // 200 MB of replies
  std::size_t most = 0;
  for (int i = 0; i < 20; ++i) {
    static_cast<void>(::send(lazy.number(), gets.data(), gets.size(), MSG_DONTWAIT));
    ask(known, "PING");
    most = std::max(most, allocated());
  }
  if (!is_sanitized) EXPECT_LT(most - before, std::size_t{16} << 20);
  PlainClient patient{port.port()};  // each gets all of its replies
  std::thread sends{[&] { patient.send(gets); }};
  for (int i = 0; i < 2'000; ++i) EXPECT_EQ(patient.read().as_text().size(), 100'000U);
  sends.join();
}

/// A subscriber that does not read is closed, while others are being told.
TEST(PortClients, ThatSubscribeAndDoNotReadAreClosed) {
  for (const std::size_t threads : {1, 2}) {
    PortUnderTest port{{.threads = threads, .of_listeners = {.hard = 1 << 20}}};
    PlainClient publisher{port.port()}, good{port.port()};
    EXPECT_EQ(ask(good, "SUBSCRIBE c"), "*3 $9 subscribe $1 c :1");
    std::vector<Descriptor> lazy;
    for (int i = 0; i < 6; ++i) {
      lazy.push_back(connect_to(port.port()));
      const auto words = request(i % 2 == 0 ? "SUBSCRIBE c" : "PSUBSCRIBE *");
      ::send(lazy.back().number(), words.data(), words.size(), 0);
    }
    ASSERT_TRUE(comes_true([&] { return ask(publisher, "PUBLISH c x") == ":7"; }));
    const std::string text(500'000, 'x');
    const auto last = [&] { return ask(publisher, "PUBLISH c " + text); };
    for (int i = 0; i < 60; ++i) {
      if (last() == ":1") break;
      for (;;)
        if (good.read().as_items().at(2).as_text().size() == text.size()) break;
    }
    EXPECT_TRUE(comes_true([&] { return port.clients() == 2; }));
    EXPECT_EQ(ask(publisher, "PUBLISH c y"), ":1");
  }
}

TEST(PortClients, AreAsManyAsTheSettingSays) {
  PortUnderTest port{{.most_clients = 2}};
  PlainClient one{port.port()};
  {
    PlainClient two{port.port()};
    EXPECT_EQ(ask_all(one, {"PING"}), ask_all(two, {"PING"}));
    EXPECT_EQ(talk(port.port(), "", "").bytes, "-ERR max number of clients reached\r\n");
  }
  EXPECT_TRUE(comes_true([&] { return port.clients() == 1; }));
  PlainClient next{port.port()};
  EXPECT_EQ(ask(next, "PING"), "+PONG");
}

TEST(PortClients, AreClosedWhenTheyAreSilentForLong) {
  PortUnderTest port{{.idle_timeout = 1s}};
  PlainClient silent{port.port()}, waiting{port.port()}, listening{port.port()};
  ask(listening, "SUBSCRIBE c");
  waiting.send(request("BLPOP l 0"));
  EXPECT_EQ(silent.read_raw(), "");
  PlainClient late{port.port()};
  EXPECT_EQ(ask(late, "PUBLISH c x"), ":1");
  EXPECT_EQ(ask(late, "LPUSH l x"), ":1");
  EXPECT_EQ(text_of(waiting.read()), "*2 $1 l $1 x");
}

TEST(PortClients, ThoseOfOtherMachinesNeedAPassword) {
  for (const std::string host : {"0.0.0.0", "::"}) {
    PortUnderTest port{{.listen = {{{.host = host}}}}};
    PlainClient here{port.port()};  // at 127.0.0.1
    EXPECT_EQ(ask(here, "PING"), "+PONG") << host;
  }
}

TEST(PortClients, ArePausedForWritesOrAll) {
  const PortUnderTest port{{.threads = 2}};
  PlainClient one{port.port()}, two{port.port()};
  EXPECT_EQ(ask(one, "CLIENT PAUSE 60000 WRITE"), "+OK");
  EXPECT_EQ(ask_all(two, {"GET k", "PING"}), (Texts{"_", "+PONG"}));
  two.send(request("SET k v") + request("GET k"));
  EXPECT_FALSE(two.read_for(20ms));
  EXPECT_EQ(ask(one, "CLIENT UNPAUSE"), "+OK");
  EXPECT_EQ(text_of(two.read()), "+OK");
  EXPECT_EQ(text_of(two.read()), "$1 v");
  EXPECT_EQ(ask(one, "CLIENT PAUSE 50"), "+OK");
  EXPECT_EQ(ask(two, "GET k"), "$1 v") << "when it is over";
}

TEST(PortClients, ThatAreMutedCanLeaveAndWait) {
  const PortUnderTest port;
  PlainClient muted{port.port()};
  muted.patience = 20s;
  muted.send("CLIENT REPLY OFF\nQUIT\n");
  EXPECT_EQ(muted.read_raw(), "");
  PlainClient client{port.port()};
  client.send("CLIENT REPLY SKIP\nBLPOP l 0.01\nECHO a\n");
  EXPECT_EQ(text_of(client.read()), "$1 a");
}

TEST(PortClients, ThatHaveGoneAreForgottenInAPause) {
  PortUnderTest port;
  PlainClient known{port.port()};
  EXPECT_EQ(ask(known, "CLIENT PAUSE 100000000"), "+OK");
  for (int i = 0; i < 20; ++i) {
    PlainClient gone{port.port()};
    gone.send(request("GET k"));
    if (i % 2 == 0) EXPECT_FALSE(gone.read_for(1ms));
  }
  EXPECT_TRUE(comes_true([&] { return port.clients() == 1; }));
  EXPECT_EQ(ask(known, "CLIENT UNPAUSE"), "+OK");
}

/// A client that has gone takes no element.
TEST(PortClients, ThoseThatHaveGoneDoNotWait) {
  PortUnderTest port;
  PlainClient known{port.port()};
  for (int i = 0; i < 20; ++i) {
    const auto gone = connect_to(port.port());
    const auto bytes = request("PING") + request("BLPOP l 0");
    ::send(gone.number(), bytes.data(), bytes.size(), 0);
    ::shutdown(gone.number(), SHUT_WR);
  }
  EXPECT_TRUE(comes_true([&] { return port.clients() == 1; }));
  EXPECT_EQ(ask(known, "LPUSH l x"), ":1");
  EXPECT_EQ(ask(known, "LLEN l"), ":1");
}

}  // namespace
}  // namespace sluice::test
