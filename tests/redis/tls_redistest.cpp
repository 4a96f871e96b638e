// rediss://: a real redis-server behind TLS, with certificates of the test; and what it does not
// say by itself: that it wants a certificate, that it is the wrong one, that there is no TLS.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "redis/at_server.hpp"
#include "redis/tls_peer.hpp"
#include "sluice/metrics.hpp"
#include "support/certificates.hpp"
#include "support/collected_log.hpp"
#include "support/comes_true.hpp"
#include "support/free_port.hpp"
#include "support/plain_client.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::Certificates;
using test::failure_of;

class Tls : public testing::Test {
 protected:
  static Certificates& shared() {
    static Certificates certificates;
    return certificates;
  }
  static net::TlsClientOptions trusting(const Certificates& files) {
    return {.files = {.certificate = {}, .key = {}, .ca = files["ca.pem"]}};
  }
  static net::TlsClientOptions with_certificate(const Certificates& files) {
    auto tls = trusting(files);
    tls.files.certificate = files["client.pem"];
    tls.files.key = files["client.key"];
    return tls;
  }
  static redis::RedisOptions at(std::uint16_t port, net::TlsClientOptions tls,
                                const std::string& host = "127.0.0.1") {
    redis::RedisOptions options;
    options.endpoint = {.host = host, .port = port, .unix_path = {}};
    options.tls = std::make_shared<net::TlsClient>(std::move(tls));
    options.connect_timeout = options.command_timeout = 30s;
    options.backoff_min = 2ms;
    options.backoff_max = 50ms;
    return options;
  }
  static void expect_refused(const redis::RedisOptions& options, Errc code,
                             const std::vector<std::string>& words) {
    const auto failure = failure_of([&] { redis::open_redis(options); });
    EXPECT_EQ(failure.errc(), code) << failure.what();
    EXPECT_EQ(failure.effect(), Effect::none);
    for (const auto& word : words)
      EXPECT_NE(failure.message().find(word), std::string::npos) << failure.message();
  }

  const std::uint16_t port_ = test::free_port();
};

int count_of(std::string_view text, std::string_view words) {
  int count = 0;
  for (auto at = text.find(words); at != text.npos; at = text.find(words, at + 1)) ++count;
  return count;
}

