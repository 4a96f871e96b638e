#include <gtest/gtest.h>

#include "sluice/log.hpp"
#include "sluice/open.hpp"
#include "sluice/store.hpp"
#include "support/certificates.hpp"
#include "support/free_port.hpp"
#include "support/redis_server.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

TEST(OpenRedis, ByHostByAddressAndByName) {
  const test::RedisServer server{{"bind 127.0.0.1 -::1"}};
  const auto port = std::to_string(server.port());
  for (const std::string host : {"127.0.0.1", "localhost"}) {
    EXPECT_EQ(open("redis://" + host + ":" + port)->run({"PING"}).get().as_text(), "PONG");
    EXPECT_EQ(open("valkey://" + host + ":" + port + "/")->run({"PING"}).get().as_text(), "PONG");
  }
}

TEST(OpenRedis, UserDatabaseNameAndTimes) {
  const test::RedisServer server{{"user a:b on >p@s%s ~* &* +@all"}};
  const auto where = "127.0.0.1:" + std::to_string(server.port());
  const auto store = open("redis://a%3Ab:p@s%25s@" + where +
                          "/5?name=my+prog&timeout=5s&connect_timeout=2s&spin=20us");
  const auto info = store->run({"CLIENT", "INFO"}).get().as_text();
  EXPECT_NE(info.find("user=a:b "), std::string::npos) << info;
  EXPECT_NE(info.find("db=5 "), std::string::npos) << info;
  EXPECT_NE(info.find("name=my+prog "), std::string::npos) << info;
  EXPECT_EQ(store->describe(), "redis://" + where + "/5");

  const auto by_query = open("redis://" + where + "?db=6", {.name = "other"})
                            ->run({"CLIENT", "INFO"})
                            .get()
                            .as_text();
  EXPECT_NE(by_query.find("db=6 "), std::string::npos) << by_query;
  EXPECT_NE(by_query.find("name=other "), std::string::npos) << by_query;
}

TEST(OpenRedis, UnixSocket) {
  const test::RedisServer server{{}, test::RedisServer::Address::unix_socket};
  EXPECT_EQ(open(server.url() + "?db=1")->run({"PING"}).get().as_text(), "PONG");
}

TEST(OpenRedis, ThePasswordIsInNoError) {
  const test::RedisServer server{{"requirepass right"}};
  try {
    open("redis://:wrong-one@127.0.0.1:" + std::to_string(server.port()));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::authentication);
    EXPECT_EQ(std::string{error.what()}.find("wrong-one"), std::string::npos) << error.what();
  }
}

TEST(OpenRedis, TheTimeoutOfTheUrlHolds) {
  test::RedisServer server;
  const auto store = open(server.url() + "?timeout=30ms");
  server.stop();
  EXPECT_THROW(store->run({"SET", "k", "v"}).get(), Error);
  server.cont();
}

TEST(OpenRedis, OverTls) {
  const test::Certificates files;
  const auto port = test::free_port();
  const test::RedisServer server{files.redis(port, "yes")};
  const auto url = [&](const std::string& scheme, const std::string& more) {
    return scheme + "://localhost:" + std::to_string(port) + "/3?tls_ca=" + files["ca.pem"] +
           "&tls_certificate=" + files["client.pem"] + "&tls_key=" + files["client.key"] + more;
  };
  for (const std::string scheme : {"rediss", "valkeys"}) {
    const auto store = open(url(scheme, "&tls_min_version=1.3&tls_expiry_warning=1d"));
    EXPECT_EQ(store->run({"PING"}).get().as_text(), "PONG");
    EXPECT_EQ(store->describe(), "rediss://localhost:" + std::to_string(port) + "/3");
  }
  EXPECT_THROW(open(url("rediss", "&tls_server_name=other")), Error);
}

TEST(OpenRedis, UnverifiedTlsIsSaidInTheLog) {
  const test::Certificates files;
  const auto port = test::free_port();
  const test::RedisServer server{files.redis(port, "no")};
  std::vector<std::string> said;
  set_log_sink([&](LogLevel, std::string_view message) { said.emplace_back(message); });
  open("rediss://127.0.0.1:" + std::to_string(port) + "?tls_verify=none")->run({"PING"}).get();
  set_log_sink({});
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].find("is not verified (tls_verify=none)"), std::string::npos) << said[0];
}

TEST(Frictions, U20_ANodeOfAClusterIsRefused) {
  const test::RedisServer server{{"cluster-enabled yes"}};
  try {
    open(server.url());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::server);
    EXPECT_NE(error.message().find("is a node of a cluster"), std::string::npos) << error.what();
  }
}

TEST(Frictions, U19_APasswordThatTheServerDoesNotAskForIsTold) {
  const test::RedisServer server;
  std::vector<std::string> said;
  set_log_sink([&](LogLevel, std::string_view message) { said.emplace_back(message); });
  const auto where = "127.0.0.1:" + std::to_string(server.port());
  EXPECT_EQ(open("redis://:hush@" + where)->run({"PING"}).get().as_text(), "PONG");
  set_log_sink({});
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].find("asks for no password"), std::string::npos) << said[0];
  EXPECT_EQ(said[0].find("hush"), std::string::npos);
}

TEST(Frictions, U19_APasswordThatTheServerAsksForIsNoReasonToWarn) {
  const test::RedisServer server{{"requirepass right"}};
  int said = 0;
  set_log_sink([&](LogLevel, std::string_view) { ++said; });
  EXPECT_EQ(open("redis://:right@127.0.0.1:" + std::to_string(server.port()))
                ->run({"PING"})
                .get()
                .as_text(),
            "PONG");
  set_log_sink({});
  EXPECT_EQ(said, 0);
}

}  // namespace
}  // namespace sluice
