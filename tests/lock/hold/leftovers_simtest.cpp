#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/embedded_store.hpp"
#include "lock/hold/leftovers.hpp"

namespace sluice::lock {
namespace {

class LeftoversTest : public testing::Test {
 protected:
  void keep(const std::string& request) {
    leftovers_.keep(request, [this, request] { given_up_.push_back(request); });
  }

  std::unique_ptr<engine::EmbeddedStore> store_ = engine::open_embedded({});
  Leftovers leftovers_{*store_};
  std::vector<std::string> given_up_;
};

TEST_F(LeftoversTest, AreGivenUpOnceWhenTheServerSpeaksOfThem) {
  keep("one");
  keep("other");
  leftovers_.give_up("none of them");
  leftovers_.give_up("other");
  leftovers_.give_up("other");
  EXPECT_EQ(given_up_, std::vector<std::string>{"other"});
}

TEST_F(LeftoversTest, AreAllGivenUpAfterALoss) {
  keep("one");
  keep("other");
  leftovers_.give_up_all();
  leftovers_.give_up_all();
  EXPECT_EQ(given_up_, (std::vector<std::string>{"one", "other"}));
}

TEST_F(LeftoversTest, MayFailAgain) {
  leftovers_.keep("one", [this] { keep("one"); });
  leftovers_.give_up_all();
  EXPECT_TRUE(given_up_.empty());
  leftovers_.give_up("one");
  EXPECT_EQ(given_up_, std::vector<std::string>{"one"});
}

TEST_F(LeftoversTest, TheOldestIsForgottenWhereThereAreTooMany) {
  for (std::size_t i = 0; i <= Leftovers::most; ++i) keep(std::to_string(i));
  leftovers_.give_up("0");
  EXPECT_TRUE(given_up_.empty());
  leftovers_.give_up_all();
  EXPECT_EQ(given_up_.size(), Leftovers::most);
}

}  // namespace
}  // namespace sluice::lock
