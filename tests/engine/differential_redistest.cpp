// The same commands to the engine and to a real redis-server: the same replies, and at the end the same data.
// SLUICE_SEEDS=1000 in the environment runs so many seeds instead of a few.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "engine/random_commands.hpp"
#include "support/plain_client.hpp"
#include "support/redis_server.hpp"

namespace sluice::engine {
namespace {

/// As text; what has no order is sorted.
std::string comparable(const Line& command, const Value& reply) {
  if (!is_unordered(command[0]) || !reply.is_aggregate()) return to_string(reply);
  const std::size_t step = reply.type() == Value::Type::map ? 2 : 1;
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < reply.as_items().size(); i += step)
    parts.push_back(to_string(reply.as_items()[i]) +
                    (step == 2 ? to_string(reply.as_items()[i + 1]) : ""));
  std::ranges::sort(parts);
  return fmt::format("{} {}", static_cast<int>(reply.type()), fmt::join(parts, " "));
}

struct Seeded {
  std::uint64_t seed;
  int protocol;
};

class Differential : public testing::TestWithParam<Seeded> {
 protected:
  static test::RedisServer& server() {
    static test::RedisServer one;
    return one;
  }
};

TEST_P(Differential, TheSameRepliesAndTheSameData) {
  test::PlainClient redis{server().port()};
  redis.command({"FLUSHALL"});
  if (GetParam().protocol == 3) redis.command({"HELLO", "3"});
  EngineSession engine{GetParam().protocol};
  RandomCommands commands{GetParam().seed};
  constexpr int steps = 8000;
  for (int i = 0; i < steps; ++i) {
    const auto command = i % 3000 == 2999 ? Line{"FLUSHDB"} : commands.next();
    const auto expected = comparable(command, redis.command(command));
    ASSERT_EQ(comparable(command, engine.run(command)), expected)
        << "seed " << GetParam().seed << ", step " << i << ": " << text_of(command);
  }
  for (int i = 0; i < 6; ++i)
    for (const char* const read :
         {"GET", "HGETALL", "SMEMBERS", "LRANGE", "ZRANGE", "TYPE", "PEXPIRETIME"}) {
      Line command{read, fmt::format("k{}", i)};
      if (command[0] == "LRANGE" || command[0] == "ZRANGE")
        command.insert(command.end(), {"0", "-1"});
      if (command[0] == "ZRANGE") command.push_back("WITHSCORES");
      ASSERT_EQ(comparable(command, engine.run(command)),
                comparable(command, redis.command(command)));
    }
}

std::vector<Seeded> seeds() {
  std::vector<Seeded> all;
  const char* wanted = std::getenv("SLUICE_SEEDS");
  for (std::uint64_t seed = 1; seed <= (wanted ? std::stoul(wanted) : 6); ++seed)
    all.push_back({seed, seed % 2 == 0 ? 2 : 3});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Seeds, Differential, testing::ValuesIn(seeds()), [](const auto& instance) {
  return fmt::format("Seed{}Resp{}", instance.param.seed, instance.param.protocol);
});

}  // namespace
}  // namespace sluice::engine
