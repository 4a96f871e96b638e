#include "sluice/error.hpp"

#include <gtest/gtest.h>

#include <set>

namespace sluice {
namespace {

TEST(Error, SaysWhatWhereAndWhetherItTookEffect) {
  const Error error{Errc::timeout, "GET a: no reply in 5 s", Effect::unknown};
  EXPECT_EQ(error.errc(), Errc::timeout);
  EXPECT_EQ(error.effect(), Effect::unknown);
  EXPECT_EQ(error.message(), "GET a: no reply in 5 s");
  EXPECT_EQ(std::string{error.what()}, "GET a: no reply in 5 s: timed out");
  EXPECT_EQ(Error(Errc::closed, "").effect(), Effect::none);
}

TEST(Error, IsASystemErrorOfItsOwnCategory) {
  try {
    throw Error{Errc::in_use, "folder"};
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), Errc::in_use);
    EXPECT_STREQ(error.code().category().name(), "sluice");
  }
}

TEST(Error, EveryCodeHasWordsOfItsOwn) {
  std::set<std::string> seen;
  for (int code = static_cast<int>(Errc::bad_argument); code <= static_cast<int>(Errc::database);
       ++code) {
    const auto words = error_category().message(code);
    EXPECT_NE(words, "unknown error") << code;
    EXPECT_TRUE(seen.insert(words).second) << words;
  }
  EXPECT_EQ(error_category().message(10'000), "unknown error");
}

TEST(Effect, HasANameEach) {
  EXPECT_EQ(to_string(Effect::none), "none");
  EXPECT_EQ(to_string(Effect::done), "done");
  EXPECT_EQ(to_string(Effect::unknown), "unknown");
}

}  // namespace
}  // namespace sluice
