// What is picked by chance is picked evenly, whatever shape the table has.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "engine/engine_session.hpp"

namespace sluice::engine {
namespace {

struct Picking {
  std::string_view name;
  std::string add;    // before the name of an element
  std::string after;  // behind it
  std::string remove;
  std::string pick;
};

const Picking pickings[] = {
    {"HRANDFIELD", "HSET k ", " v", "HDEL k ", "HRANDFIELD k"},
    {"HRANDFIELD with repeats", "HSET k ", " v", "HDEL k ", "HRANDFIELD k -7"},
    {"HRANDFIELD of some", "HSET k ", " v", "HDEL k ", "HRANDFIELD k 3"},
    {"SRANDMEMBER", "SADD k ", "", "SREM k ", "SRANDMEMBER k"},
    {"SRANDMEMBER with repeats", "SADD k ", "", "SREM k ", "SRANDMEMBER k -7"},
    {"SRANDMEMBER of some", "SADD k ", "", "SREM k ", "SRANDMEMBER k 3"},
    {"SPOP", "SADD k ", "", "SREM k ", "SPOP k"},
    {"SPOP of some", "SADD k ", "", "SREM k ", "SPOP k 3"},
    {"ZRANDMEMBER", "ZADD k 1 ", "", "ZREM k ", "ZRANDMEMBER k"},
    {"ZRANDMEMBER with repeats", "ZADD k 1 ", "", "ZREM k ", "ZRANDMEMBER k -7"},
    {"ZRANDMEMBER of some", "ZADD k 1 ", "", "ZREM k ", "ZRANDMEMBER k 3"},
    {"RANDOMKEY", "SET ", " v", "DEL ", "RANDOMKEY"},
};

/// How a table came to have `size` elements: by so many more that were removed again.
struct Shape {
  std::size_t size;
  std::size_t removed;
  std::string_view prefix;  // empty: numbers
};

void each_shape(const std::function<void(const Shape&)>& visit) {
  for (const std::size_t size : {3, 4, 5, 8, 9, 17, 64, 100, 130, 200})
    for (const std::size_t removed : {0, 1, 7})
      for (const std::string_view prefix : {"member", ""}) visit({size, removed * size, prefix});
}

void run_for_each(EngineSession& session, const std::string& before, const std::string& after,
                  const Shape& shape, std::size_t from, std::size_t to) {
  for (std::size_t i = from; i < to; ++i)
    session.run(before + std::string{shape.prefix} + std::to_string(i) + after);
}

/// Pearson's: how far the counts are from even, in standard deviations of that number.
double unevenness(const Picking& picking, const Shape& shape) {
  EngineSession session;
  run_for_each(session, picking.add, picking.after, shape, 0, shape.size + shape.removed);
  run_for_each(session, picking.remove, "", shape, shape.size, shape.size + shape.removed);
  std::map<std::string, double> counts;
  double total = 0;
  while (total < 50.0 * static_cast<double>(shape.size)) {
    const Value reply = session.run(picking.pick);
    const auto picked = reply.is_aggregate() ? reply.as_items() : std::vector<Value>{reply};
    for (const auto& element : picked) {
      ++counts[element.as_text()];
      ++total;
      if (picking.name.starts_with("SPOP"))
        session.run(picking.add + element.as_text() + picking.after);
    }
  }
  const double even = total / static_cast<double>(shape.size);
  double sum = 0;
  for (const auto& [name, count] : counts) sum += (count - even) * (count - even) / even;
  sum += static_cast<double>(shape.size - counts.size()) * even;
  const auto freedom = static_cast<double>(shape.size - 1);
  return (sum - freedom) / std::sqrt(2 * freedom);
}

TEST(Chance, R06_WhatIsPickedIsPickedEvenly) {
  int tried = 0;
  for (const auto& picking : pickings)
    each_shape([&](const Shape& shape) {
      ++tried;
      EXPECT_LT(unevenness(picking, shape), 9)
          << picking.name << " of " << shape.size << " after " << shape.removed << " removed, '"
          << shape.prefix << "', the " << tried << "th";
    });
}

}  // namespace
}  // namespace sluice::engine
