#include "engine/commands/redis_engine.hpp"

#include "base/random.hpp"
#include "engine/commands/families.hpp"

namespace sluice::engine {

RedisEngine::RedisEngine() : RedisEngine(random_below(std::numeric_limits<std::uint64_t>::max())) {}

RedisEngine::RedisEngine(std::uint64_t seed) : Engine(seed) {
  for (const auto family : {string_commands,
                            bit_commands,
                            lcs_commands,
                            geo_commands,
                            distinct_commands,
                            key_commands,
                            dump_commands,
                            sort_commands,
                            hash_commands,
                            list_commands,
                            set_commands,
                            sorted_set_commands,
                            sorted_set_range_commands,
                            sorted_set_store_commands,
                            stream_commands,
                            stream_read_commands,
                            stream_group_commands,
                            stream_claim_commands,
                            server_commands,
                            script_commands,
                            function_commands})
    add(family());
  set_scripts(scripts_);
}

}  // namespace sluice::engine
