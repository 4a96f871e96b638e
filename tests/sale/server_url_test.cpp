#include "sale/sql/server_url.hpp"

#include <gtest/gtest.h>

#include "sluice/error.hpp"

namespace sluice::sale {
namespace {

TEST(ServerUrl, TakesAUrlApart) {
  const auto url = server_url("postgresql://sh%40p:s%3A%2Fc%27ret@db1.internal/orders", 5432);
  EXPECT_EQ(url.host, "db1.internal");
  EXPECT_EQ(url.port, 5432);
  EXPECT_EQ(url.user, "sh@p");
  EXPECT_EQ(url.password, "s:/c'ret");
  EXPECT_EQ(url.database, "orders");
  EXPECT_FALSE(url.has_tls);
  EXPECT_EQ(url.description, "postgresql://db1.internal:5432/orders");
  EXPECT_EQ(server_url("mariadb://[::1]:3307/o", 3306).description, "mariadb://[::1]:3307/o");
  const auto socket = server_url("mariadb:///orders?socket=/run/mysqld/mysqld.sock", 3306);
  EXPECT_TRUE(socket.host.empty());
  EXPECT_EQ(socket.socket, "/run/mysqld/mysqld.sock");
}

TEST(ServerUrl, TlsIsVerifiedUnlessToldOtherwise) {
  for (const auto* const asks :
       {"tls=yes", "sslmode=require", "sslmode=verify-full", "tls_ca=/a.pem", "tls_verify=full"}) {
    const auto url = server_url(std::string{"mariadb://h/d?"} + asks, 3306);
    EXPECT_TRUE(url.has_tls && url.is_verified) << asks;
    EXPECT_FALSE(url.tls_ca.empty()) << asks;
  }
  EXPECT_FALSE(server_url("mariadb://h/d?tls_verify=none", 3306).is_verified);
  EXPECT_FALSE(server_url("mariadb://h/d?sslmode=disable", 3306).has_tls);
}

TEST(ServerUrl, RefusesWhatItWouldNotDoAsAsked) {
  for (const auto* const bad :
       {"postgresql://u:secret@h", "postgresql://u:secret@h/", "postgresql://u:secret@h/a/b",
        "postgresql://u:secret@h1,h2/d", "postgresql:d", "postgresql://u:secret@h/d?sslmode=prefer",
        "postgresql://u:secret@h/d?sslmode=yes", "postgresql://u:secret@h/d?tls=maybe",
        "postgresql://u:secret@h/d?tls=no&tls_ca=/a", "postgresql://u:secret@h/d?tls_key=/a",
        "postgresql://u:secret@/d?tls=yes", "postgresql://u:secret@h/d?socket=/s",
        "postgresql://u:secret@h;x/d", "postgresql://u:secret@h/d?password=secret"}) {
    try {
      server_url(bad, 1);
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::bad_argument) << bad;
      EXPECT_EQ(std::string{error.what()}.find("secret"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace sluice::sale
