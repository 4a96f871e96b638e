#include "sluice/token.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>

#include "base/base64.hpp"
#include "base/sha256.hpp"
#include "sluice/error.hpp"
#include "support/temp_dir.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

const WallTime now{std::chrono::sys_days{std::chrono::year{2026} / 11 / 11}};
const std::string secret_one(32, '1');
const std::string secret_two(40, '2');

TokenClaims claims_of_ann() {
  return {.subject = "ann",
          .audience = "sale:maotai",
          .expires = now + 1h,
          .nonce = "n",
          .more = {{"place", "7"}, {"note", "a,b:c\n"}}};
}

TokenKeys one() { return TokenKeys{{{"k1", secret_one}}}; }

/// A token of any payload, as one who has the key could make it.
std::string signed_text(std::string_view payload) {
  const auto text = "v1.k1." + base64url(payload);
  return text + "." + base64url(hmac_sha256(secret_one, text));
}

std::string why(const TokenKeys& keys, const std::string& token) {
  const auto found = keys.check(token, "sale:maotai", "ann", now);
  return found ? "taken" : std::string{to_string(found.error())};
}

TEST(Token, SaysWhatWasSigned) {
  const auto token = one().sign(claims_of_ann());
  const auto found = one().check(token, "sale:maotai", now);
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, claims_of_ann());
  EXPECT_EQ(why(one(), token), "taken");
}

TEST(Token, HasTheDocumentedForm) {
  EXPECT_EQ(one().sign(claims_of_ann()),
            signed_text("11:sale:maotai,3:ann,13:1794358800000,1:n,4:note,6:a,b:c\n,5:place,1:7,"));
}

TEST(Token, WithoutANonceIsAnotherOneEachTime) {
  auto claims = claims_of_ann();
  claims.nonce.clear();
  EXPECT_NE(one().sign(claims), one().sign(claims));
}

TEST(Token, IsRefusedWithItsCause) {
  const auto token = one().sign(claims_of_ann());
  const auto until = [&](WallTime when) { return one().check(token, "sale:maotai", when); };
  EXPECT_TRUE(until(now + 1h - 1us));
  EXPECT_EQ(until(now + 1h).error(), TokenRefusal::expired);
  EXPECT_EQ(one().check(token, "room:maotai", now).error(), TokenRefusal::other_audience);
  EXPECT_EQ(one().check(token, "sale:maotai", "bob", now).error(), TokenRefusal::other_subject);
  EXPECT_EQ(why(TokenKeys{{{"k2", secret_one}}}, token), "unknown_key");
  EXPECT_EQ(why(TokenKeys{{{"k1", secret_two}}}, token), "forged");
  for (const char* const text : {"", "v1", "v1...", "v1.k1.", "v2.k1.YQ.YQ", "v1.k 1.YQ.YQ",
                                 "v1.k1.Y.YQ", "v1.k1.YQ==.YQ", "v1.k1.YQ.YQ.YQ"})
    EXPECT_EQ(why(one(), text), "malformed") << text;
}

TEST(Token, HasNoTwin) {
  const auto token = one().sign(claims_of_ann());
  // Any one character of it otherwise, one more, one less.
  for (std::size_t at = 0; at < token.size(); ++at)
    for (const char other : {'A', 'B', 'w', '-', '_', '.', '=', '+', ' ', '\0'}) {
      auto twin = token;
      if (twin[at] != other) {
        twin[at] = other;
        EXPECT_NE(why(one(), twin), "taken") << at << other;
      }
      EXPECT_NE(why(one(), std::string{token}.insert(at, 1, other)), "taken") << at << other;
    }
  for (std::size_t at = 0; at < token.size(); ++at)
    EXPECT_NE(why(one(), std::string{token}.erase(at, 1)), "taken") << at;
  for (const char* const tail : {"=", " ", "\n", "A", "."})
    EXPECT_NE(why(one(), token + tail), "taken") << tail;
}

TEST(Token, OfThePayloadOneSpellingIsTaken) {
  const std::string good = "11:sale:maotai,3:ann,13:1794358800000,1:n,";
  EXPECT_EQ(why(one(), signed_text(good)), "taken");
  for (const char* const payload :
       {"011:sale:maotai,3:ann,13:1794358800000,1:n,",
        "11:sale:maotai,3:ann,14:01794358800000,1:n,", "11:sale:maotai,3:ann,13:1794358800000,1:n",
        "11:sale:maotai,3:ann,13:1794358800000,1:n,x",
        "11:sale:maotai,3:ann,13:1794358800000,1:n,1:b,1:1,1:a,1:1,",
        "11:sale:maotai,3:ann,13:1794358800000,1:n,1:a,1:1,1:a,1:1,",
        "11:sale:maotai,3:ann,13:1794358800000,1:n,1:a,", "11:sale:maotai,0:,13:1794358800000,1:n,",
        "11:sale:maotai,3:ann,2:-1,1:n,", "11:sale:maotai,3:ann,19:9223372036854775807,1:n,",
        "11:sale:maotai,18446744073709551615:ann,13:1794358800000,1:n,", ""})
    EXPECT_EQ(why(one(), signed_text(payload)), "malformed") << payload;
}

