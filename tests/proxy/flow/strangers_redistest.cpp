// What strangers may do: clients that speak something else, have not logged in, or have gone.
#include <malloc.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "base/descriptor.hpp"
#include "proxy/flow/two_servers.hpp"
#include "proxy/support/listening.hpp"
#include "proxy/support/memcached.hpp"
#include "support/sanitized.hpp"
#include "support/temp_dir.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;
using Texts = std::vector<std::string>;
using Strangers = TwoServers;

constexpr const char* at_a_limit =
    "-ERR the proxy is at a limit of its own, nothing was done: try again later";

std::string with_a_body(const std::string& first, const std::string& body) {
  return first + "Host: 127.0.0.1\r\nContent-Length: 99\r\n\r\n" + body;
}

TEST_F(Strangers, X05_ALineOfHttpEndsTheConnection) {
  Memcached memcached;
  const Texts pools[] = {
      {"redis: true", "servers:", " - 127.0.0.1:" + std::to_string(ports()[0]) + ":1"},
      {"redis: true", "redis_auth: x",
       "servers:", " - 127.0.0.1:" + std::to_string(ports()[0]) + ":1"},
      {"servers:", " - " + memcached.address() + ":1"}};
  for (auto lines : pools)
    for (const bool strict : {false, true}) {
      if (strict) lines.insert(lines.begin(), "compat: strict");
      ProxyUnderTest proxy{PoolLines{lines}};
      for (const std::string first : {"POST / HTTP/1.1\r\n", "post /\r\n", "PUT / HTTP/1.1\r\n"}) {
        const auto body = lines.size() == 2 + (strict ? 1U : 0U)
                              ? "set stolen 0 0 1\r\nx\r\nget stolen\r\n"
                              : "AUTH x\r\nSET stolen x\r\nGET stolen\r\n";
        const auto said = talk(proxy.port(), with_a_body(first, body), "");
        EXPECT_TRUE(said.closed);
        for (const std::string done : {"+OK", "$1\r\nx", "STORED", "VALUE"})
          EXPECT_EQ(said.bytes.find(done), std::string::npos) << lines[0] << first << said.bytes;
      }
    }
}

/// A request of HTTP ends the connection at its first line, whatever stands behind it.
TEST_F(Strangers, R08_EachMethodOfHttpEndsTheConnectionAtOnce) {
  Memcached memcached;
  const Texts pools[] = {
      {"redis: true", "servers:", " - 127.0.0.1:" + std::to_string(ports()[0]) + ":1"},
      {"servers:", " - " + memcached.address() + ":1"}};
  int inputs = 0;
  for (auto lines : pools)
    for (const bool strict : {false, true}) {
      if (strict) lines.insert(lines.begin(), "compat: strict");
      ProxyUnderTest proxy{PoolLines{lines}};
      for (const std::string method : {"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE",
                                       "CONNECT", "QUERY", "PROPFIND"})
        for (const std::string target : {" / ", " /k ", " * ", " http://a/?b=c ", " a:80 "})
          for (const std::string version : {"HTTP/1.1\r\n", "HTTP/1.0\n", "HTTP/2.0\r\n"}) {
            ++inputs;
            const auto said = talk(
                proxy.port(), method + target + version + "set stolen 0 0 1\r\nx\r\nPING\r\n", "");
            EXPECT_TRUE(said.closed && said.bytes.empty())
                << method << target << version << said.bytes << ", input " << inputs;
          }
    }
}

struct Guarded {
  explicit Guarded(Texts more = {}, Clock& clock = system_clock())
      : proxy({server.port()}, with(std::move(more)), {}, clock) {}
  static Texts with(Texts more) {
    more.emplace_back("redis_auth: sesame");
    return more;
  }
  RedisServer server{Texts{"requirepass sesame"}};
  ProxyUnderTest proxy;
};

