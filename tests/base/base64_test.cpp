#include "base/base64.hpp"

#include <gtest/gtest.h>

#include <string_view>
#include <utility>

namespace sluice {
namespace {

using namespace std::literals;

TEST(Base64, KnowsTheExamplesOfRfc4648) {
  for (const auto& [bytes, text] : {std::pair{""s, ""s},
                                    {"f"s, "Zg=="s},
                                    {"fo"s, "Zm8="s},
                                    {"foo"s, "Zm9v"s},
                                    {"foob"s, "Zm9vYg=="s},
                                    {"fooba"s, "Zm9vYmE="s},
                                    {"foobar"s, "Zm9vYmFy"s}}) {
    EXPECT_EQ(base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
    EXPECT_EQ(from_base64url(base64url(bytes)), bytes);
  }
  EXPECT_EQ(base64("\xfb\xff"), "+/8=");
  EXPECT_EQ(base64url("\xfb\xff"), "-_8");
  EXPECT_EQ(from_base64url("-_8"), "\xfb\xff");
}

TEST(Base64, TakesEachByteInEachPlace) {
  for (std::size_t size = 1; size <= 4; ++size)
    for (int byte = 0; byte < 256; ++byte) {
      const std::string bytes(size, static_cast<char>(byte));
      EXPECT_EQ(from_base64(base64(bytes)), bytes);
      EXPECT_EQ(from_base64url(base64url(bytes)), bytes);
    }
}

// A signature is of the text: two texts of the same bytes would be two tokens by one signature.
TEST(Base64, RefusesWhatIsNoEncodingOfItsBytes) {
  for (const auto text : {"Zg"sv, "Zg="sv, "Zg==="sv, "Zh=="sv, "Zm9="sv, "Zm9v\n"sv, " Zm9v"sv,
                          "Zm9v    "sv, "Zm 9"sv, "Zg==Zg=="sv, "===="sv, "Zm9_"sv, "Z\0=="sv})
    EXPECT_FALSE(from_base64(text)) << text;
  for (const auto text :
       {"Zg=="sv, "Z"sv, "Zh"sv, "Zm9"sv, "+/8"sv, "-_9"sv, "Zm9v\n"sv, "Zm9vY"sv})
    EXPECT_FALSE(from_base64url(text)) << text;
}

}  // namespace
}  // namespace sluice