TEST(Token, ThatIsTooLongIsNotRead) {
  EXPECT_EQ(why(one(), signed_text(std::string(800, 'x'))), "malformed");
  EXPECT_EQ(why(one(), std::string(100'000'000, 'v')), "malformed");
}

TEST(Token, SignRefusesWhatCheckWouldNotTake) {
  const auto refused = [](auto change) {
    auto claims = claims_of_ann();
    change(claims);
    EXPECT_THROW((void)one().sign(claims), Error);
  };
  refused([](auto& claims) { claims.subject.clear(); });
  refused([](auto& claims) { claims.subject.assign(129, 'a'); });
  refused([](auto& claims) { claims.audience.clear(); });
  refused([](auto& claims) { claims.audience.assign(161, 'a'); });
  refused([](auto& claims) { claims.nonce.assign(65, 'a'); });
  refused([](auto& claims) { claims.expires = WallTime{-1s}; });
  refused([](auto& claims) { claims.more.emplace("", "x"); });
  refused([](auto& claims) { claims.more.emplace("long", std::string(129, 'x')); });
  refused([](auto& claims) {
    for (char name = 'a'; name < 'h'; ++name) claims.more.emplace(std::string(1, name), "x");
  });
  refused([](auto& claims) {  // each is small enough, together they are not
    for (char name = 'a'; name < 'g'; ++name)
      claims.more.emplace(std::string(1, name), std::string(128, 'x'));
  });
}

TEST(Token, LongestClaimsFit) {
  auto claims = claims_of_ann();
  claims.subject.assign(128, 's');
  claims.audience.assign(160, 'a');
  claims.nonce.assign(64, 'n');
  claims.more = {{"place", std::string(128, '9')}};
  const auto token = one().sign(claims);
  EXPECT_LE(token.size(), TokenKeys::longest);
  EXPECT_TRUE(one().check(token, claims.audience, claims.subject, now));
}

TEST(TokenKeys, AreChangedWithoutRefusingAnybody) {
  const TokenKey old_key{"k1", secret_one};
  const TokenKey new_key{"k2", secret_two};
  const TokenKeys before{{old_key}};
  const TokenKeys told{{old_key, new_key}};
  const TokenKeys moved{{new_key, old_key}};
  const TokenKeys after{{new_key}};
  const auto by_old = before.sign(claims_of_ann());
  EXPECT_EQ(told.sign(claims_of_ann()), by_old);
  const auto by_new = moved.sign(claims_of_ann());
  for (const auto* keys : {&told, &moved}) {
    EXPECT_EQ(why(*keys, by_old), "taken");
    EXPECT_EQ(why(*keys, by_new), "taken");
  }
  EXPECT_EQ(why(after, by_new), "taken");
  EXPECT_EQ(why(after, by_old), "unknown_key");
}

TEST(TokenKeys, RefuseWhatIsNoKey) {
  EXPECT_THROW(TokenKeys{{}}, Error);
  EXPECT_THROW((TokenKeys{{{"", secret_one}}}), Error);
  EXPECT_THROW((TokenKeys{{{"k.1", secret_one}}}), Error);
  EXPECT_THROW((TokenKeys{{{"k1", std::string(31, 'x')}}}), Error);
  EXPECT_THROW((TokenKeys{{{"k1", std::string(1025, 'x')}}}), Error);
  EXPECT_THROW((TokenKeys{{{"k1", secret_one}, {"k1", secret_two}}}), Error);
}

// --- the file ---

class TokenKeyFile : public testing::Test {
 protected:
  std::string path() const { return (folder_ / "keys").string(); }
  void write(const std::string& text, ::mode_t mode = 0600) const {
    std::ofstream{path(), std::ios::binary} << text;
    ASSERT_EQ(::chmod(path().c_str(), mode), 0);
  }
  /// What is said of a file that is refused.
  std::string complaint() const {
    try {
      (void)TokenKeys::load(path());
    } catch (const Error& refused) {
      EXPECT_EQ(refused.errc(), Errc::bad_argument);
      EXPECT_NE(refused.message().find(path()), std::string::npos) << refused.message();
      return refused.message();
    }
    return "taken";
  }

