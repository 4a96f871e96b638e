#include "sluice/open.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/url.hpp"
#include "open/settings.hpp"
#include "sluice/store.hpp"
#include "support/silent_port.hpp"
#include "support/temp_dir.hpp"

namespace sluice {
namespace {

Error failure_of(const std::string& url, const OpenOptions& options = {}) {
  try {
    open(url, options);
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << url << " was opened";
  return Error{Errc::server, "opened", Effect::done};
}

TEST(Open, EmbeddedInMemoryAndInAFolder) {
  EXPECT_EQ(open("embedded:")->run({"PING"}).get().as_text(), "PONG");
  const test::TempDir folder;
  for (const auto* const fsync : {"", "?fsync=always", "?fsync=everysec", "?fsync=never"}) {
    const auto store = open("embedded:" + (folder / "data").string() + fsync);
    store->run({"INCR", "n"}).get();
  }
  EXPECT_EQ(open("embedded:" + (folder / "data").string())->run({"GET", "n"}).get().as_integer(),
            4);
}

TEST(Open, WhatIsNoStoreIsABadArgumentThatNamesThoseThatAre) {
  for (const auto* const url : {"mysql://h", "http://h", ":", "redis-cluster://h"}) {
    const auto error = failure_of(url);
    EXPECT_EQ(error.errc(), Errc::bad_argument) << url;
    EXPECT_NE(error.message().find("redis://"), std::string::npos) << error.what();
  }
}

/// Each printable character alone, each pair around a '/', and names of many.
TEST(Open, D20_AMasterMayHaveAnyName) {
  std::vector<std::string> names;
  for (char c = ' '; c <= '~'; ++c) {
    names.emplace_back(1, c);
    for (char d = ' '; d <= '~'; ++d) names.push_back({c, '/', d});
  }
  std::mt19937 random{20};
  for (int i = 0; i < 2000; ++i) {
    std::string name;
    for (auto left = random() % 30 + 1; left > 0; --left)
      name += static_cast<char>(' ' + random() % 95);
    names.push_back(std::move(name));
  }
  for (const auto& name : names) {
    const auto url = "redis+sentinel://a,b:1/" + percent_encoded(name);
    EXPECT_EQ(sentinel_options(parse_url(url), {}).name, name) << url;
    const auto with_database = sentinel_options(parse_url(url + "/7?timeout=1s"), {});
    EXPECT_EQ(with_database.name, name) << url;
    EXPECT_EQ(with_database.server.database, 7) << url;
  }
}

TEST(Open, D19_SentinelsMayHaveTlsOfTheirOwn) {
  const auto speak = [](const std::string& url) {
    const auto options = sentinel_options(parse_url(url), {});
    return std::pair{options.server.tls != nullptr, options.sentinel_tls != nullptr};
  };
  EXPECT_EQ(speak("redis+sentinel://a/m"), std::pair(false, false));
  EXPECT_EQ(speak("rediss+sentinel://a/m"), std::pair(true, true));
  EXPECT_EQ(speak("rediss+sentinel://a/m?sentinel_tls=off"), std::pair(true, false));
  EXPECT_EQ(speak("redis+sentinel://a/m?sentinel_tls=on&tls_verify=none"), std::pair(false, true));
  EXPECT_EQ(speak("valkeys+sentinel://a/m?sentinel_tls=on"), std::pair(true, true));
}

TEST(Open, WhatNamesNoMasterOfSentinelsIsABadArgumentThatSaysWhy) {
  const std::pair<const char*, const char*> wrong[] = {
      {"redis+sentinel://", "needs Sentinels and the name of their master"},
      {"redis+sentinel:m", "needs Sentinels and the name of their master"},
      {"redis+sentinel://:26379/m", "needs Sentinels and the name of their master"},
      {"redis+sentinel://a,b", "needs Sentinels and the name of their master"},
      {"redis+sentinel://a,b/", "needs Sentinels and the name of their master"},
      {"redis+sentinel://a,b//1", "needs Sentinels and the name of their master"},
      {"redis+sentinel://a,b/m/one", "database"},
      {"redis+sentinel://a,b/m/1/2", "database"},
      {"redis+sentinel://a,b/m/1?db=1", "names the database twice"},
      {"redis+sentinel://a/m?tls_ca=/ca.pem", "write rediss+sentinel://"},
      {"valkeys+sentinel://a/m?tls_ca=/no/such/ca.pem", "/no/such/ca.pem"},
      {"redis://a?sentinel_user=poll", "is no setting of redis"},
      {"redis+sentinel://a/m?sentinel_user=poll", "belong together"},
      {"redis+sentinel://a/m?sentinel_tls=yes", "sentinel_tls is on or off, not 'yes'"},
      {"rediss+cluster://a?sentinel_tls=on", "is no setting of rediss+cluster"},
      {"redis+sentinel://a/m?sentinel_tls=off&tls_ca=/ca.pem", "write rediss+sentinel://"},
      {"redis+sentinel://a/m?sentinel_pasword=x", "is no setting of redis+sentinel"},
  };
  for (const auto& [url, why] : wrong) {
    const auto error = failure_of(url);
    EXPECT_EQ(error.errc(), Errc::bad_argument) << url;
    EXPECT_NE(error.message().find(why), std::string::npos) << error.what();
  }
}

TEST(Open, ReplicasAreReadFromWhereTheyAreKnown) {
  const std::pair<const char*, const char*> wrong[] = {
      {"redis://a?read_from=replica", "open redis+sentinel:// or redis+cluster://"},
      {"rediss://a?replica_max_lag=1s", "open redis+sentinel:// or redis+cluster://"},
      {"redis+unix:///s?read_from=master", "open redis+sentinel:// or redis+cluster://"},
      {"redis+cluster://a?read_from=slave", "read_from is replica or master"},
      {"redis+cluster://a?replica_max_lag=1s", "no use without read_from=replica"},
      {"redis+sentinel://a/m?read_from=replica&replica_max_lag=99ms", "100ms at least"},
      {"redis+sentinel://a/m?read_from=replica&replica_max_lag=soon", "replica_max_lag"},
  };
  for (const auto& [url, why] : wrong) {
    const auto error = failure_of(url);
    EXPECT_EQ(error.errc(), Errc::bad_argument) << url;
    EXPECT_NE(error.message().find(why), std::string::npos) << error.what();
  }
}

TEST(Open, WhatTlsIsToldIsCheckedBeforeAnythingIsDialled) {
  const std::pair<const char*, const char*> wrong[] = {
      {"redis://h?tls_ca=/ca.pem", "write rediss://"},
      {"valkey://h?tls_verify=none", "write rediss://"},
      {"rediss://h?tls_verfy=none", "is no setting of rediss"},
      {"rediss://h?tls_verify=off", "tls_verify is full or none"},
      {"rediss://h?tls_verify=none&tls_ca=/ca.pem", "leave one of them out"},
      {"rediss://h?tls_min_version=1.1", "tls_min_version is 1.2 or 1.3"},
      {"rediss://h?tls_certificate=/a.pem", "belong together"},
      {"rediss://h?tls_key=/a.key", "belong together"},
      {"rediss://h?tls_server_name=", "is empty"},
      {"rediss://h?tls_expiry_warning=soon", "tls_expiry_warning"},
      {"valkeys://h?tls_ca=/no/such/ca.pem", "/no/such/ca.pem: these certificates cannot be used"},
      {"rediss://h?tls_certificate=/no/such.pem&tls_key=/no/such.key", "/no/such.pem"},
      {"rediss:///run/redis.sock", "needs a host"},
      {"rediss+unix:///run/redis.sock", "is no kind of store"}};
  for (const auto& [url, why] : wrong) {
    const auto error = failure_of(url);
    EXPECT_EQ(error.errc(), Errc::bad_argument) << url;
    EXPECT_NE(error.message().find(why), std::string::npos) << url << ": " << error.message();
  }
}

TEST(Open, ABadPartIsABadArgument) {
  for (const auto* const url : {"",
                                "redis",
                                "redis:",
                                "redis://",
                                "redis://h:99999",
                                "redis://h:12x",
                                "redis://h/x",
                                "redis://h/1/2",
                                "redis://h/-1",
                                "redis://h/1?db=2",
                                "redis://h?timeout=0",
                                "redis://h?timeout=soon",
                                "redis://h?tiemout=3s",
                                "redis+unix://h/sock",
                                "redis+unix://",
                                "embedded://host/path",
                                "embedded:/x?fsync=sometimes",
                                "embedded:/x?name=y",
                                "embedded:/",
                                "embedded:relative",
                                "embedded:./x"})
    EXPECT_EQ(failure_of(url).errc(), Errc::bad_argument) << url;
}

TEST(Open, AMessageShowsNoPartOfAPassword) {
  for (const auto* const url : {"redis://:secret/word@h", "redis://app:secret?word@h",
                                "redis://app:secret#word@h", "redis://:secret%2@h"}) {
    const auto error = failure_of(url);
    EXPECT_EQ(error.errc(), Errc::bad_argument) << url;
    EXPECT_EQ(error.message().find("secret"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("%2"), std::string::npos) << error.message();
  }
}

TEST(Open, N12_ANameThatTheServerWouldRefuseIsABadArgument) {
  for (const auto* const name : {"a b", "tab\there", "größe"}) {
    const auto error = failure_of("redis://127.0.0.1:1", {.name = name});
    EXPECT_EQ(error.errc(), Errc::bad_argument) << error.message();
  }
  EXPECT_EQ(failure_of("redis://127.0.0.1:1?name=a%20b").errc(), Errc::bad_argument);
}

TEST(Open, WaitsNoLongerThanItIsTold) {
  const test::SilentPort silent;
  const auto said = [&](const std::string& setting, const OpenOptions& options) {
    const auto error = failure_of(silent.url() + setting, options);
    EXPECT_EQ(error.errc(), Errc::timeout) << error.message();
    EXPECT_EQ(error.effect(), Effect::none);
    return error.message();
  };
  const std::chrono::milliseconds time{40};
  const std::string told = ": not connected within 40 ms";
  EXPECT_TRUE(said("?connect_timeout=1d", {.open_timeout = time}).ends_with(told));
  EXPECT_TRUE(said("?connect_timeout=40ms", {}).ends_with(told));
  EXPECT_TRUE(
      said("?connect_timeout=40ms", {.open_timeout = 24 * 3600 * 25 * time}).ends_with(told));
}

TEST(Frictions, U22_AnEmbeddedStoreSaysThatAChildOfForkDoesNotShareIt) {
  const test::TempDir folder;
  for (const auto& url : {std::string{"embedded:"}, "embedded:" + (folder / "data").string()}) {
    auto store = open(url);
    store->run({"INCR", "n"}).get();
    EXPECT_EXIT(
        {
          ::alarm(60);
          std::string said;
          try {
            store->run({"INCR", "n"}).get();
          } catch (const Error& error) {
            said = error.message();
          }
          store.reset();
          std::_Exit(said.find("before fork()") != std::string::npos ? 7 : 1);
        },
        testing::ExitedWithCode(7), "")
        << url;
    EXPECT_EQ(store->run({"INCR", "n"}).get().as_integer(), 2) << url;
  }
}

TEST(Frictions, U23_TimesInAUrlHaveUnitsUpToDays) {
  const auto error = failure_of("redis://h?timeout=soon");
  EXPECT_NE(error.message().find("s, m, h or d"), std::string::npos) << error.message();
  // They are understood; what fails is the port that nobody may use.
  for (const auto* const time : {"1h", "0.5d", "1.5s", "250"})
    EXPECT_NE(failure_of(std::string{"redis://127.0.0.1:1?timeout="} + time).errc(),
              Errc::bad_argument)
        << time;
}

TEST(Frictions, U19_SeveralServersInAUrlAreNamedAsSuch) {
  const auto error = failure_of("redis://a:1,b:2");
  EXPECT_EQ(error.errc(), Errc::bad_argument);
  EXPECT_NE(error.message().find("several servers"), std::string::npos) << error.message();
  EXPECT_EQ(error.message().find("IPv6"), std::string::npos) << error.message();
}

}  // namespace
}  // namespace sluice
