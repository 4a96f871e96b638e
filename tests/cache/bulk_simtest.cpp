// Many keys at once: each stands for itself, and has all that a single one is promised.
#include <fmt/format.h>

#include <vector>

#include "cache/guards.hpp"

namespace sluice {
namespace {

using namespace test;

class Bulk : public Guards {
 protected:
  static std::vector<std::string> numbers(int many) {
    std::vector<std::string> all;
    for (int i = 0; i < many; ++i) all.push_back(std::to_string(i));
    return all;
  }
  static CacheGuardOptions near() {
    auto options = plain();
    options.near_bytes = 1 << 20;
    return options;
  }
};

TEST_F(Bulk, BC12_ABulkInvalidationIsOneRoundTripAndEndsLoadsAndNearCopies) {
  Cache here{line_, "user", near()};
  Cache there{far_, "user", near()};
  const auto keys = numbers(300);
  for (int times = 0; times < 2; ++times)
    for (const auto& key : keys) there.get(key, source_.loader()).get();
  source_.hold();
  const int loads = source_.loads();
  Get slow{there.get("slow", source_.loader())};
  source_.await_begun(loads + 1);
  source_.write("two");

  int calls = 0;
  line_.plan = [&](std::string_view) { return ++calls, Fault::none; };
  auto all = keys;
  all.emplace_back("slow");
  here.invalidate_all(all).get();
  here.invalidate_all({}).get();
  EXPECT_EQ(calls, 1);
  source_.let_go();
  EXPECT_EQ(slow.get(), "one");
  for (const auto& key : all) {
    EXPECT_FALSE(exists("user:" + key)) << key;
    EXPECT_EQ(there.get(key, source_.loader()).get(), "two") << key;
    EXPECT_EQ(here.get(key, source_.loader()).get(), "two") << key;
  }
}

TEST_F(Bulk, BC12_AKeyThatFailsIsNamedAndKeepsNoOtherFromBeingInvalidated) {
  Cache cache{line_, "user", plain()};
  const auto keys = numbers(5);
  for (const auto& foreign : keys) {
    for (const auto& key : keys) cache.put(key, "old").get();
    store_->run({"SET", "user:" + foreign, "theirs"}).get();
    try {
      cache.invalidate_all(keys).get();
      ADD_FAILURE() << foreign << " is not ours";
    } catch (const Error& failure) {
      EXPECT_EQ(failure.errc(), Errc::wrong_type);
      EXPECT_EQ(failure.effect(), Effect::unknown);
      for (const auto& key : keys)
        EXPECT_EQ(failure.message().find("'user:" + key + "'") != std::string::npos, key == foreign)
            << failure.message();
      EXPECT_NE(failure.message().find("4 of 5 calls were done"), std::string::npos);
    }
    for (const auto& key : keys) EXPECT_EQ(exists("user:" + key), key == foreign);
    store_->run({"DEL", "user:" + foreign}).get();
  }
}

TEST_F(Bulk, BC12_ABulkInvalidationThatIsNotSentHasNoEffectAndOneThatIsLostIsSentAgain) {
  Cache cache{line_, "user", plain()};
  const auto keys = numbers(5);
  for (const auto fault :
       {Fault::refused, Fault::reply_lost, Fault::request_lost, Fault::cut_off}) {
    for (const auto& key : keys) cache.put(key, "old").get();
    line_.plan = [&](std::string_view) { return fault; };
    std::optional<Effect> effect;
    try {
      cache.invalidate_all(keys).get();
    } catch (const Error& failure) {
      effect = failure.effect();
    }
    line_.plan = [](std::string_view) { return Fault::none; };
    for (const auto& key : keys) EXPECT_EQ(exists("user:" + key), effect == Effect::none);
    EXPECT_EQ(effect.has_value(), fault == Fault::refused || fault == Fault::cut_off);
  }
}

// The reply to a read of before is on its way when the invalidation is acknowledged.
TEST_F(Bulk, BC12_ALateReplyIsNotKeptNearOverABulkInvalidation) {
  Cache here{line_, "user", plain()};
  Cache there{far_, "user", near()};
  there.get("1", source_.loader()).get();
  far_.plan = [](std::string_view call) { return call == "GET" ? Fault::reply_late : Fault::none; };
  Get late{there.get("1", source_.loader())};
  source_.write("two");
  here.invalidate_all({"0", "1", "2"}).get();
  far_.plan = [](std::string_view) { return Fault::none; };
  far_.let_go();
  EXPECT_EQ(late.get(), "one");
  EXPECT_EQ(there.get("1", source_.loader()).get(), "two");
}

}  // namespace
}  // namespace sluice