TEST(BeforeLogin, X08_RequestsAreAsSmallAsRedisWantsThem) {
  for (const bool strict : {false, true}) {
    Guarded made{strict ? Texts{"compat: strict"} : Texts{}};
    const auto refused = [&](PlainClient& client, const std::string& bytes, std::string_view why) {
      client.send(bytes);
      std::string got;
      for (std::string more; !(more = client.read_raw()).empty();) got += more;
      EXPECT_EQ(got, strict ? "" : fmt::format("-ERR Protocol error: unauthenticated {}\r\n", why));
    };
    const std::string long_word = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$16385\r\n";
    PlainClient many{made.proxy.port()}, large{made.proxy.port()}, known{made.proxy.port()};
    refused(many, "*11\r\n", "multibulk length");
    refused(large, long_word, "bulk length");
    // Whoever is logged in may; also in the same write, and cut anywhere.
    const std::string set = "SET k " + std::string(20'000, 'v');
    EXPECT_EQ(ask_all(known, {"AUTH sesame", set}), (Texts{"+OK", "+OK"}));
    const auto all = request("AUTH sesame") + request(set);
    for (const std::size_t cut : {5U, 30U, 40U, 60U, 9000U}) {
      PlainClient client{made.proxy.port()}, watch{made.proxy.port()};
      client.send(all.substr(0, cut));
      EXPECT_EQ(ask(watch, "AUTH sesame"), "+OK");
      client.send(all.substr(cut));
      EXPECT_EQ(text_of(client.read()), "+OK") << cut;
      EXPECT_EQ(text_of(client.read()), "+OK") << cut;
    }
    // RESET, and in strict mode a failed AUTH, take it back.
    EXPECT_EQ(ask(known, strict ? "AUTH wrong" : "RESET").front(), strict ? '-' : '+');
    refused(known, long_word, "bulk length");
  }
}

TEST(BeforeLogin, X08_AllTogetherKeepLittle) {
  Guarded made;
  // Nine words of 16 KB and no tenth: as much as a stranger may keep.
  std::string much = "*10\r\n";
  for (int i = 0; i < 9; ++i) much += "$16384\r\n" + std::string(16384, 'x') + "\r\n";
  PlainClient known{made.proxy.port()};
  ASSERT_EQ(ask(known, "AUTH sesame"), "+OK");
  std::vector<PlainClient> strangers;
  for (int i = 0; i < 150; ++i) {
    strangers.emplace_back(made.proxy.port());
    strangers.back().send(much);
  }
  ASSERT_TRUE(comes_true([&] { return totals(made.proxy).client_evictions > 0; }));
  for (int i = 0; i < 10; ++i) {
    PlainClient late{made.proxy.port()};
    EXPECT_EQ(ask_all(late, {"AUTH sesame", "SET k v"}), (Texts{"+OK", "+OK"}));
  }
  EXPECT_EQ(ask(known, "SET k " + std::string(100'000, 'v')), "+OK");
  EXPECT_LT(made.proxy.proxy().memory(), 20 << 20);
  strangers.clear();
  ASSERT_TRUE(comes_true([&] { return totals(made.proxy).client_connections == 1; }));
  PlainClient patient{made.proxy.port()};  // the budget is whole again
  patient.send(much);
  EXPECT_EQ(ask(known, "PING"), "+PONG");
  patient.send("$4\r\nlast\r\n");
  EXPECT_EQ(text_of(patient.read()), "-NOAUTH Authentication required.");
}

TEST(BeforeLogin, X08_ManyWithAWordBegunAreSmall) {
  if (is_sanitized) GTEST_SKIP() << "the sanitizer has an allocator of its own";
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  // 10,000 of them may take 64 MiB; both ends of each connection are ours.
  const auto many = std::min<std::size_t>(2'000, (limit.rlim_cur - 200) / 2);
  Guarded made{{"backlog: 4096"}};
  PlainClient known{made.proxy.port()};
  ASSERT_EQ(ask(known, "AUTH sesame"), "+OK");
  std::vector<Descriptor> strangers;
  strangers.reserve(many);
  const std::string begun = "*2\r\n$4\r\nAUTH\r\n$16000\r\n" + std::string(1000, 'x');
  const auto before = ::mallinfo2();
  while (strangers.size() < many) {
    strangers.push_back(connect_to(made.proxy.port()));
    ASSERT_EQ(::send(strangers.back().number(), begun.data(), begun.size(), 0),
              static_cast<ssize_t>(begun.size()));
  }
  ASSERT_TRUE(comes_true([&] {
    return made.proxy.proxy().memory() >= static_cast<std::int64_t>(many * begun.size());
  }));
  EXPECT_EQ(ask(known, "SET k v"), "+OK");
  const auto after = ::mallinfo2();
  const auto each = (after.uordblks + after.hblkhd - before.uordblks - before.hblkhd) / many;
  RecordProperty("bytes_each", static_cast<int>(each));
  EXPECT_LE(each, (std::size_t{64} << 20) / 10'000);
  EXPECT_EQ(totals(made.proxy).client_connections, static_cast<std::int64_t>(many) + 1);
}

TEST(BeforeLogin, X08_RepliesThatAreNotTakenStopTheReading) {
  Guarded made;
  auto stranger = connect_to(made.proxy.port());
  std::string pings;
  for (int i = 0; i < 10'000; ++i) pings += request("PING");
  std::size_t sent = 0;
  const auto send = [&] {
    const auto more = ::send(stranger.number(), pings.data(), pings.size(), MSG_DONTWAIT);
    sent += more > 0 ? static_cast<std::size_t>(more) : 0;
    return more;
  };
  PlainClient known{made.proxy.port()};
  ASSERT_EQ(ask(known, "AUTH sesame"), "+OK");
  for (int idle = 0; idle < 20 && sent < 64 << 20;) {
    idle = send() > 0 ? 0 : idle + 1;
    ASSERT_EQ(ask(known, "PING"), "+PONG");
  }
  EXPECT_LT(made.proxy.proxy().memory(), 1 << 20);
}

TEST(BeforeLogin, X08_TimeIsLimitedToo) {
  VirtualClock clock;
  Guarded made{{"login_timeout: 5s", "users:", " - {name: u, password: p}"}, clock};
  PlainClient stranger{made.proxy.port()}, known{made.proxy.port()}, reset{made.proxy.port()};
  EXPECT_EQ(ask(stranger, "PING"), "-NOAUTH Authentication required.");
  EXPECT_EQ(ask(known, "AUTH u p"), "+OK");
  EXPECT_EQ(ask(reset, "AUTH u p"), "+OK");
  const auto pass = [&](auto time) {
    clock.advance(time);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(ask(known, "PING"), "+PONG");
  };
  pass(4s);
  EXPECT_EQ(ask(reset, "RESET"), "+RESET");
  EXPECT_EQ(ask(stranger, "PING"), "-NOAUTH Authentication required.");
  pass(3s);
  EXPECT_EQ(stranger.read_raw(), "") << "that it asks something does not help";
  EXPECT_EQ(ask(reset, "PING"), "-NOAUTH Authentication required.") << "its time began with RESET";
  pass(4s);
  EXPECT_EQ(reset.read_raw(), "");
}

TEST(BeforeLogin, FailedLoginsWait) {
  for (const bool strict : {false, true}) {
    VirtualClock clock;
    Guarded made{strict ? Texts{"compat: strict"} : Texts{}, clock};
    PlainClient known{made.proxy.port()}, guesser{made.proxy.port()}, other{made.proxy.port()};
    EXPECT_EQ(ask(known, "AUTH sesame"), "+OK");
    for (int i = 0; i < 5; ++i) EXPECT_EQ(ask(guesser, "AUTH wrong").front(), '-');
    guesser.send(request("AUTH wrong") + request("AUTH sesame") + request("GET k"));
    other.send(request("AUTH sesame"));  // of the same address
    EXPECT_EQ(ask(known, "GET k"), "_") << "nobody else waits";
    EXPECT_FALSE(guesser.read_for(20ms));
    EXPECT_FALSE(other.read_for(1ms));
    const auto comes = [&](PlainClient& client) {
      std::optional<Value> value;
      while (!value) {
        clock.advance(100ms);
        EXPECT_EQ(ask(known, "GET k"), "_");
        value = client.read_for(1ms);
      }
      return text_of(*value);
    };
    EXPECT_EQ(comes(guesser).front(), '-');
    EXPECT_EQ(comes(other), "+OK");
    EXPECT_EQ(comes(guesser), "+OK");
    EXPECT_EQ(text_of(guesser.read()), "_");
    guesser.send(request("AUTH wrong"));  // and it goes while its answer waits
    EXPECT_EQ(ask(known, "GET k"), "_");
  }
}

TEST_F(Strangers, X21_ConnectionsForOneClientHaveALimit) {
  ProxyUnderTest proxy{
      ports(), {"exclusive_connections: 2", "auto_eject_hosts: true", "server_failure_limit: 1"}};
  const auto key = proxy.key_at(0), there = proxy.key_at(1);
  PlainClient beyond{proxy.port()}, watching{proxy.port()};
  {
    PlainClient blocked{proxy.port()};
    blocked.send(request("BLPOP " + key + " 0"));
    EXPECT_EQ(ask(watching, "WATCH " + key), "+OK");
    auto server = direct(0);
    ASSERT_TRUE(comes_true([&] { return info_of(server, "blocked_clients") == "1"; }));
    EXPECT_EQ(ask(beyond, "BLPOP " + key + " 0"), at_a_limit);
    EXPECT_EQ(ask(beyond, "WATCH " + key), at_a_limit);
    EXPECT_EQ(
        ask_all(beyond, {"MULTI", "GET " + key, "EXEC"}),
        (Texts{"+OK", at_a_limit, "-EXECABORT Transaction discarded because of previous errors."}));
    EXPECT_EQ(ask_all(beyond, {"MULTI", "GET " + there, "EXEC"}),
              (Texts{"+OK", "+QUEUED", "*1 _"}));
    PlainClient subscriber{proxy.port()};
    EXPECT_EQ(ask(subscriber, "PSUBSCRIBE *"), at_a_limit);
    EXPECT_EQ(ask(beyond, "GET " + key), "_");
  }
  EXPECT_TRUE(comes_true([&] { return ask(beyond, "WATCH " + key) == "+OK"; }))
      << "a peer that is gone has given its connection back";
  EXPECT_EQ(totals(proxy).server_ejects, 0);
}

/// Whether the proxy, in this process, has the kernel look after its connection from `port`.
int kept_alive(std::uint16_t port) {
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator{"/proc/self/fd"}) {
    const int descriptor = std::stoi(entry.path().filename().string());
    sockaddr_in ours{}, theirs{};
    socklen_t size = sizeof ours;
    if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&ours), &size) != 0) continue;
    size = sizeof theirs;
    if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&theirs), &size) != 0) continue;
    int on = 0;
    size = sizeof on;
    if (ours.sin_family == AF_INET && ntohs(ours.sin_port) == port &&
        ::getsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, &size) == 0)
      found += on;
  }
  return found;
}

