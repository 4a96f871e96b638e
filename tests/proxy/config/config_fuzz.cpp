// The reader of configurations on any bytes: it takes them or refuses them with a line; what it
// takes can be written out and read again, has homes for keys, and can be linted.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "proxy/config/inspect.hpp"
#include "proxy/config/read.hpp"
#include "sluice/error.hpp"
#include "support/fuzz_require.hpp"

namespace {

using namespace sluice;
using test::require;
using namespace sluice::proxy::config;
using sluice::proxy::Config;

bool has_secrets(const Config& config) {
  for (const auto& pool : config.pools)
    if (!pool.redis_auth.empty() || !pool.server_password.empty() ||
        !pool.sentinel_password.empty() || !pool.users.empty())
      return true;
  return false;
}

/// Building rings takes time in proportion to the servers; a fuzzer makes many.
bool is_small(const Config& config) {
  constexpr std::size_t few = 32;
  std::size_t servers = 0;
  for (const auto& pool : config.pools) servers += pool.servers.size();
  return servers < few;
}

void check(const Config& config) {
  const auto written = describe(config);
  const auto again = sluice::proxy::config::read(written, "written");
  require(has_secrets(config) || again == config, "what is written out means something else");
  if (!is_small(config)) return;
  for (const auto& pool : config.pools) {
    if (pool.is_of_cluster()) continue;
    const auto homes = make_homes(pool);
    for (const auto* const key : {"", "a", "key:{1}"})
      require(homes.of(key, 5) < pool.servers.size(), "a home that is not there");
  }
  static_cast<void>(text_of(lint(config), "file"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t most = 4096;
  const std::string_view yaml{reinterpret_cast<const char*>(data), std::min(size, most)};
  Config config;
  try {
    config = sluice::proxy::config::read(yaml, "file");
  } catch (const Error& refused) {
    require(std::string_view{refused.message()}.starts_with("file:"), "a refusal without a place");
    return 0;
  }
  check(config);
  return 0;
}
