#include "base/url.hpp"

#include <gtest/gtest.h>

#include "sluice/error.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

TEST(Url, IsTakenApart) {
  const auto url = parse_url("REDIS+unix://us%65r:p%40ss%3A@h:63/a%20b?name=x%26y&spin=5us");
  EXPECT_EQ(url.scheme, "redis+unix");
  EXPECT_EQ(url.user, "user");
  EXPECT_EQ(url.password, "p@ss:");
  EXPECT_EQ(url.servers.at(0).host, "h");
  EXPECT_EQ(url.servers.at(0).port, 63);
  EXPECT_EQ(url.path, "/a b");
  EXPECT_EQ(url.query.at("name"), "x&y");
  EXPECT_EQ(url.query.at("spin"), "5us");
}

TEST(Url, PartsMayBeMissing) {
  const auto memory = parse_url("embedded:");
  EXPECT_FALSE(memory.has_authority);
  EXPECT_EQ(memory.path, "");
  EXPECT_EQ(parse_url("embedded:/var/lib/app").path, "/var/lib/app");
  const auto bare = parse_url("redis://h");
  EXPECT_EQ(bare.servers.at(0).host, "h");
  EXPECT_FALSE(bare.servers.at(0).port);
  EXPECT_EQ(bare.user, "");
  const auto password = parse_url("redis://:secret@h");
  EXPECT_EQ(password.user, "");
  EXPECT_EQ(password.password, "secret");
}

TEST(Url, Ipv6StandsInBrackets) {
  const auto url = parse_url("redis://[fe80::1]:7000/1");
  EXPECT_EQ(url.servers.at(0).host, "fe80::1");
  EXPECT_EQ(url.servers.at(0).port, 7000);
  EXPECT_EQ(parse_url("redis://[::1]").servers.at(0).host, "::1");
}

TEST(Url, MayNameSeveralServers) {
  const auto servers = parse_url("redis+cluster://u:p@a,[::1]:7001,c:7002/").servers;
  ASSERT_EQ(servers.size(), 3);
  EXPECT_EQ(servers[0].host, "a");
  EXPECT_FALSE(servers[0].port);
  EXPECT_EQ(servers[1].host, "::1");
  EXPECT_EQ(servers[1].port, 7001);
  EXPECT_EQ(servers[2].host, "c");
  EXPECT_EQ(servers[2].port, 7002);
  for (const auto* const text :
       {"redis+cluster://a,", "redis+cluster://,a", "redis+cluster://a,,b"})
    EXPECT_THROW(parse_url(text), Error) << text;
}

TEST(Url, APasswordMayHoldAnAt) { EXPECT_EQ(parse_url("redis://u:a@b@h").password, "a@b"); }

TEST(Url, WhatIsWrongIsSaidWithoutThePassword) {
  for (const auto* const text :
       {"", "redis", "redis://u:hush@h:port", "redis://u:hush@h:0", "redis://u:hush@h:65536",
        "redis://u:hush@h:", "redis://u:hush@h:1:2", "redis://u:hush@[::1", "redis://u:hush@[]",
        "redis://u:hush@[::1]x", "redis://u:%g@h", "redis://u:hush%@h", "redis://u:hush@h/%4",
        "redis://u:hush@h?name", "redis://u:hush@h?a=1&a=2", "redis://u:hush@h#x",
        "redis://u:hush@h:+1", "redis://u:hush@h: 1"}) {
    try {
      parse_url(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::bad_argument);
      EXPECT_EQ(std::string{error.what()}.find("hush"), std::string::npos) << error.what();
    }
  }
}

TEST(Url, N11_NoPartOfAPasswordIsShown) {
  for (const auto* const text :
       {"redis://user:pa/hush@h", "redis://user:63/hush@h:1", "redis://:12/hush@h/0",
        "redis://user:63?hush@h", "redis://user:63?name=hush@h", "redis://user:63/hush?x@h",
        "redis://user:63#hush@h", "redis://user:pa?hush@h", "redis+unix://u:1/hush@/run/r.sock"}) {
    try {
      parse_url(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::bad_argument);
      EXPECT_EQ(error.message().find("hush"), std::string::npos) << error.message();
    }
  }
  EXPECT_EQ(parse_url("embedded:/var/lib/app@2").path, "/var/lib/app@2") << "there is no password";
}

TEST(Url, N12_ControlCharactersAreRefused) {
  for (const auto* const text : {"redis://127.0.0.1%00evil", "redis://h%0a", "redis+unix:///a%00b",
                                 "redis://h?name=a%00b", "redis://h?na%00me=a", "embedded:/a%00b"})
    EXPECT_THROW(parse_url(text), Error) << text;
  EXPECT_EQ(parse_url("redis://u:a%00b@h").password, (std::string{"a\0b", 3}));
}

}  // namespace
}  // namespace sluice
