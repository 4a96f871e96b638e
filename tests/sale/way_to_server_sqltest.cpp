// How a program comes to its database server: TLS, passwords, sockets.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sale/database_servers.hpp"

namespace sluice {
namespace {

struct Server {
  std::string name;
  test::DatabaseServer& (*server)();
  std::string encrypted_sessions;  ///< asks how many there are, or were

  friend void PrintTo(const Server& server, std::ostream* to) { *to << server.name; }
};

class WayToServer : public testing::TestWithParam<Server> {
 protected:
  test::DatabaseServer& server_ = GetParam().server();
  std::string database_ = server_.make_database();

  /// What it says of itself, and of its errors.
  std::string failure_of(const std::string& url) {
    try {
      open_order_store(url);
      ADD_FAILURE() << url << " was opened";
      return {};
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::database) << error.what();
      EXPECT_EQ(error.effect(), Effect::none);
      return error.what();
    }
  }
  bool opens(const std::string& url) {
    const auto orders = open_order_store(url);
    orders->add_sale("s", 10);
    return orders->insert("s", orders_from(1, 2)).repeated +
               orders->insert("s", orders_from(1, 2)).repeated >=
           2;
  }
};

TEST_P(WayToServer, APasswordIsInNoMessage) {
  EXPECT_TRUE(opens(server_.url_with_password(database_)));
  const auto described = open_order_store(server_.url_with_password(database_))->describe();
  EXPECT_EQ(described.find("s3cret"), std::string::npos) << described;
  EXPECT_NE(described.find(database_), std::string::npos) << described;
  for (const auto* const wrong : {"wr%27ong%5C", "", "s3cret"}) {
    const auto message = failure_of(server_.url_with_password(database_, wrong));
    EXPECT_EQ(message.find("wr'ong"), std::string::npos) << message;
    EXPECT_EQ(message.find("s3cret"), std::string::npos) << message;
    EXPECT_NE(message.find("password"), std::string::npos) << message;  // what is wrong
  }
}

TEST_P(WayToServer, ByAUnixSocket) {
  const auto user = server_.url("").substr(0, server_.url("").find('@') + 1);
  const auto port = GetParam().name == "postgresql" ? ":" + std::to_string(server_.port()) : "";
  EXPECT_TRUE(opens(user + port + "/" + database_ + "?socket=" + server_.socket()));
}

TEST_P(WayToServer, TlsIsVerified) {
  const auto url = server_.url(database_);
  EXPECT_TRUE(opens(url + "?tls_ca=" + server_.authority()));
  EXPECT_TRUE(opens(url + "?tls_verify=none"));
  EXPECT_NE(failure_of(url + "?tls=yes").find("certificate"), std::string::npos)
      << "nobody of the system has signed it";
  const auto by_other_name = [&] {
    auto other = url;
    other.replace(other.find("127.0.0.1"), 9, "127.0.0.2");
    return other + "?tls_ca=" + server_.authority();
  };
  // The certificate is for 127.0.0.1 and localhost.
  failure_of(by_other_name());
  const test::Certificates strangers;
  failure_of(url + "?tls_ca=" + strangers["ca.pem"]);
}

TEST_P(WayToServer, ASessionThatAskedForTlsHasIt) {
  const auto url = server_.url(database_);
  const auto encrypted = [&] {
    return std::stoll(server_.sql(database_, GetParam().encrypted_sessions));
  };
  const auto before = encrypted();
  const auto plain = open_order_store(url);
  EXPECT_EQ(encrypted(), before);
  const auto verified = open_order_store(url + "?tls_ca=" + server_.authority());
  EXPECT_EQ(encrypted(), before + 1);
  const auto not_verified = open_order_store(url + "?tls_verify=none");
  EXPECT_EQ(encrypted(), before + 2);
}

TEST_P(WayToServer, WhereNobodyListensTheErrorSaysSo) {
  const auto message = failure_of(server_.url(database_, std::uint16_t{1}));
  EXPECT_NE(message.find("127.0.0.1"), std::string::npos) << message;
  EXPECT_NE(failure_of(server_.url("nowhere")).find("nowhere"), std::string::npos);
}

/// Of a server whose zone puts its clocks back: an hour comes twice, and deadlines know which of
/// the two it is.
TEST(MariadbAlone, V52_TheHourThatComesTwiceInAutumnIsTwoHours) {
  auto& server = mariadb();
  const auto database = server.make_database();
  const auto url = server.url_with_password(database);
  open_order_store(url);
  constexpr std::int64_t put_back = 1'792'890'000;  // 2026-10-25T01:00:00Z: from 03:00 to 02:00
  server.sql("mysql", fmt::format("INSERT INTO time_zone VALUES (9001, 'N');"
                                  "INSERT INTO time_zone_name VALUES ('Shop', 9001);"
                                  "INSERT INTO time_zone_transition_type VALUES "
                                  "(9001, 0, 7200, 1, 'S'), (9001, 1, 3600, 0, 'W');"
                                  "INSERT INTO time_zone_transition VALUES "
                                  "(9001, {}, 0), (9001, {}, 1)",
                                  put_back - 200 * 24 * 3600, put_back));
  for (const auto instant : {put_back - 1800, put_back + 1800}) {
    server.sql("mysql", fmt::format("SET GLOBAL init_connect = \"SET time_zone = 'Shop', "
                                    "timestamp = {}\"",
                                    instant));
    EXPECT_EQ(open_order_store(url)->wall(), WallTime{std::chrono::seconds{instant}});
  }
  server.sql("mysql", "SET GLOBAL init_connect = ''");
}

INSTANTIATE_TEST_SUITE_P(
    All, WayToServer,
    testing::Values(Server{"postgresql", postgresql,
                           "SELECT COUNT(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) "
                           "WHERE datname = current_database() AND ssl"},
                    Server{"mariadb", mariadb,
                           "SELECT variable_value FROM information_schema.global_status WHERE "
                           "variable_name = 'Ssl_accepts'"}),
    [](const auto& server) { return server.param.name; });

}  // namespace
}  // namespace sluice