  const test::TempDir folder_;
  const std::string line_one_ = "k1 " + base64(secret_one);
  const std::string line_two_ = "k2 " + base64(secret_two);
};

TEST_F(TokenKeyFile, TheFirstKeySigns) {
  write("# of the shop\r\n\r\n  " + line_two_ + " \r\n\t# the old one\n" + line_one_);
  const auto keys = TokenKeys::load(path());
  EXPECT_EQ(keys.sign(claims_of_ann()), (TokenKeys{{{"k2", secret_two}}}.sign(claims_of_ann())));
  EXPECT_EQ(why(keys, one().sign(claims_of_ann())), "taken");
}

TEST_F(TokenKeyFile, WhatIsWrongIsToldByItsLine) {
  const std::pair<std::string, const char*> rows[] = {
      {"", "it has no key"},
      {"# none\n\n", "it has no key"},
      {line_one_ + "\nk2\n", "line 2: a key is its id"},
      {line_one_ + "\n\nk2 !!!!\n", "line 3: a key is its id"},
      {"k1 " + base64("short") + "\n", "line 1: the secret of key 'k1' has 5 bytes"},
      {line_one_ + "\n# again\n" + line_one_ + "\n", "line 3: two keys for tokens have the id"},
      {"k.1 " + base64(secret_one), "line 1: the id of a key"},
      {line_one_ + " more", "line 1: a key is its id"},
      {std::string("k1\0 ", 4) + base64(secret_one), "line 1: the id of a key"},
      {std::string(70'000, '#'), "more than 65536 bytes"},
  };
  for (const auto& [text, said] : rows) {
    write(text);
    const auto found = complaint();
    EXPECT_NE(found.find(said), std::string::npos) << found;
    EXPECT_EQ(found.find(base64(secret_one)), std::string::npos) << "shows the secret";
  }
}

TEST_F(TokenKeyFile, SV14_OfAllModesThoseOfItsOwnerAloneAreTaken) {
  write(line_one_);
  const bool is_root = ::geteuid() == 0;
  for (::mode_t mode = 0; mode <= 0777; ++mode) {
    ASSERT_EQ(::chmod(path().c_str(), mode), 0);
    const auto said = complaint();
    if ((mode & 0077) != 0 && (is_root || (mode & 0400) != 0))
      EXPECT_NE(said.find("chmod 600"), std::string::npos) << std::oct << mode << said;
    else if (is_root || (mode & 0400) != 0)
      EXPECT_EQ(said, "taken") << std::oct << mode;
  }
}

// As PostgreSQL has it of its keys: the service may read what it must not change.
TEST_F(TokenKeyFile, SV14_AFileOfRootMayBeReadByTheGroupOfTheService) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may become another user";
  constexpr ::uid_t nobody = 65534;
  write(line_one_);
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  ASSERT_EQ(::chown(path().c_str(), 0, nobody), 0);
  ASSERT_EQ(::setegid(nobody) + ::seteuid(nobody), 0);
  const auto said_of = [&](::mode_t mode, ::uid_t owner) {
    EXPECT_EQ(::seteuid(0), 0);
    EXPECT_EQ(::chown(path().c_str(), owner, nobody) + ::chmod(path().c_str(), mode), 0);
    EXPECT_EQ(::seteuid(nobody), 0);
    return complaint();
  };
  EXPECT_EQ(said_of(0640, 0), "taken");
  EXPECT_NE(said_of(0660, 0).find("chmod"), std::string::npos) << "it may be changed";
  EXPECT_NE(said_of(0644, 0).find("chmod"), std::string::npos);
  EXPECT_NE(said_of(0640, nobody).find("chmod"), std::string::npos) << "it is its own";
  ASSERT_EQ(::seteuid(0) + ::setegid(0), 0);
}

TEST_F(TokenKeyFile, IsAFile) {
  EXPECT_NE(complaint().find("cannot be read: No such file"), std::string::npos);
  write(line_one_);
  ASSERT_EQ(::unlink(path().c_str()), 0);
  ASSERT_EQ(::mkdir(path().c_str(), 0700), 0);
  EXPECT_NE(complaint().find("it is no file"), std::string::npos);
  ASSERT_EQ(::rmdir(path().c_str()), 0);
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_NE(complaint().find("it is no file"), std::string::npos);
}

}  // namespace
}  // namespace sluice
