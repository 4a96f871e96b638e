/// What the workers count. Each worker writes counters of its own; any thread reads them and adds
/// them up. The tables are counters.def.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "base/counter.hpp"

namespace sluice::proxy::watch {

enum class CounterKind : std::uint8_t { counter, gauge, timestamp };

/// One row of counters.def.
struct CounterRow {
  std::string_view name;
  CounterKind kind;
  bool of_twemproxy;  ///< stands in the statistics document under this name
  std::string_view help;
};

#define COUNTER(name, kind, of_twemproxy, help) Counter name;
struct PoolCounters {
#define POOL
#include "proxy/watch/counters.def"
#undef POOL
};
struct ServerCounters {
#define SERVER
#include "proxy/watch/counters.def"
#undef SERVER
};
#undef COUNTER

/// The sums over all workers: plain values with the names of the counters.
#define COUNTER(name, kind, of_twemproxy, help) std::int64_t name = 0;
struct PoolTotals {
#define POOL
#include "proxy/watch/counters.def"
#undef POOL
};
struct ServerTotals {
#define SERVER
#include "proxy/watch/counters.def"
#undef SERVER
};
#undef COUNTER

/// A row of the table together with the counter and the total that it names.
template <class Counters, class Totals>
struct Field : CounterRow {
  using Counted = Counters;
  using Summed = Totals;
  Counter Counters::*counter;
  std::int64_t Totals::*total;
};
using PoolField = Field<PoolCounters, PoolTotals>;
using ServerField = Field<ServerCounters, ServerTotals>;

#define COUNTER(name, kind, of_twemproxy, help) \
  Row{{#name, CounterKind::kind, of_twemproxy, help}, &Row::Counted::name, &Row::Summed::name},
/// The rows of counters.def in its order, which is that of twemproxy's document.
inline constexpr auto pool_fields = [] {
  using Row = PoolField;
  return std::to_array<Row>({
#define POOL
#include "proxy/watch/counters.def"
#undef POOL
  });
}();
inline constexpr auto server_fields = [] {
  using Row = ServerField;
  return std::to_array<Row>({
#define SERVER
#include "proxy/watch/counters.def"
#undef SERVER
  });
}();
#undef COUNTER

/// Counters and gauges add up; of the times at which workers saw a thing happen the latest counts.
template <class Counters, class Totals>
void add(const auto& fields, Totals& totals, const Counters& counters) {
  for (const auto& field : fields) {
    const std::int64_t value = (counters.*field.counter).get();
    auto& total = totals.*field.total;
    total = field.kind == CounterKind::timestamp ? std::max(total, value) : total + value;
  }
}

}  // namespace sluice::proxy::watch