TEST_F(Strangers, X21_WhoHasAConnectionOfItsOwnIsKeptAlive) {
  ProxyUnderTest proxy{ports()};
  PlainClient plain{proxy.port()}, multi{proxy.port()}, blocked{proxy.port()};
  PlainClient subscriber{proxy.port()};
  EXPECT_EQ(ask(plain, "GET k"), "_");
  EXPECT_EQ(kept_alive(proxy.port()), 0);
  EXPECT_EQ(ask_all(multi, {"MULTI", "GET k"}), (Texts{"+OK", "+QUEUED"}));
  EXPECT_EQ(kept_alive(proxy.port()), 1);
  blocked.send(request("BLPOP l 0"));
  EXPECT_EQ(ask(subscriber, "SUBSCRIBE c"), "*3 $9 subscribe $1 c :1");
  EXPECT_TRUE(comes_true([&] { return kept_alive(proxy.port()) == 3; }));
}

TEST_F(Strangers, X09_LegalButOddRepliesPass) {
  for (const bool strict : {false, true}) {
    Texts settings{"auto_eject_hosts: true", "server_failure_limit: 1"};
    if (strict) settings.emplace_back("compat: strict");
    ProxyUnderTest proxy{ports(), settings};
    PlainClient client{proxy.port()};
    const auto expect = [&](const std::string& script, const std::string& reply) {
      std::string bytes;
      resp::append_command(bytes, std::vector<std::string_view>{"EVAL", script, "1", "k"});
      client.send(bytes);
      EXPECT_TRUE(read_bytes(client, reply.size()) == reply) << script;
    };
    const std::string line(100'000, 'x');
    for (int i = 0; i < 2; ++i) {
      expect("return redis.status_reply(string.rep('x',100000))", "+" + line + "\r\n");
      expect("return redis.error_reply('E ' .. string.rep('x',100000))", "-E " + line + "\r\n");
      std::string nested;
      for (int depth = 0; depth < 200; ++depth) nested += "*1\r\n";
      expect("local t = {} for i = 1, 200 do t = {t} end return t", nested + "*0\r\n");
    }
    EXPECT_EQ(totals(proxy).server_ejects, 0);
    EXPECT_EQ(totals(proxy, 0).failures + totals(proxy, 1).failures, 0);
  }
}

TEST_F(Strangers, X09_NoFailureOfAServerIsThatDescriptorsAreOut) {
  for (const bool strict : {false, true}) {
    Texts settings{"auto_eject_hosts: true", "server_failure_limit: 1"};
    if (strict) settings.emplace_back("compat: strict");
    ProxyUnderTest proxy{ports(), settings};
    const auto here = proxy.key_at(0), there = proxy.key_at(1);
    proxy.proxy().set_most_connections(4, 3);
    PlainClient one{proxy.port()}, two{proxy.port()};
    EXPECT_EQ(ask(two, "GET " + here), "_");
    PlainClient three{proxy.port()}, beyond{proxy.port()};
    EXPECT_EQ(beyond.read_raw(), "");
    for (int i = 0; i < 3; ++i) {
      if (!strict) {
        EXPECT_EQ(ask(one, "BLPOP " + here + " 0"), at_a_limit);
      }
      EXPECT_EQ(ask(three, "GET " + there), at_a_limit);
      EXPECT_EQ(ask(two, "GET " + here), "_");
    }
    EXPECT_EQ(totals(proxy, 0).failures + totals(proxy, 1).failures, 0);
    proxy.proxy().set_most_connections(5, 3);
    EXPECT_EQ(ask(three, "GET " + there), "_");
  }
}

TEST_F(Strangers, X14_WaitingIsNotSlowAndTheSlowLogSaysWho) {
  ProxyUnderTest proxy{ports(), {}, {"slow_log_threshold: 0ms"}};
  const auto here = proxy.key_at(0), there = proxy.key_at(1);
  PlainClient client{proxy.port()}, other{proxy.port()};
  client.send(request("BLPOP " + here + " 0"));
  auto server = direct(0);
  ASSERT_TRUE(comes_true([&] { return info_of(server, "blocked_clients") == "1"; }));
  EXPECT_EQ(ask(other, "RPUSH " + here + " x"), ":1");
  EXPECT_EQ(text_of(client.read()).front(), '*');
  EXPECT_EQ(ask(other, "MGET " + there + " " + here), "*2 _ _");
  std::map<std::string, std::string> keys;  // by command
  for (const auto& entry : proxy.proxy().registry().slow_log(100)) {
    keys[entry.command] += entry.key + " ";
    EXPECT_TRUE(entry.client.starts_with("127.0.0.1:")) << entry.command;
  }
  EXPECT_FALSE(keys.contains("blpop"));
  EXPECT_EQ(keys["rpush"], here + " ");
  EXPECT_NE(keys["mget"].find(there), std::string::npos);
  EXPECT_NE(keys["mget"].find(here), std::string::npos);
}

TEST_F(Strangers, X17_ASecondOneAtThePortIsRefused) {
  for (const bool shares : {false, true}) {
    ProxyUnderTest first{
        ports(), {shares ? "reuseport: true" : "reuseport: false"}, {"workers: 2"}};
    const auto second = [&] {
      proxy::Proxy{system_clock(), first.proxy().config(), proxy::default_mbuf_size};
    };
    if (shares) {
      EXPECT_NO_THROW(second());
    } else {
      EXPECT_THROW(second(), std::system_error);
    }
  }
}

/// This thread alone is another user for a while.
struct AsUser {
  explicit AsUser(uid_t user) { become(user); }
  ~AsUser() { become(0); }
  static void become(uid_t user) {
    if (::syscall(SYS_setresuid, -1, user, -1) != 0)
      throw std::system_error{errno, std::generic_category(), "setresuid"};
  }
};

TEST_F(Strangers, PX07_FailedLoginsAtAUnixSocketSlowTheirOwnUserAlone) {
  if (::geteuid() != 0) GTEST_SKIP() << "two users are needed, and only root can be both";
  constexpr uid_t nobody = 65534;
  TempDir directory;
  std::filesystem::permissions(directory.path(), std::filesystem::perms{0755});
  const auto path = (directory.path() / "socket").string();
  PoolLines pools{{"redis: true", "servers:", fmt::format(" - 127.0.0.1:{}:1", ports()[0])}};
  pools.others = {"beside:",       "  listen: " + path + " 0666",
                  "  redis: true", "  redis_auth: right",
                  "  servers:",    fmt::format("   - 127.0.0.1:{}:1", ports()[0])};
  VirtualClock clock;
  ProxyUnderTest proxy{pools, {}, clock};
  std::vector<PlainClient> guessers;
  std::optional<PlainClient> honest;
  {
    const AsUser another{nobody};
    for (int i = 0; i < 10; ++i) {
      guessers.emplace_back(path);
      guessers.back().send(request("AUTH wrong"));
    }
    honest.emplace(path);
  }
  ASSERT_TRUE(comes_true([&] {
    return std::ranges::any_of(proxy.proxy().registry().snapshot().pools,
                               [](const auto& pool) { return pool.totals.requests == 10; });
  }));
  const auto begin = clock.steady();
  PlainClient client{path};
  EXPECT_EQ(ask(client, "AUTH right"), "+OK") << "no time has passed";
  EXPECT_EQ(ask_as_time_passes(*honest, "AUTH right", proxy), "+OK");
  EXPECT_GE(clock.steady() - begin, 100ms) << "their own user waits";
}

}  // namespace
}  // namespace sluice::test
