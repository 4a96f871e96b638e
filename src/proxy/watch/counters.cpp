#include "proxy/watch/counters.hpp"

#include <array>

namespace sluice::proxy {

std::span<const PoolField> pool_fields() noexcept {
#define COUNTER(name, kind, of_twemproxy, help) \
  PoolField{{#name, CounterKind::kind, of_twemproxy, help}, &PoolCounters::name, &PoolTotals::name},
  static constexpr std::array fields{
#define POOL
#include "proxy/watch/counters.def"
#undef POOL
  };
#undef COUNTER
  return fields;
}

std::span<const ServerField> server_fields() noexcept {
#define COUNTER(name, kind, of_twemproxy, help) \
  ServerField{                                  \
      {#name, CounterKind::kind, of_twemproxy, help}, &ServerCounters::name, &ServerTotals::name},
  static constexpr std::array fields{
#define SERVER
#include "proxy/watch/counters.def"
#undef SERVER
  };
#undef COUNTER
  return fields;
}

}  // namespace sluice::proxy
