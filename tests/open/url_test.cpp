#include "open/url.hpp"

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
  EXPECT_EQ(url.host, "h");
  EXPECT_EQ(url.port, 63);
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
  EXPECT_EQ(bare.host, "h");
  EXPECT_FALSE(bare.port);
  EXPECT_EQ(bare.user, "");
  const auto password = parse_url("redis://:secret@h");
  EXPECT_EQ(password.user, "");
  EXPECT_EQ(password.password, "secret");
}

TEST(Url, Ipv6StandsInBrackets) {
  const auto url = parse_url("redis://[fe80::1]:7000/1");
  EXPECT_EQ(url.host, "fe80::1");
  EXPECT_EQ(url.port, 7000);
  EXPECT_EQ(parse_url("redis://[::1]").host, "::1");
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

}  // namespace
}  // namespace sluice
