#include "server/shop_keys.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "sluice/error.hpp"
#include "support/matchers.hpp"
#include "support/temp_dir.hpp"

namespace sluice::server {
namespace {

using testing::HasSubstr;

std::string file_of(const test::TempDir& folder, std::string_view text) {
  const auto path = folder / "shop_keys";
  std::ofstream{path} << text;
  std::filesystem::permissions(path, std::filesystem::perms::owner_read);
  return path.string();
}

std::string complaint_of(const std::string& path) {
  try {
    ShopKeys::load(path);
    return "none";
  } catch (const Error& wrong) {
    return wrong.message();
  }
}

TEST(ShopKeys, AKeyIsGoodForItsScopesAlone) {
  const test::TempDir folder;
  const auto made = make_shop_key("ops", {Scope::operate, Scope::orders});
  const auto keys = ShopKeys::load(file_of(folder, "# ours\n" + made.line + "\n"));
  EXPECT_EQ(keys.check(made.key, Scope::operate).value(), "ops");
  EXPECT_EQ(keys.check(made.key, Scope::orders).value(), "ops");
  EXPECT_EQ(keys.check(made.key, Scope::tools).error(), ShopKeys::Refusal::other_scope);
}

TEST(ShopKeys, WhatIsNotExactlyTheKeyIsRefused) {
  const test::TempDir folder;
  const auto made = make_shop_key("ops", {Scope::tools});
  const auto other = make_shop_key("ops", {Scope::tools});
  const auto keys = ShopKeys::load(file_of(folder, made.line));
  auto changed = made.key;
  changed.back() = changed.back() == 'A' ? 'B' : 'A';
  for (const auto& word :
       {std::string{}, std::string{"sk."}, std::string{"sk.ops."}, made.key + "A", " " + made.key,
        made.key.substr(0, made.key.size() - 1), changed, other.key, made.line})
    EXPECT_FALSE(keys.check(word, Scope::tools)) << word;
  EXPECT_FALSE(ShopKeys{}.check(made.key, Scope::tools));
}

TEST(ShopKeys, TheFileDoesNotHaveTheSecret) {
  const auto made = make_shop_key("ops", {Scope::tools});
  const auto secret = made.key.substr(made.key.rfind('.') + 1);
  EXPECT_EQ(secret.size(), 43);
  EXPECT_EQ(made.line.find(secret), made.line.npos);
}

TEST(ShopKeys, WhatIsWrongWithAFileIsSaidByItsLine) {
  const test::TempDir folder;
  const auto line = make_shop_key("ops", {Scope::tools}).line;
  const auto complaint = [&](std::string_view text) {
    const test::TempDir own;
    return complaint_of(file_of(own, text));
  };
  EXPECT_THAT(complaint(""), HasSubstr("it has no key"));
  EXPECT_THAT(complaint(line + "\n" + line), HasSubstr("line 2: key 'ops' stands there twice"));
  EXPECT_THAT(complaint("\nops tools"), HasSubstr("line 2: a key is its id, its scopes"));
  EXPECT_THAT(complaint("ops spoons " + line.substr(10)), HasSubstr("'spoons' is no scope"));
  EXPECT_THAT(complaint("ops , " + line.substr(10)), HasSubstr("good for nothing"));
  EXPECT_THAT(complaint("o/s" + line.substr(3)), HasSubstr("the id of a key"));
  EXPECT_THAT(complaint(line.substr(0, line.size() - 1)), HasSubstr("no SHA-256"));
  EXPECT_THAT(complaint(line.substr(0, line.size() - 1) + "g"), HasSubstr("no SHA-256"));
}

}  // namespace
}  // namespace sluice::server
