#include "proxy/process/descriptor_limit.hpp"

#include <sys/resource.h>

namespace sluice::proxy {
namespace {

constexpr std::size_t reserved = 32;

rlimit current() noexcept {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit;
}

}  // namespace

void raise_descriptor_limit() noexcept {
  rlimit limit = current();
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);  // what was had is kept if it may not
}

std::size_t clients_within_limit(const Config& config) noexcept {
  const std::size_t all = current().rlim_cur;
  std::size_t taken = reserved;
  for (const auto& pool : config.pools) taken += 1 + pool.servers.size() * pool.server_connections;
  return all > taken ? all - taken : 0;
}

}  // namespace sluice::proxy
