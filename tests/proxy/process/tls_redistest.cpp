/// TLS towards clients (redis-cli --tls) and towards servers (redis-server --tls-port), with
/// certificates of the test.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "net/server_socket.hpp"
#include "proxy/support/listening.hpp"
#include "proxy/support/proxy_program.hpp"
#include "support/certificates.hpp"
#include "support/free_port.hpp"
#include "support/matchers.hpp"
#include "support/paths.hpp"
#include "support/redis_server.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

class TlsTest : public testing::Test {
 protected:
  static Certificates& files() {
    static Certificates certificates;
    return certificates;
  }
  Lines with_tls_of_its_own(bool ask_clients = false) const {
    Lines lines{"listen_tls:", "  certificate: " + files()["server.pem"],
                "  key: " + files()["server.key"]};
    if (ask_clients) lines.push_back("  ca: " + files()["ca.pem"]);
    return lines;
  }
  static Lines pool(Lines lines, std::uint16_t port, const std::string& host = "127.0.0.1") {
    for (const auto& line : {std::string{"redis: true"}, std::string{"servers:"},
                             " - " + host + ":" + std::to_string(port) + ":1"})
      lines.push_back(line);
    return lines;
  }
  std::pair<int, std::string> cli(std::uint16_t port, const std::string& words) const {
    return files().shell(
        fmt::format("redis-cli -h 127.0.0.1 -p {} --tls --cacert ca.pem {}", port, words));
  }
};

TEST_F(TlsTest, ClientsSpeakItAndBigValuesPass) {
  RedisServer server;
  ProxyProgram proxy{pool(with_tls_of_its_own(), server.port())};
  EXPECT_EQ(cli(proxy.port(), "set a 1").second, "OK\n");
  const auto [code, text] =
      files().shell(fmt::format("head -c 3000000 /dev/zero | tr '\\0' x | redis-cli -p {0} --tls "
                                "--cacert ca.pem -x set big && "
                                "redis-cli -p {0} --tls --cacert ca.pem get big | wc -c",
                                proxy.port()));
  EXPECT_EQ(text, "OK\n3000001\n");
  const auto bench = files().shell(
      fmt::format("redis-benchmark -p {} --tls --cacert ca.pem -q -n 20000 -c 20 -P 16 -t set,get",
                  proxy.port()));
  EXPECT_EQ(bench.first, 0) << bench.second;
}

TEST_F(TlsTest, WhoSpeaksPlainlyIsCountedAndTold) {
  RedisServer server;
  ProxyProgram proxy{pool(with_tls_of_its_own(), server.port())};
  PlainClient plain{proxy.port()};
  plain.send("*1\r\n$4\r\nPING\r\n");
  EXPECT_THROW(static_cast<void>(plain.read()), std::system_error);
  EXPECT_NE(proxy.log().find("pool 'alpha': a TLS handshake failed: "), std::string::npos)
      << proxy.log();
  const auto stats = proxy.ask({"STATS"}).as_text();
  EXPECT_THAT(stats, testing::ContainsRegex("\"tls_failures\": ?[12]"))
      << "ours, and that of the test which waited for the port";
}

TEST_F(TlsTest, ClientsMustShowACertificateWhereTheirAuthorityIsGiven) {
  RedisServer server;
  ProxyProgram proxy{pool(with_tls_of_its_own(true), server.port())};
  EXPECT_NE(cli(proxy.port(), "ping").second, "PONG\n");
  EXPECT_EQ(cli(proxy.port(), "--cert client.pem --key client.key ping").second, "PONG\n");
}

TEST_F(TlsTest, ServersSpeakItAndTheirNameIsChecked) {
  const auto port = free_port();
  RedisServer server{files().redis(port)};
  ProxyProgram proxy{pool({"server_tls:", "  ca: " + files()["ca.pem"]}, port, "localhost")};
  PlainClient client{proxy.port()};
  EXPECT_EQ(client.command({"SET", "a", "1"}).as_text(), "OK");
  const std::string big(2'000'000, 'y');
  EXPECT_EQ(client.command({"SET", "b", big}).as_text(), "OK");
  EXPECT_EQ(client.command({"GET", "b"}).as_text(), big);

  proxy.write(pool({"server_tls:", "  ca: " + files()["ca.pem"], "  server_name: another.name"},
                   port, "localhost"));
  ASSERT_FALSE(proxy.ask({"RELOAD"}).is_error());
  EXPECT_TRUE(client.command({"GET", "a"}).is_error());
  EXPECT_NE(proxy.log().find("a TLS handshake failed: the server's certificate is for localhost, "
                             "127.0.0.1, ::1, not for another.name"),
            std::string::npos)
      << proxy.log();
}

