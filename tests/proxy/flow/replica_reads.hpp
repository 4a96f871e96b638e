/// Who has answered a read: for proxies that read from replicas.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "support/comes_true.hpp"
#include "support/plain_client.hpp"
#include "support/redis_server.hpp"

namespace sluice::test {

/// How many GETs a server has executed; what it has refused is none.
inline std::int64_t gets(RedisServer& server) {
  const auto stats = PlainClient{server.port()}.command({"INFO", "commandstats"}).as_text();
  const auto at = stats.find("cmdstat_get:calls=");
  return at == std::string::npos ? 0 : std::atoll(stats.c_str() + stats.find('=', at) + 1);
}

/// Reads `key` until the replica has answered once more; all replies are `value`.
inline bool reads_at(RedisServer& replica, PlainClient& client, std::string_view key,
                     std::string_view value) {
  const auto before = gets(replica);
  return comes_true([&] {
    for (int i = 0; i < 20; ++i) EXPECT_EQ(client.command({"GET", key}).as_text(), value);
    return gets(replica) > before;
  });
}

}  // namespace sluice::test
