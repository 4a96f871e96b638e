// Many keys at once by a server that lies about one of them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "cache/cache.lua.hpp"
#include "sluice/cache_guard.hpp"
#include "sluice/open.hpp"
#include "support/fault_proxy.hpp"
#include "support/plain_client.hpp"
#include "support/redis_server.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using namespace test;
using Cache = CacheGuard<std::string>;
using Keys = std::vector<std::string>;

/// The reply to a call that has `key` among its words.
Match reply_about(const Match& call, std::string key) {
  return [call, key = std::move(key)](const Passing& passing) {
    return call(passing) && std::ranges::count(passing.words, key) > 0;
  };
}

class BulkOnServer : public testing::Test {
 protected:
  RedisServer server_;
  PlainClient side_{server_.port()};
  FaultProxy proxy_{server_.port()};
  const Keys keys_{"1", "2", "3", "4"};
};

TEST_F(BulkOnServer, BC12_AnErrorAtEachItemOfABulkGetIsThatKeysAlone) {
  const auto load = [](const Keys& missing) {
    std::map<std::string, std::string> found;
    for (const auto& key : missing) found[key] = "value " + key;
    return found;
  };
  const std::vector<Match> calls{reply_to("GET"), reply_to(scripts::cache_look),
                                 reply_to(scripts::cache_store)};
  const auto store = open(proxy_.url());
  Cache cache{*store, "c"};
  for (std::size_t call = 0; call < calls.size(); ++call)
    for (const auto* const error : {"LOADING Redis is loading the dataset in memory",
                                    "NOPERM this user has no permissions", "ERR unheard of"})
      for (const auto& key : keys_) {
        side_.command({"FLUSHALL"});
        const auto lied = proxy_.on(reply_about(calls[call], "c:" + key),
                                    {.fault = LineFault::lie, .error = error});
        const auto outcomes = cache.get_all(keys_, load).get();
        EXPECT_EQ(proxy_.hits(lied), 1U) << call << ' ' << error;
        for (std::size_t i = 0; i < keys_.size(); ++i) {
          const auto place =
              fmt::format("call {}, {}, lie about {}, {}", call, error, key, keys_[i]);
          // A read that fails is told; who looks again has the value, as who could not store it.
          EXPECT_EQ(outcomes[i].error != nullptr, call == 0 && keys_[i] == key) << place;
          if (!outcomes[i].error) EXPECT_EQ(outcomes[i].value, "value " + keys_[i]) << place;
        }
        proxy_.forget_rules();
      }
}

TEST_F(BulkOnServer, BC12_AnErrorAtEachItemOfABulkInvalidationNamesItsKey) {
  const auto store = open(proxy_.url());
  Cache cache{*store, "c"};
  for (const auto& key : keys_) {
    for (const auto& each : keys_) cache.put(each, "old").get();
    const auto lied = proxy_.on(reply_about(reply_to(scripts::cache_invalidate), "c:" + key),
                                {.fault = LineFault::lie, .error = "ERR unheard of"});
    try {
      cache.invalidate_all(keys_).get();
      ADD_FAILURE() << "a lie about " << key << " was not told";
    } catch (const Error& failure) {
      EXPECT_EQ(failure.effect(), Effect::unknown);
      for (const auto& each : keys_)
        EXPECT_EQ(failure.message().find("'c:" + each + "'") != std::string::npos, each == key)
            << failure.message();
    }
    EXPECT_EQ(proxy_.hits(lied), 1U);
    EXPECT_EQ(side_.command({"DBSIZE"}).as_integer(), 0) << "the others were done";
    proxy_.forget_rules();
  }
}

}  // namespace
}  // namespace sluice