TEST_F(TlsTest, AFileThatWillNotDoIsNamedAtTheStartAndAtAReload) {
  RedisServer server;
  ProxyProgram proxy{pool(with_tls_of_its_own(), server.port())};
  const auto bad = files()["ca.key"];
  proxy.write(pool({"listen_tls:", "  certificate: " + bad, "  key: " + files()["server.key"]},
                   server.port()));
  const auto reply = proxy.ask({"RELOAD"});
  ASSERT_TRUE(reply.is_error());
  EXPECT_NE(reply.as_text().find(bad), std::string::npos) << reply.as_text();
  EXPECT_EQ(cli(proxy.port(), "ping").second, "PONG\n") << "all goes on as before";
  const auto [code, text] = files().shell(
      fmt::format("{}/sluice proxy -c {} -s {}", test::built_path(), proxy.config(), free_port()));
  EXPECT_EQ(code, 1);
  EXPECT_NE(text.find(bad), std::string::npos) << text;
}

TEST_F(TlsTest, AReloadTakesNewCertificates) {
  RedisServer server;
  Certificates own;
  const auto lines =
      pool({"listen_tls:", "  certificate: " + own["server.pem"], "  key: " + own["server.key"]},
           server.port());
  ProxyProgram proxy{lines};
  const auto shown = [&] {
    return own
        .shell(fmt::format("echo | openssl s_client -connect 127.0.0.1:{} 2>&1 | grep subject=",
                           proxy.port()))
        .second;
  };
  EXPECT_NE(shown().find("server"), std::string::npos);
  own.make("renewed", "DNS:localhost");
  own.shell("cp renewed.pem server.pem; cp renewed.key server.key");
  ASSERT_FALSE(proxy.ask({"RELOAD"}).is_error());
  EXPECT_NE(shown().find("renewed"), std::string::npos);
}

TEST_F(TlsTest, X13_AHandshakeThatNeverEndsIsGivenUp) {
  const auto port = free_port();
  // The kernel takes the connections, and nobody says a word on them.
  const auto silent = net::ServerSocket::open({.host = "127.0.0.1", .port = port}, {});
  auto lines = with_tls_of_its_own();
  for (const std::string line : {"login_timeout: 100ms", "connect_timeout: 200ms", "server_tls:"})
    lines.push_back(line);
  lines.push_back("  ca: " + files()["ca.pem"]);
  ProxyProgram proxy{pool(lines, port)};
  PlainClient never_shakes{proxy.port()};
  EXPECT_EQ(never_shakes.read_raw(), "");
  const auto [code, said] = cli(proxy.port(), "GET k");
  EXPECT_NE(said.find("Connection timed out"), std::string::npos) << said;
}

TEST_F(TlsTest, X22_AnUpgradeClosesAClientOverTlsWhenItIsQuiet) {
  RedisServer server;
  ProxyProgram proxy{pool(with_tls_of_its_own(), server.port()),
                     {.process = {"drain_timeout: 600000"}, .arguments = {}}};
  PlainClient has_begun{proxy.port()};
  has_begun.send("\x16");
  ASSERT_EQ(cli(proxy.port(), "SET k v").second, "OK\n");
  ASSERT_FALSE(proxy.ask({"UPGRADE"}).is_error()) << proxy.log();
  EXPECT_EQ(has_begun.read_raw(), "") << "not handed over: the new process could not go on with it";
  EXPECT_EQ(proxy.process().wait_for(60s), 0) << proxy.log();
  EXPECT_EQ(cli(proxy.port(), "GET k").second, "v\n");
}

}  // namespace
}  // namespace sluice::test