TEST_F(Tls, CallsSubscriptionsAndBlockingCommands) {
  const test::RedisServer server{shared().redis(port_, "yes")};
  auto options = at(port_, with_certificate(shared()));
  options.spin = 20us;
  const auto store = redis::open_redis(options);
  EXPECT_EQ(store->describe(), fmt::format("rediss://127.0.0.1:{}/0", port_));
  EXPECT_EQ(store->run({"SET", "k", "v"}).get().as_text(), "OK");
  std::atomic<int> heard{0};
  const auto ear = store->listen("c", [&](const Message&) { ++heard; }).get();
  store->run({"PUBLISH", "c", "x"}).get();
  EXPECT_TRUE(test::comes_true([&] { return heard == 1; }));
  std::jthread pusher{[&] { store->run({"RPUSH", "list", "a"}).get(); }};
  EXPECT_EQ(store->run({"BLPOP", "list", "20"}).get().as_items().size(), 2U);
  std::vector<std::jthread> crowd;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; ++t)
    crowd.emplace_back([&, t] {
      const std::string value(static_cast<std::size_t>(1 + t * 9'000), 'x');
      for (int i = 0; i < 50; ++i) {
        const auto key = fmt::format("{}:{}", t, i);
        store->run({"SET", key, value}).get();
        if (store->run({"GET", key}).get().as_text() != value) ++wrong;
      }
    });
  crowd.clear();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Tls, T44_AWrongNameAnEndedCertificateAndAnUnknownAuthorityAreTold) {
  Certificates files;
  files.make("other", "DNS:db.internal,IP:10.0.0.9");
  files.make("ended", "IP:127.0.0.1", -1);
  {
    const test::RedisServer server{files.redis(port_, "no", "other")};
    expect_refused(at(port_, trusting(files)), Errc::authentication,
                   {"is for db.internal, 10.0.0.9, not for 127.0.0.1", "tls_server_name"});
    expect_refused(at(port_, trusting(files), "localhost"), Errc::authentication,
                   {"not for localhost"});
    expect_refused(at(port_, trusting(shared())), Errc::authentication,
                   {"comes from /CN=authority, which is not trusted", "tls_ca"});
    expect_refused(at(port_, {}), Errc::authentication, {"which is not trusted"});
  }
  const test::RedisServer server{files.redis(port_, "no", "ended")};
  expect_refused(at(port_, trusting(files)), Errc::authentication,
                 {"CN=ended has ended on 20", "renew it"});
}

TEST_F(Tls, T44_ARefusedCertificateIsNoStormOfAttempts) {
  Certificates files;
  const test::RedisServer server{files.redis(port_)};
  auto options = at(port_, trusting(files));
  options.backoff_min = 1ms;
  options.backoff_max = 10min;
  const auto store = redis::open_redis(options);
  files.make("server", "DNS:elsewhere");
  test::PlainClient admin{server.port()};
  ASSERT_EQ(admin
                .command({"CONFIG", "SET", "tls-cert-file", files["server.pem"], "tls-key-file",
                          files["server.key"]})
                .as_text(),
            "OK");
  admin.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  EXPECT_TRUE(test::comes_true([&] {
    const auto failure = failure_of([&] { store->run({"GET", "n"}, {.timeout = 50ms}).get(); });
    return failure.message().find("is for elsewhere, not for 127.0.0.1") != std::string::npos;
  }));
  // Calls that come later do not make it try again.
  failure_of([&] { store->run({"GET", "n"}, {.timeout = 50ms}).get(); });
  const auto refusals = [&] { return count_of(server.log(), "Error accepting a client"); };
  EXPECT_TRUE(test::comes_true([&] { return refusals() > 0; })) << server.log();
  EXPECT_EQ(refusals(), 1) << server.log();
}

TEST_F(Tls, T45_AServerThatWantsACertificateSaysSoThroughUs) {
  for (const std::string versions : {"TLSv1.2", "TLSv1.3"}) {
    auto lines = shared().redis(port_, "yes");
    lines.push_back("tls-protocols " + versions);
    const test::RedisServer server{lines};
    expect_refused(at(port_, trusting(shared())), Errc::authentication,
                   {"wants a client certificate"});
    const Certificates strangers;
    auto strange = trusting(shared());
    strange.files.certificate = strangers["client.pem"];
    strange.files.key = strangers["client.key"];
    expect_refused(at(port_, strange), Errc::authentication,
                   {"does not trust the authority of our certificate"});
    redis::open_redis(at(port_, with_certificate(shared())))->run({"PING"}).get();
  }
}

TEST_F(Tls, T46_APortWithoutTlsAndOneWithAreGuessedAt) {
  const test::RedisServer server{shared().redis(port_, "no")};
  auto options = at(server.port(), trusting(shared()));
  std::string said;  // on a slow machine not even the kernel has connected by then
  for (auto time = 200ms; said.find("does not speak TLS") == said.npos && time < 60s; time *= 5) {
    options.connect_timeout = time;
    const auto failure = failure_of([&] { redis::open_redis(options); });
    EXPECT_EQ(failure.errc(), Errc::timeout) << failure.what();
    said = failure.message();
  }
  EXPECT_NE(said.find("perhaps this port does not speak TLS: redis://"), said.npos) << said;
  options.tls = nullptr;
  options.endpoint.port = port_;
  options.connect_timeout = 30s;
  expect_refused(options, Errc::connection, {"perhaps this port expects TLS", "rediss://"});
}

TEST_F(Tls, TheLeastVersionIsKept) {
  auto lines = shared().redis(port_, "no");
  lines.emplace_back("tls-protocols TLSv1.2");
  const test::RedisServer server{lines};
  redis::open_redis(at(port_, trusting(shared())))->run({"PING"}).get();
  auto tls = trusting(shared());
  tls.files.least = net::TlsVersion::v1_3;
  expect_refused(at(port_, tls), Errc::protocol, {"no version of TLS in common"});
}

TEST_F(Tls, T47_CertificatesAreReplacedAndNoCallFails) {
  Certificates files;
  const test::RedisServer server{files.redis(port_, "yes")};
  const auto store = redis::open_redis(at(port_, with_certificate(files)));
  test::PlainClient admin{server.port()};
  std::atomic<bool> over{false};
  std::atomic<int> answered{0};
  std::vector<std::jthread> callers;
  for (int t = 0; t < 3; ++t)
    callers.emplace_back([&] {
      while (!over) {
        try {
          store->run({"GET", "k"}).get();
          ++answered;
        } catch (const Error& error) {
          ADD_FAILURE() << error.what();
          return;
        }
      }
    });
  // A new authority signs both; the client trusts both while that goes on.
  files.shell("cp ca.pem ca.old");
  const Certificates later;
  files.shell(fmt::format("cat {} >> ca.pem; cp {} {} .", later["ca.pem"], later["server.pem"],
                          later["server.key"]));
  const auto lose_all = [&] {
    const int before = answered;
    const auto reconnects = metrics().redis_reconnects.load();
    admin.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    EXPECT_TRUE(test::comes_true(
        [&] { return metrics().redis_reconnects.load() > reconnects && answered > before + 10; }));
  };
  admin.command({"CONFIG", "SET", "tls-cert-file", files["server.pem"], "tls-key-file",
                 files["server.key"], "tls-ca-cert-file", files["ca.pem"]});
  lose_all();
  {
    const test::CollectedLog said;
    files.shell(fmt::format("cp {} .", later["client.pem"]));  // its key is not there yet
    lose_all();
    EXPECT_EQ(said.count("the files for TLS have changed and cannot be used"), 1U) << said.text();
  }
  files.shell(fmt::format("cp {} .", later["client.key"]));
  lose_all();
  // Who has not read the new ones is refused from here on.
  admin.command({"CONFIG", "SET", "tls-ca-cert-file", later["ca.pem"]});
  lose_all();
  over = true;
}

TEST_F(Tls, T48_AnAddressIsVerifiedByTheNameThatIsGivenForIt) {
  Certificates files;
  files.make("server", "DNS:node-1.cluster");
  const test::RedisServer server{files.redis(port_, "no")};
  auto tls = trusting(files);
  tls.server_name = "node-1.cluster";
  redis::open_redis(at(port_, tls))->run({"PING"}).get();
  tls.server_name = std::string(300, 'n');
  expect_refused(at(port_, tls), Errc::bad_argument, {"no name or address"});
  tls.server_name = "node-2.cluster";
  expect_refused(at(port_, tls), Errc::authentication,
                 {"is for node-1.cluster, not for node-2.cluster"});
}

TEST_F(Tls, T49_AddressesOfIPv6AreVerifiedAndNamesAreToldToTheServer) {
  test::TlsPeer peer{shared()};
  for (const std::string host : {"localhost", "127.0.0.1", "::1"})
    redis::open_redis(at(peer.port(), trusting(shared()), host));
  EXPECT_EQ(peer.names(), (std::vector<std::string>{"localhost", "-", "-"}));
}

TEST_F(Tls, T50_MegabytesBothWaysAndNewKeysInTheMiddleOfThem) {
  test::TlsPeer peer{shared()};
  const auto store = redis::open_redis(at(peer.port(), trusting(shared())));
  std::atomic<int> wrong{0};
  std::vector<std::jthread> callers;
  for (int t = 0; t < 4; ++t)
    callers.emplace_back([&, t] {
      const auto key = std::to_string(t);
      for (int i = 0; i < 5; ++i) {
        const std::string value(1'000'000, static_cast<char>('a' + t + i));
        store->run({"SET", key, value}).get();
        if (store->run({"GET", key}).get().as_text() != value) ++wrong;
      }
    });
  callers.clear();
  EXPECT_EQ(wrong, 0);
  store->run({"SET", "last", "v"}).get();
  EXPECT_GT(peer.key_updates(), 0);
  EXPECT_EQ(peer.names().size(), 1U) << "one connection has carried all of it";
}

TEST_F(Tls, T50_MegabytesBothWaysOfARealServer) {
  const test::RedisServer server{shared().redis(port_, "no")};
  const auto store = redis::open_redis(at(port_, trusting(shared())));
  Batch batch;
  const std::string value(1'000'000, 'v');
  for (int i = 0; i < 10; ++i) batch.add({"SET", std::to_string(i), value});
  for (int i = 0; i < 10; ++i) batch.add({"GET", std::to_string(i)});
  const auto replies = store->run(std::move(batch)).get();
  for (std::size_t i = 10; i < 20; ++i) EXPECT_EQ(replies[i].as_text(), value);
}

TEST_F(Tls, AServerThatWasKilledIsShakenHandsWithAgain) {
  test::RedisServer server{shared().redis(port_, "no")};
  const auto store = redis::open_redis(at(port_, trusting(shared())));
  for (int i = 0; i < 3; ++i) {
    store->run({"SET", "k", "v"}).get();
    server.restart(false);
    EXPECT_TRUE(store->run({"GET", "k"}).get().is_null());
  }
}

TEST_F(Tls, ACertificateThatEndsSoonIsToldOfOnce) {
  Certificates files;
  files.make("server", "IP:127.0.0.1", 20);
  files.make("client", "DNS:client", 10);
  const test::RedisServer server{files.redis(port_, "yes")};
  for (const bool wants : {true, false}) {
    auto tls = with_certificate(files);
    if (!wants) tls.expiry_warning = {};
    const test::CollectedLog said;
    const auto options = at(port_, tls);
    for (int i = 0; i < 2; ++i) redis::open_redis(options)->run({"BLPOP", "k", "0.001"}).get();
    EXPECT_EQ(said.count("client.pem ends on "), wants ? 1U : 0U) << said.text();
    EXPECT_EQ(said.count("has shown ends on "), wants ? 1U : 0U) << said.text();
    EXPECT_EQ(said.count(", 9 days from now"), wants ? 1U : 0U) << said.text();
  }
}

TEST_F(Tls, ACertificateThatComesNearItsEndOnALivingConnectionIsToldOf) {
  Certificates files;
  files.make("server", "IP:127.0.0.1", 20);
  const test::RedisServer server{files.redis(port_, "no")};
  auto tls = trusting(files);
  tls.expiry_warning = 20 * 24h - 1s;  // it is, or will be, a second after it was made
  const test::CollectedLog said;
  const auto store = redis::open_redis(at(port_, tls));
  EXPECT_TRUE(test::comes_true([&] { return said.count("has shown ends on ") == 1U; }));
}

TEST_F(Tls, UnverifiedIsPossibleAndWhatIsSentIsStillSecret) {
  const Certificates strangers;
  const test::RedisServer server{strangers.redis(port_, "no")};
  net::TlsClientOptions tls;
  tls.files.verify = false;
  EXPECT_EQ(redis::open_redis(at(port_, tls))->run({"PING"}).get().as_text(), "PONG");
}

TEST_F(Tls, FilesThatWillNotDoAreNamed) {
  Certificates files;
  files.shell("openssl ec -aes128 -passout pass:word -in client.key -out locked.key; mkdir empty");
  const auto refused = [&](const net::TlsFiles& of, const std::string& file,
                           const std::string& why) {
    const auto failure = failure_of([&] { net::TlsClient{{.files = of}}; });
    EXPECT_EQ(failure.errc(), Errc::bad_argument);
    EXPECT_NE(failure.message().find(file), std::string::npos) << failure.message();
    EXPECT_NE(failure.message().find(why), std::string::npos) << failure.message();
  };
  refused({.certificate = {}, .key = {}, .ca = files["none.pem"]}, "none.pem", "No such file");
  refused({.certificate = {}, .key = {}, .ca = files["ca.key"]}, "ca.key", "cannot be used");
  refused({.certificate = {}, .key = {}, .ca = files["empty"]}, "empty", "openssl rehash");
  refused({.certificate = files["client.pem"], .key = files["server.key"], .ca = {}}, "server.key",
          "not that of the certificate");
  refused({.certificate = files["client.pem"], .key = files["locked.key"], .ca = {}}, "locked.key",
          "has a password");
}

TEST_F(Tls, AFolderOfAuthoritiesIsTrusted) {
  Certificates files;
  files.shell("mkdir trusted; cp ca.pem trusted; openssl rehash trusted");
  const test::RedisServer server{files.redis(port_, "no")};
  net::TlsClientOptions tls;
  tls.files.ca = files["trusted"];
  EXPECT_EQ(redis::open_redis(at(port_, tls))->run({"PING"}).get().as_text(), "PONG");
}

}  // namespace
}  // namespace sluice
