#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/embedded_store.hpp"
#include "lock/hold/pending_releases.hpp"

namespace sluice::lock {
namespace {

class LeftoversTest : public testing::Test {
 protected:
  void keep(const std::string& request) {
    pending_releases_.keep(request, [this, request] { given_up_.push_back(request); });
  }

  std::unique_ptr<engine::EmbeddedStore> store_ = engine::open_embedded({});
  PendingReleases pending_releases_{*store_};
  std::vector<std::string> given_up_;
};

TEST_F(LeftoversTest, AreGivenUpOnceWhenTheServerSpeaksOfThem) {
  keep("one");
  keep("other");
  pending_releases_.give_up("none of them");
  pending_releases_.give_up("other");
  pending_releases_.give_up("other");
  EXPECT_EQ(given_up_, std::vector<std::string>{"other"});
}

TEST_F(LeftoversTest, AreAllGivenUpAfterALoss) {
  keep("one");
  keep("other");
  pending_releases_.give_up_all();
  pending_releases_.give_up_all();
  EXPECT_EQ(given_up_, (std::vector<std::string>{"one", "other"}));
}

TEST_F(LeftoversTest, MayFailAgain) {
  pending_releases_.keep("one", [this] { keep("one"); });
  pending_releases_.give_up_all();
  EXPECT_TRUE(given_up_.empty());
  pending_releases_.give_up("one");
  EXPECT_EQ(given_up_, std::vector<std::string>{"one"});
}

TEST_F(LeftoversTest, TheOldestIsForgottenWhereThereAreTooMany) {
  for (std::size_t i = 0; i <= PendingReleases::most; ++i) keep(std::to_string(i));
  pending_releases_.give_up("0");
  EXPECT_TRUE(given_up_.empty());
  pending_releases_.give_up_all();
  EXPECT_EQ(given_up_.size(), PendingReleases::most);
}

}  // namespace
}  // namespace sluice::lock
